package main

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/daemon"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

func TestWhatTheLastRunSaysOfTheSchedule(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 9, 0, 30, 0, time.UTC)
	hourly := daemon.Planned{Name: "housekeeping", Spec: config.Hourly()} // due at 09:00
	run := func(started time.Duration, change func(*ledger.Run)) ledger.Run {
		r := ledger.Run{ID: "r", Holder: "host/1", StartedAt: now.Add(started), FinishedAt: now.Add(started + time.Second), Outcome: ledger.RunDone}
		if change != nil {
			change(&r)
		}
		return r
	}
	under := func(lease time.Duration) func(*ledger.Run) {
		return func(r *ledger.Run) { r.FinishedAt, r.LeaseUntil, r.Outcome = time.Time{}, now.Add(lease), "" }
	}
	failed := func(r *ledger.Run) { r.Outcome, r.Error = ledger.RunFailed, "too many changes" }
	for name, c := range map[string]struct {
		last  ledger.Run
		after time.Duration // since now
		want  string        // level: a part of the text
	}{
		"none":                        {ledger.Run{}, 0, "warning: never ran; it is due next at 2026-03-02 10:00:00 UTC: start `reconciler serve`"},
		"in time":                     {run(-29*time.Second, nil), 0, "ok: last ran at 2026-03-02 09:00:01 UTC; due next at 2026-03-02 10:00:00 UTC"},
		"due a moment ago":            {run(-time.Hour, nil), 0, "ok: last ran at"},
		"due and missed":              {run(-time.Hour, nil), 3 * time.Minute, "warning: was due at 2026-03-02 09:00:00 UTC and last ran at 2026-03-02 08:00:30 UTC: look whether `reconciler serve` runs"},
		"by hand since":               {run(time.Minute, nil), 3 * time.Minute, "ok: last ran at"},
		"failed":                      {run(-29*time.Second, failed), 0, "warning: is failed since 2026-03-02 09:00:02 UTC (too many changes)"},
		"under way":                   {run(-29*time.Second, under(time.Minute)), 0, "ok: is under way since 2026-03-02 09:00:01 UTC, by host/1"},
		"under way since long before": {run(-2*time.Hour, under(time.Minute)), 0, "ok: is under way since"},
		"dead":                        {run(-29*time.Second, under(-time.Second)), 0, "warning: began at 2026-03-02 09:00:01 UTC and its process ended without a word"},
	} {
		a := runAdvice(hourly, c.last, now.Add(c.after))
		if got := string(a.Level) + ": " + a.Text; !strings.HasPrefix(got, c.want) || a.About != "run housekeeping" {
			t.Errorf("%s: %s %q, want %q", name, a.About, got, c.want)
		}
	}
}
