// Package e2e sees the alerts and the dashboard at work: the real daemon as a process of
// its own, a real Prometheus that scrapes it and evaluates the shipped rules, a real
// Alertmanager that posts to the test. All of it listens on loopback only, and what the
// test starts it stops by process id.
package e2e
