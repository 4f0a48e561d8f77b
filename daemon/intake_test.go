package daemon

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// awaitState waits until an operation is in a state, and says how long it took.
func awaitState(t *testing.T, url string, id recon.OperationID, want recon.State) time.Duration {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	began := time.Now()
	var got recon.State
	for time.Since(began) < 20*time.Second {
		o, err := l.Operation(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got = o.State; got == want {
			return time.Since(began)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s is %s, want %s", id, got, want)
	return 0
}

// Nobody asks the provider, which is out of reach, and no sweep runs.
func TestAWebhookClosesItsOperationByItself(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	c := hookedConfig(t, "http://127.0.0.1:1")
	record(t, c.Policies, url)
	d := start(t, c, url)
	d.await("/readyz", http.StatusOK, "ready")
	if status, answer := (delivery{body: refundEvent("evt_1", "re_1", "op_right")}).post(t, d.public); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	awaitState(t, url, "op_right", recon.Succeeded)
	stranger := bytes.Replace(refundEvent("evt_2", "re_2", "op_nobody"), []byte("ch_op_nobody"), []byte("ch_9"), 1)
	if status, answer := (delivery{body: stranger}).post(t, d.public); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	// They are counted one after the other, once what they count is done.
	for _, want := range []string{
		`reconciler_inbox_match_failures_total 1`,
		`reconciler_inbox_taken_in_total{result="done",source="stripe-main"} 2`, `reconciler_inbox_taken_in_total{result="waiting",source="stripe-main"} 0`,
		`reconciler_looks_total{method="event",outcome="found",source="stripe-main"} 2`,
	} {
		d.await("/metrics", 200, "^"+regexp.QuoteMeta(want)+"$")
	}
	for id, state := range map[string]inbox.State{"evt_1": inbox.Done, "evt_2": inbox.Done} {
		if rows := events(t, box(t, url), inbox.Filter{IDs: []string{id}}); len(rows) != 1 || rows[0].State != state {
			t.Errorf("%s: %+v", id, rows)
		}
	}
}

// An event that shows nothing whole has its source swept at once, long before the minute.
func TestAHintHasItsSourceSweptAtOnce(t *testing.T) {
	t.Parallel()
	stripe, err := stripetest.Start(stripetest.Options{
		Now: time.Now, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_TESTONLY"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stripe.Close)
	url := pgtest.URL(t)
	text := strings.Replace(hooked, `sweep: "off"`, `sweep: "0 0 1 1 *"`, 1)
	c := parse(t, text, map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL(), "SECRET": hookSecret, "OLD": "whsec_OLD"})
	record(t, c.Policies, url)
	d := start(t, c, url)
	d.await("/metrics", 200, `^reconciler_run_last_success_timestamp_seconds\{run="sweep/stripe-main"\} 1`)
	r, err := stripe.AddRefund(stripetest.Refund{
		Account: "acct_1", Mode: "live", Charge: "ch_op_right", Amount: 1000, Currency: "eur", Metadata: map[string]string{"op_id": "op_right"},
	})
	if err != nil {
		t.Fatal(err)
	}
	hint := bytes.Replace(refundEvent("evt_1", r.ID, "op_right"), []byte(`"charge":"ch_op_right",`), nil, 1)
	if status, answer := (delivery{body: hint}).post(t, d.public); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	awaitState(t, url, "op_right", recon.Succeeded)
	if stripe.Writes() != 0 {
		t.Errorf("%d writes at the provider", stripe.Writes())
	}
}

// The provider confirms when everybody has stopped waiting: the operation is closed, and so is
// what people were told of it.
func TestB106_AnEventClosesWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	stripe, _ := startFakes(t)
	url := pgtest.URL(t)
	text := strings.NewReplacer(`sweep: "off"`, `sweep: "0 0 1 1 *"`,
		"class: irreversible}", "class: irreversible, unresolved_after: 10m, give_up_after: 30m}").Replace(hooked)
	c := parse(t, text, map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL(), "SECRET": hookSecret, "OLD": "whsec_OLD"})
	record(t, c.Policies, url)
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// Without a mark no look can say that it is absent.
	if _, err := l.Pool().Exec(t.Context(), "UPDATE reconciler.operations SET marks = '{}'"); err != nil {
		t.Fatal(err)
	}
	d := start(t, c, url)
	standing := func(state recon.State, want recon.FindingState) {
		t.Helper()
		awaitState(t, url, "op_right", state)
		story, err := l.Story(t.Context(), "op_right")
		if err != nil || len(story.Findings) != 1 || story.Findings[0].Kind != recon.FindUnresolved || story.Findings[0].State != want {
			t.Fatalf("%s: %+v, %v, want one that is %s", state, story.Findings, err, want)
		}
	}
	standing(recon.ManualReview, recon.FindingOpen)
	if status, answer := (delivery{body: refundEvent("evt_1", "re_1", "op_right")}).post(t, d.public); status != http.StatusOK {
		t.Fatalf("%d %s", status, answer)
	}
	standing(recon.Succeeded, recon.FindingEnded)
	wantStates(t, url, map[recon.OperationID]recon.State{"op_wrong": recon.ManualReview})
}
