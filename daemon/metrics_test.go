package daemon

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

var stripeEnviron = map[string]string{"KEY": "sk_live_x", "STRIPE_URL": "http://127.0.0.1:1"}

func TestTheLedgersCountersShowItsTallies(t *testing.T) {
	t.Parallel()
	g := newGauges(parse(t, oneSource, stripeEnviron))
	if n := testutil.CollectAndCount(g, "reconciler_operations_opened_total", "reconciler_findings_opened_total"); n != 0 {
		t.Errorf("%d series of counters before the ledger was read: the first ones would count as a reset", n)
	}
	g.set(ledger.Snapshot{At: time.Unix(1_772_442_000, 0), Tallies: []ledger.Tally{
		{Name: "operations_opened", Labels: []string{"stripe-main", "refund.create"}, N: 7},
		{Name: "operations_opened", Labels: []string{"stripe-old", "letter.send"}, N: 2},
		{Name: "repeats_prevented", Labels: []string{"in_doubt"}, N: 3},
		{Name: "confirmed_after_timeout", Labels: []string{}, N: 5},
	}})
	const want = `
# HELP reconciler_confirmed_after_timeout_total Operations without a definite answer that evidence showed to have happened.
# TYPE reconciler_confirmed_after_timeout_total counter
reconciler_confirmed_after_timeout_total 5
# HELP reconciler_operations_opened_total Operations recorded, imported ones too.
# TYPE reconciler_operations_opened_total counter
reconciler_operations_opened_total{action="letter.send",source="stripe-old"} 2
reconciler_operations_opened_total{action="refund.create",source="stripe-main"} 7
# HELP reconciler_repeats_prevented_total Repeats that were not let happen, by how the operation stood.
# TYPE reconciler_repeats_prevented_total counter
reconciler_repeats_prevented_total{reason="existing"} 0
reconciler_repeats_prevented_total{reason="in_doubt"} 3
reconciler_repeats_prevented_total{reason="in_progress"} 0
reconciler_repeats_prevented_total{reason="key_expired"} 0
reconciler_repeats_prevented_total{reason="open_elsewhere"} 0
reconciler_repeats_prevented_total{reason="succeeded"} 0
# HELP reconciler_retries_refused_after_key_expiry_total Repeats refused because the provider may have forgotten their key; part of repeats_prevented.
# TYPE reconciler_retries_refused_after_key_expiry_total counter
reconciler_retries_refused_after_key_expiry_total 0
`
	if err := testutil.CollectAndCompare(g, strings.NewReader(want), "reconciler_confirmed_after_timeout_total", "reconciler_operations_opened_total",
		"reconciler_repeats_prevented_total", "reconciler_retries_refused_after_key_expiry_total"); err != nil {
		t.Error(err)
	}
	for name, n := range map[string]int{
		"reconciler_operations_became_unknown_total": len(unknownReasons), "reconciler_operations_closed_total": 2 * len(closedBy),
		"reconciler_findings_opened_total": 10, "reconciler_reverified_total": 3, "reconciler_reversed_effects_total": 1,
	} {
		if got := testutil.CollectAndCount(g, name); got != n {
			t.Errorf("%s has %d series before anything happened, want %d", name, got, n)
		}
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(g)
	if problems, err := testutil.GatherAndLint(r); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestNoMetricHasALabelOfTheScrapeOrOfOneOperation(t *testing.T) {
	t.Parallel()
	lines := 0
	for line := range strings.Lines(MetricsPage()) {
		columns := strings.Split(line, " | ")
		if len(columns) != 3 || !strings.HasPrefix(line, "| `reconciler_") {
			continue
		}
		lines++
		for label := range strings.SplitSeq(columns[1], ", ") {
			if slices.Contains([]string{"job", "instance", "tenant", "operation", "operation_id", "key"}, label) {
				t.Errorf("%s has the label %s", columns[0], label)
			}
		}
	}
	if lines < 25 {
		t.Errorf("%d metrics were read", lines)
	}
}

func TestCountersSurviveARestart(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	c := parse(t, oneSource, stripeEnviron)
	r := start(t, c, url)
	r.await("/readyz", 200, "ready")
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) }) // the database goes with the test
	for i := range 3 {
		// What an actor in any language does.
		if _, err := conn.Exec(t.Context(), `SELECT reconciler.open_operation(jsonb_build_object('id', $1::text, 'action', 'refund.create',
			'target', 'order:1', 'request', '{}'::jsonb, 'amount', 5, 'currency', 'EUR'))`, fmt.Sprint("op-", i)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
		r = start(t, c, url)
		const series = `reconciler_operations_opened_total{action="refund.create",source="stripe-main"} `
		for code := 0; code != 200; code, _ = r.get("/readyz") {
			if _, page := r.get("/metrics"); strings.Contains(page, series) && !strings.Contains(page, series+"3\n") {
				t.Error("a scrape of the starting process shows another count than 3")
			}
		}
		if _, page := r.get("/metrics"); !strings.Contains(page, series+"3\n") {
			t.Error("the restarted process does not count the 3 operations that were opened")
		}
		r.await("/metrics", 200, `^reconciler_operations_opened_total\{action="refund.create",source="stripe-main"\} 3$`)
	}
}
