package daemon

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

func TestPartsStopInReverseOrderAndOneThatFailsStopsNoOther(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	var stopped []string
	life := lifecycle{log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, name := range []string{"first", "second", "third"} {
		life.started(name, func(context.Context) error {
			stopped = append(stopped, name)
			if name == "second" {
				return errors.New("stuck")
			}
			return nil
		})
	}
	life.stop(t.Context())
	if diff := cmp.Diff([]string{"third", "second", "first"}, stopped); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(log.String(), "part=second") || !strings.Contains(log.String(), "error=stuck") {
		t.Errorf("the log does not name what failed: %s", &log)
	}
}

func TestAServiceIsWaitedForNoLongerThanItsBound(t *testing.T) {
	t.Parallel()
	hung := make(chan struct{})
	t.Cleanup(func() { close(hung) })
	stop := service(t.Context(), func(context.Context) { <-hung })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop: %v", err)
	}
}

// One that knows of no bound is left behind, and the others are still stopped.
func TestAPartThatNeverEndsKeepsNoOtherFromItsEnd(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	hung := make(chan struct{})
	t.Cleanup(func() { close(hung) })
	first := false
	life := lifecycle{log: slog.New(slog.NewTextHandler(&log, nil))}
	life.started("first", func(context.Context) error { first = true; return nil })
	life.started("deaf", func(context.Context) error { <-hung; return nil })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	life.stop(ctx)
	if !first || !strings.Contains(log.String(), "part=deaf") || !strings.Contains(log.String(), "did not stop well") {
		t.Errorf("the first was stopped: %t\n%s", first, &log)
	}
}

func TestTheLastDueTimeIsFoundHoweverRareItIs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 9, 0, 30, 0, time.UTC)
	for text, want := range map[string]string{
		"\"* * * * *\"":  "2026-03-02T09:00:00Z",
		"\"15 2 * * *\"": "2026-03-02T02:15:00Z",
		"\"0 9 1 * *\"":  "2026-03-01T09:00:00Z",
		"\"0 0 1 1 *\"":  "2026-01-01T00:00:00Z",
		"\"CRON_TZ=America/New_York 30 1 * * *\"": "2026-03-02T06:30:00Z",
	} {
		c := parse(t, "schedule: {sweep: "+text+"}\n", nil)
		if got := lastDue(c.Schedule.Sweep, now).UTC().Format(time.RFC3339); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if got := lastDue(config.Spec{Text: "off"}, now); !got.IsZero() {
		t.Errorf("off: %v", got)
	}
}

func TestB89_TheRepeatedHourOfAutumnIsOneTick(t *testing.T) {
	t.Parallel()
	spec := parse(t, "schedule: {sweep: \"CRON_TZ=America/New_York 30 1 * * *\"}\n", nil).Schedule.Sweep
	ticks := map[string]bool{}
	for at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC); at.Before(time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)); at = at.Add(time.Minute) {
		if due := lastDue(spec, at); due.Equal(at) {
			ticks[spec.Tick(due)] = true
		}
	}
	if len(ticks) != 1 {
		t.Errorf("ticks %v", ticks)
	}
}

func TestMetricsKeepTheConventions(t *testing.T) {
	t.Parallel()
	c := parse(t, oneSource, map[string]string{"KEY": "sk_live_x", "STRIPE_URL": "http://127.0.0.1:1"})
	m := newMetrics(c)
	problems, err := testutil.GatherAndLint(m.registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, series := range f.Metric {
			for _, label := range series.Label {
				if slices.Contains([]string{"job", "operation_id", "tenant"}, label.GetName()) {
					t.Errorf("%s has the label %s", f.GetName(), label.GetName())
				}
			}
		}
	}
}

func TestGaugesShowTheSnapshot(t *testing.T) {
	t.Parallel()
	c := parse(t, oneSource, map[string]string{"KEY": "sk_live_x", "STRIPE_URL": "http://127.0.0.1:1"})
	g := newGauges(c)
	at := time.UnixMilli(1_772_442_000_500)
	g.set(ledger.Snapshot{
		At: at,
		Operations: []ledger.OperationGauge{
			{Source: "stripe-main", Action: "refund.create", State: recon.Unknown, Count: 3, OldestUnknown: at.Add(-time.Hour), OldestInFlight: at.Add(-2 * time.Hour)},
			{Source: "stripe-main", Action: "refund.create", State: recon.InProgress, Count: 2, OldestUnknown: at.Add(-3 * time.Hour)},
			{Source: "stripe-old", Action: "letter.send", State: recon.ManualReview, Count: 1},
		},
		Findings:       map[recon.FindingKind]int64{recon.FindMismatch: 4},
		BlindSince:     map[recon.SourceName]time.Time{"stripe-main": at},
		RunLastSuccess: map[string]time.Time{"sweep/stripe-main": at, "sweep/stripe-old": at},
	})
	const want = `
# HELP reconciler_findings Findings that have not ended and are not settled.
# TYPE reconciler_findings gauge
reconciler_findings{kind="blind"} 0
reconciler_findings{kind="conflict"} 0
reconciler_findings{kind="duplicate"} 0
reconciler_findings{kind="failing"} 0
reconciler_findings{kind="mismatch"} 4
reconciler_findings{kind="missing"} 0
reconciler_findings{kind="never_sent"} 0
reconciler_findings{kind="orphan"} 0
reconciler_findings{kind="reversed"} 0
reconciler_findings{kind="unresolved"} 0
# HELP reconciler_oldest_in_flight_operation_timestamp_seconds Since when the oldest operation is unknown whose effect is known and still in flight; 0: there is none.
# TYPE reconciler_oldest_in_flight_operation_timestamp_seconds gauge
reconciler_oldest_in_flight_operation_timestamp_seconds{action="letter.send",source="stripe-old"} 0
reconciler_oldest_in_flight_operation_timestamp_seconds{action="refund.create",source="stripe-main"} 1.7724348005e+09
# HELP reconciler_oldest_unknown_operation_timestamp_seconds Since when the oldest operation is unknown of which no effect is known; 0: there is none.
# TYPE reconciler_oldest_unknown_operation_timestamp_seconds gauge
reconciler_oldest_unknown_operation_timestamp_seconds{action="letter.send",source="stripe-old"} 0
reconciler_oldest_unknown_operation_timestamp_seconds{action="refund.create",source="stripe-main"} 1.7724312005e+09
# HELP reconciler_operations Open operations.
# TYPE reconciler_operations gauge
reconciler_operations{action="letter.send",source="stripe-old",state="in_progress"} 0
reconciler_operations{action="letter.send",source="stripe-old",state="manual_review"} 1
reconciler_operations{action="letter.send",source="stripe-old",state="pending"} 0
reconciler_operations{action="letter.send",source="stripe-old",state="unknown"} 0
reconciler_operations{action="refund.create",source="stripe-main",state="in_progress"} 2
reconciler_operations{action="refund.create",source="stripe-main",state="manual_review"} 0
reconciler_operations{action="refund.create",source="stripe-main",state="pending"} 0
reconciler_operations{action="refund.create",source="stripe-main",state="unknown"} 3
# HELP reconciler_run_last_success_timestamp_seconds When the run last ended well; 0: never.
# TYPE reconciler_run_last_success_timestamp_seconds gauge
reconciler_run_last_success_timestamp_seconds{run="audit/stripe-main"} 0
reconciler_run_last_success_timestamp_seconds{run="housekeeping"} 0
reconciler_run_last_success_timestamp_seconds{run="reverify/stripe-main"} 0
reconciler_run_last_success_timestamp_seconds{run="sweep/stripe-main"} 1.7724420005e+09
`
	names := []string{
		"reconciler_findings", "reconciler_oldest_in_flight_operation_timestamp_seconds",
		"reconciler_oldest_unknown_operation_timestamp_seconds", "reconciler_operations", "reconciler_run_last_success_timestamp_seconds",
	}
	if err := testutil.CollectAndCompare(g, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestTheMetricsPageTellsEveryMetric(t *testing.T) {
	t.Parallel()
	page := MetricsPage()
	for _, want := range []string{
		"| `reconciler_looks_total` | source, method, outcome | Looks at a source, by how it was asked and what came of it. |",
		"| `reconciler_ledger_snapshot_timestamp_seconds` |  | When the ledger was last read for these gauges; 0: not yet. |",
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("want %s in:\n%s", want, page)
		}
	}
}

func TestALongRunGivesItsSourceBackBetweenSlices(t *testing.T) {
	t.Parallel()
	var ticks []string
	run := sliced(func(_ context.Context, o sweep.Options) (sweep.Outcome, error) {
		ticks = append(ticks, o.Tick)
		if len(ticks) == 1 {
			return sweep.Outcome{Claimed: o.Limit, Kept: o.Limit}, nil
		}
		return sweep.Outcome{Claimed: 3, Kept: 2, Succeeded: 1}, nil
	})
	sum, err := run(t.Context(), sweep.Options{Tick: "2026-03-02T04:00 UTC"})
	if err != nil || sum.Claimed != slice+3 || sum.Kept != slice+2 || sum.Succeeded != 1 {
		t.Fatalf("%+v, %v", sum, err)
	}
	if diff := cmp.Diff([]string{"2026-03-02T04:00 UTC", ""}, ticks); diff != "" {
		t.Errorf("ticks (-want +got):\n%s", diff)
	}
}

// startFakes starts a Stripe with one account and a Slack, which end with the test.
func startFakes(t *testing.T) (*stripetest.Server, *slacktest.Server) {
	t.Helper()
	stripe, err := stripetest.Start(stripetest.Options{
		Now: time.Now, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_TESTONLY"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stripe.Close)
	slack, err := slacktest.Start(slacktest.Options{Token: "xoxb-TESTONLY"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slack.Close)
	return stripe, slack
}
