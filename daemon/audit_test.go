package daemon

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// Two replicas start on the same tick of the audit, which was missed while nobody ran: it
// is made up for once, and neither fails over the other. The next window begins at the
// last complete point, so a night without a tick leaves no gap.
func TestB114_AMissedAuditIsMadeUpForOnceByOneOfTwoReplicas(t *testing.T) {
	t.Parallel()
	stripe, err := stripetest.Start(stripetest.Options{
		Now: time.Now, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_TESTONLY"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stripe.Close)
	c := parse(t, oneSource+`schedule: {sweep: "off", reverify: "off", audit: "15 2 * * *"}`, map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL()})
	url := pgtest.URL(t)
	record(t, c.Policies, url)
	_, err = stripe.AddRefund(stripetest.Refund{
		Account: "acct_1", Mode: "live", Charge: "ch_op_right", Amount: 1000, Currency: "eur",
		Created: time.Now().Add(-time.Hour), Metadata: map[string]string{"op_id": "op_right"},
	})
	if err != nil {
		t.Fatal(err)
	}
	first, second := start(t, c, url), start(t, c, url)
	first.await("/metrics", 200, `^reconciler_run_last_success_timestamp_seconds\{run="audit/stripe-main"\} 1`)
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	if err := second.stop(); err != nil {
		t.Error(err)
	}
	for _, r := range []*running{first, second} {
		if strings.Contains(r.log.String(), "run failed") {
			t.Errorf("a replica failed:\n%s", r.log)
		}
	}
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	runs, err := l.LastRuns(t.Context(), "audit/stripe-main", 10)
	if err != nil || len(runs) != 1 || runs[0].Outcome != ledger.RunDone {
		t.Fatalf("runs %+v, %v", runs, err)
	}
	var told struct {
		Operations int
		Classes    struct{ Operations map[string]int }
		Window     struct{ To time.Time }
	}
	if err := json.Unmarshal(runs[0].Counts, &told); err != nil || told.Operations != 2 || told.Classes.Operations["matched"] != 1 {
		t.Errorf("the run's row: %s, %v", runs[0].Counts, err)
	}
	lists, err := l.ListStates(t.Context(), "stripe-main")
	if err != nil || len(lists) != 1 || lists[0].CompleteTo.Before(told.Window.To.Add(-time.Minute)) || lists[0].CompleteTo.After(time.Now()) {
		t.Errorf("the last complete point: %+v, %v; the window ended at %s", lists, err, told.Window.To)
	}
	wantStates(t, url, map[recon.OperationID]recon.State{"op_right": recon.Succeeded})
}
