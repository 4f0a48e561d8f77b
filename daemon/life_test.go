package daemon

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// A whole life: operations are recorded, the daemon starts, sweeps at once, closes what
// it can prove, tells a person of what it cannot, and a second replica adds nothing.
func TestADaemonSweepsAtOnceAndTellsWhatNeedsAPerson(t *testing.T) {
	t.Parallel()
	stripe, slack := startFakes(t)
	c := parse(t, oneSource+`
escalation:
  destinations: [{name: recon, kind: slack, settings: {channel: "#payments-recon", token: "${TOKEN}", api_url: "${SLACK_URL}"}}]
`, map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL(), "TOKEN": "xoxb-TESTONLY", "SLACK_URL": slack.URL()})
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
	first := start(t, c, url)
	second := start(t, c, url)
	body := first.await("/metrics", 200, `^reconciler_run_last_success_timestamp_seconds\{run="sweep/stripe-main"\} 1`)
	if !strings.Contains(body, `reconciler_operations{action="refund.create",source="stripe-main",state="manual_review"} 1`) {
		body = first.await("/metrics", 200, `^reconciler_operations\{action="refund.create",source="stripe-main",state="manual_review"\} 1$`)
	}
	if !strings.Contains(body, `reconciler_findings{kind="mismatch"} 1`) {
		t.Errorf("the mismatch is not counted:\n%s", body)
	}
	deadline := time.Now().Add(20 * time.Second)
	for len(slack.Messages("payments-recon")) == 0 && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
	if err := first.stop(); err != nil {
		t.Error(err)
	}
	if err := second.stop(); err != nil {
		t.Error(err)
	}
	messages := slack.Messages("payments-recon")
	if len(messages) != 1 || !strings.Contains(messages[0].Text+string(messages[0].Blocks), "op_wrong") {
		t.Fatalf("messages %+v\n%s\n%s", messages, first.log, second.log)
	}
	wantStates(t, url, map[recon.OperationID]recon.State{"op_right": recon.Succeeded, "op_wrong": recon.ManualReview})
	if stripe.Writes() != 0 {
		t.Errorf("%d writes at the provider", stripe.Writes())
	}
	for _, text := range []string{first.log.String(), second.log.String(), messages[0].Text, string(messages[0].Blocks)} {
		if strings.Contains(text, "TESTONLY") {
			t.Errorf("shows a secret:\n%s", text)
		}
	}
}

// record writes two operations whose answers were lost, one hour ago.
func record(t *testing.T, policies []recon.Policy, url string) {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := l.ApplyPolicies(t.Context(), policies, time.Now()); err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, id := range []recon.OperationID{"op_right", "op_wrong"} {
		line, err := recon.MarshalOperation(recon.Operation{
			ID: id, Source: "stripe-main", Action: "refund.create", Target: "order:" + string(id), Parent: "ch_" + string(id),
			Money: recon.Money{Minor: 1000, Currency: "EUR"}, State: recon.Unknown, Account: "acct_1", Mode: "live",
			CreatedAt: time.Now().Add(-time.Hour), SentAt: time.Now().Add(-time.Hour), Marks: []recon.Mark{recon.MarkReference},
		})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	r, err := l.Import(t.Context(), strings.NewReader(lines.String()), time.Now())
	if err != nil || r.Imported != 2 {
		t.Fatalf("import: %+v, %v", r, err)
	}
}

func wantStates(t *testing.T, url string, want map[recon.OperationID]recon.State) {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for id, state := range want {
		story, err := l.Story(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if story.Operation.State != state {
			t.Errorf("%s is %s, want %s", id, story.Operation.State, state)
		}
	}
	runs, err := l.LastRuns(t.Context(), "sweep/stripe-main", 100)
	if err != nil {
		t.Fatal(err)
	}
	ticks := map[string]bool{}
	for _, r := range runs {
		if ticks[r.Tick] {
			t.Errorf("tick %s ran twice", r.Tick)
		}
		ticks[r.Tick] = true
	}
}
