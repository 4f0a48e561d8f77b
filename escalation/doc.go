// Package escalation decides who is told of a finding and when ([Plan], [Folds] and
// [PlanIncident], pure; [Planner] runs them), and delivers what is due ([Deliverer]). Its
// children each speak one destination's language.
//
// It promises that a committed finding is told by every step of its ladder once, whoever
// wrote it and whatever dies meanwhile; that an outage or a crowd of findings is one
// message; and that a notice is delivered, or counted as undelivered and tried again,
// and never lost: a rate limit waits, a lost answer is looked up before anything is
// posted again, and at worst a message appears twice with the second one marked as a
// possible repeat. It never decides anything about an operation, and its own failures
// are never sent to a destination.
package escalation
