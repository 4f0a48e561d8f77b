// Package daemon builds everything from a configuration and runs it until told to
// stop: the schedule of sweeps, the delivery of notices, metrics and health.
//
// It promises that it starts, and says so, while providers, Slack and even the
// database are out of reach; that a tick of the schedule is run once however many
// replicas there are, since a tick is a row of the ledger and no mutex; that no series
// of its metrics is missing before the first event; that a new configuration takes the
// place of the running one whole or not at all; and that it stops in the reverse order of
// its start, each part by name and all of them within ten seconds.
//
// It holds no rule. What a run does is said by sweep, who is told by escalation.
package daemon
