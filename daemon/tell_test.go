package daemon

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation/webhook"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// The configuration's ladder reaches two destinations of different kinds, calls people by
// name, and what one of them refuses goes to the other.
func TestADaemonTellsByTheLaddersOfItsConfiguration(t *testing.T) {
	t.Parallel()
	stripe, slack := startFakes(t)
	const secret = "whsec-TESTONLY-TESTONLY"
	var mu sync.Mutex // guards bodies
	var bodies []string
	pager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get(webhook.HeaderSignature) != "v1="+webhook.Sign(secret, r.Header.Get(webhook.HeaderTimestamp), body) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, string(body))
	}))
	t.Cleanup(pager.Close)
	slack.Archive("payments-recon", true)
	c := parse(t, oneSource+`
people: [{name: ana, slack: T1/U1ANA, role: approver}]
escalation:
  destinations:
    - {name: recon, kind: slack, settings: {channel: "#payments-recon", token: "${TOKEN}", api_url: "${SLACK_URL}"}}
    - {name: pager, kind: webhook, settings: {url: "${PAGER_URL}", secret: "${SECRET}"}}
  fallback: pager
  ladders: {refund.create/mismatch: [{after: 0s, to: recon, mention: ana}]}
`, map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL(), "TOKEN": "xoxb-TESTONLY", "SLACK_URL": slack.URL(), "PAGER_URL": pager.URL, "SECRET": secret})
	url := pgtest.URL(t)
	record(t, c.Policies, url)
	for id, amount := range map[string]int64{"op_right": 1000, "op_wrong": 1001} {
		_, err := stripe.AddRefund(stripetest.Refund{
			Account: "acct_1", Mode: "live", Charge: "ch_" + id, Amount: amount, Currency: "eur",
			Created: time.Now().Add(-time.Hour), Metadata: map[string]string{"op_id": id},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	d := start(t, c, url)
	got := func() []string { mu.Lock(); defer mu.Unlock(); return append([]string(nil), bodies...) }
	for deadline := time.Now().Add(30 * time.Second); len(got()) == 0 && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	d.await("/metrics", 200, `^reconciler_notices_total\{destination="recon",result="undelivered"\} 1$`)
	d.await("/metrics", 200, `^reconciler_notices_total\{destination="pager",result="replied"\} 0$`)
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	all := got()
	if len(all) != 1 {
		t.Fatalf("the fallback got %d requests, want one\n%s", len(all), d.log)
	}
	for _, part := range []string{`"stands_in_for":"recon"`, `"mention":["ana"]`, `"kind":"mismatch"`, `"id":"op_wrong"`, `"step":"after 0 s"`} {
		if !strings.Contains(all[0], part) {
			t.Errorf("the request does not say %s:\n%s", part, all[0])
		}
	}
	if strings.Contains(d.log.String()+all[0], "TESTONLY") {
		t.Errorf("shows a secret:\n%s", d.log)
	}
}
