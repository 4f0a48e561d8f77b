package daemon

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// Who does not get the place stands by: it is ready, ends nothing, and takes over within
// the time for which a dead one keeps its place.
func TestB93_ThreeReplicasStandByAndTakeOverFromOneThatDied(t *testing.T) {
	t.Parallel()
	stripe, err := stripetest.Start(stripetest.Options{
		Now: time.Now, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_TESTONLY"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stripe.Close)
	c := parse(t, oneSource+`schedule: {sweep: "* * * * *", reverify: "off", audit: "off"}`, map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL()})
	url := pgtest.URL(t)
	record(t, c.Policies, url)
	if _, err := stripe.AddRefund(stripetest.Refund{
		Account: "acct_1", Mode: "live", Charge: "ch_op_right", Amount: 1000, Currency: "eur",
		Created: time.Now().Add(-time.Hour), Metadata: map[string]string{"op_id": "op_right"},
	}); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const keeps = 5 * time.Second
	if _, err := l.BeginRun(t.Context(), ledger.RunStart{Name: "sweep/stripe-main", Tick: "before", Holder: "dead/1", TTL: keeps}); err != nil {
		t.Fatal(err)
	}
	if _, err := l.HoldSource(t.Context(), "stripe-main", "dead/1", keeps); err != nil {
		t.Fatal(err)
	}
	replicas := []*running{start(t, c, url), start(t, c, url), start(t, c, url)}
	for _, r := range replicas {
		r.await("/readyz", http.StatusOK, "ready")
	}
	wantStates(t, url, map[recon.OperationID]recon.State{"op_right": recon.Unknown}) // the place is taken
	replicas[0].await("/metrics", http.StatusOK, `^reconciler_run_last_success_timestamp_seconds\{run="sweep/stripe-main"\} 1`)
	wantStates(t, url, map[recon.OperationID]recon.State{"op_right": recon.Succeeded})
	for n, r := range replicas {
		r.await("/readyz", http.StatusOK, "ready")
		if strings.Contains(r.log.String(), "run failed") {
			t.Errorf("replica %d took it for a failure:\n%s", n, r.log)
		}
	}
	for n, r := range replicas[:2] {
		if err := r.stop(); err != nil {
			t.Errorf("replica %d: %v", n, err)
		}
	}
	replicas[2].await("/readyz", http.StatusOK, "ready")
}
