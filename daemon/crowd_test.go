package daemon

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

const sweepsOnly = "schedule: {audit: off, reverify: off}\n"

// However many replicas start at the same moment, one of them sweeps: the provider is asked
// as often as by one alone, and nobody takes that for a fault.
func TestB94_TwentyReplicasThatStartAtOnceAreOneSweeper(t *testing.T) {
	t.Parallel()
	stripe, err := stripetest.Start(stripetest.Options{
		Now: time.Now, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_TESTONLY"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stripe.Close)
	c := parse(t, oneSource+sweepsOnly, map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL()})
	url := pgtest.URL(t)
	record(t, c.Policies, url)
	if _, err := stripe.AddRefund(stripetest.Refund{
		Account: "acct_1", Mode: "live", Charge: "ch_op_right", Amount: 1000, Currency: "eur",
		Created: time.Now().Add(-time.Hour), Metadata: map[string]string{"op_id": "op_right"},
	}); err != nil {
		t.Fatal(err)
	}
	var replicas []*running
	for range 20 {
		replicas = append(replicas, start(t, c, url))
	}
	for _, r := range replicas {
		r.await("/readyz", 200, "ready")
	}
	replicas[0].await("/metrics", 200, `^reconciler_run_last_success_timestamp_seconds\{run="sweep/stripe-main"\} 1`)
	for n, r := range replicas {
		if err := r.stop(); err != nil {
			t.Errorf("replica %d: %v", n, err)
		}
		for line := range strings.Lines(r.log.String()) {
			if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"level":"WARN"`) {
				t.Errorf("replica %d says %s", n, line)
			}
		}
	}
	wantStates(t, url, map[recon.OperationID]recon.State{"op_right": recon.Succeeded}) // and no tick twice
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	runs, err := l.LastRuns(t.Context(), "sweep/stripe-main", 100)
	if err != nil {
		t.Fatal(err)
	}
	// Two questions, and before a replica's first one whose key it is.
	if calls := len(stripe.Calls()); calls > 3*len(runs) {
		t.Errorf("%d requests in %d runs", calls, len(runs))
	}
}

// A new configuration that comes while a run is under way ends that run before it begins
// its own: never two at once.
func TestB87_ANewConfigurationStartsNoSecondRunBesideTheOneUnderWay(t *testing.T) {
	t.Parallel()
	stripe, err := stripetest.Start(stripetest.Options{
		Now: time.Now, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_TESTONLY"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stripe.Close)
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	stripe.Script(stripetest.Fault{Kind: stripetest.Slow, Hold: hold, Times: 1})
	environ := map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL()}
	url := pgtest.URL(t)
	record(t, parse(t, oneSource, environ).Policies, url)
	r := startReloading(t, environ, url, oneSource+sweepsOnly)
	for deadline := time.Now().Add(30 * time.Second); len(stripe.Calls()) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("nothing is asked:\n%s", r.log)
		}
	}
	r.reload(oneSource+sweepsOnly+"limits: {changes_per_run: 7}\n", "the new configuration holds")
	r.await("/metrics", 200, `^reconciler_run_last_success_timestamp_seconds\{run="sweep/stripe-main"\} 1`)
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var all, cut, together int
	err = conn.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE a.outcome = 'abandoned'), count(*) FILTER (WHERE EXISTS (
			SELECT FROM reconciler.runs b WHERE b.name = a.name AND b.run_id <> a.run_id AND b.started_at >= a.started_at AND b.started_at < a.finished_at))
		FROM reconciler.runs a WHERE a.name = 'sweep/stripe-main'`).Scan(&all, &cut, &together)
	if err != nil || all < 2 || cut != 1 || together != 0 {
		t.Errorf("%d runs, %d of them cut short, %d beside another; %v\n%s", all, cut, together, err, r.log)
	}
}
