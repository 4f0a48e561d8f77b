package daemon

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// Above the limit the second person must be another one, and the button says so.
func TestTwoPeopleDecideInSlackAboveTheLimit(t *testing.T) {
	t.Parallel()
	o := openOffice(t, 9000)
	m := o.message("op_1", "It did not happen…")
	o.click(ana, m, "did-not-happen")
	answer := o.submit(o.form(), map[string]string{"reason": "The bank has nothing."})
	if !strings.Contains(answer, "Proposed by ana: it did not happen. A second person must say the same, because of its amount.") {
		t.Fatalf("the answer: %s", answer)
	}
	m = o.message("op_1", "Waits for a second person, because of its amount; ana proposed: it did not happen.", "Approve…")

	o.click(ana, m, "approve")
	o.told(ana, "Refused: ana proposed it. A second, other person must approve it.")
	if n := len(o.slack.Forms()); n != 1 {
		t.Errorf("%d forms, want no form for whoever proposed", n)
	}
	// Not by way of the other button either: the same person only proposes again.
	o.click(ana, m, "did-not-happen")
	if again := o.submit(o.form(), map[string]string{"reason": "I am sure."}); !strings.Contains(again, "Proposed by ana") {
		t.Errorf("the same person again: %s", again)
	}
	if got := o.state("op_1"); got != recon.Unknown {
		t.Fatalf("one person closed it: %s", got)
	}

	o.eventually("the buttons are of the newest version", func() bool {
		body := o.press(bob, o.message("op_1", "Approve…"), "approve")
		before := len(o.slack.Forms())
		o.send(body)
		return len(o.slack.Forms()) > before
	})
	f := o.form()
	if !containsAll(f.Plain(), []string{"Approve", "Proposed by ana: it did not happen. Why: I am sure.", "90.00 EUR", "Reason"}) {
		t.Errorf("the form:\n%s", f.Plain())
	}
	if answer = o.submit(f, map[string]string{"reason": "I see the same."}); !strings.Contains(answer, "Done by bob: it did not happen, as ana proposed. Operation op_1 is failed.") {
		t.Errorf("the answer: %s", answer)
	}
	if got := o.state("op_1"); got != recon.Failed {
		t.Errorf("the operation is %s", got)
	}
	acts := o.acts("op_1")
	if len(acts) != 3 || !containsAll(acts[0], []string{`"by": "ana"`, "The bank has nothing.", `"proposed": true`}) ||
		!containsAll(acts[2], []string{`"by": "bob"`, "I see the same.", `"to": "failed"`, `"via": "slack"`}) {
		t.Errorf("the journal:\n%s", strings.Join(acts, "\n"))
	}
	o.message("op_1", "✅ Ended")
}

func TestAProposalIsRejectedInSlack(t *testing.T) {
	t.Parallel()
	o := openOffice(t, 9000)
	o.click(ana, o.message("op_1", "Release…"), "did-not-happen")
	o.submit(o.form(), map[string]string{"reason": "The bank has nothing."})
	o.click(bob, o.message("op_1", "Reject…"), "reject")
	answer := o.submit(o.form(), map[string]string{"reason": "It is there."})
	if !strings.Contains(answer, "Done by bob: what was proposed is rejected.") {
		t.Errorf("the answer: %s", answer)
	}
	m := o.message("op_1", "It happened…")
	o.eventually("the message shows no proposal", func() bool {
		m = o.message("op_1")
		return m.Value("approve") == "" && !strings.Contains(m.Plain(), "Waits for a second")
	})
	acts := o.acts("op_1")
	if len(acts) != 2 || !containsAll(acts[1], []string{`"by": "bob"`, `"verb": "reject"`, "It is there.", `"person": "ana"`, `"verb": "did-not-happen"`, `"to": "unknown"`}) {
		t.Errorf("the journal:\n%s", strings.Join(acts, "\n"))
	}
	o.click(bob, m, "did-not-happen") // the proposal counts for nothing any more
	if answer := o.submit(o.form(), map[string]string{"reason": "Now I see it."}); !strings.Contains(answer, "Proposed by bob") {
		t.Errorf("after the rejection: %s", answer)
	}
}

func TestOnlyPeopleOnTheListActInSlackAndEachByTheirRole(t *testing.T) {
	t.Parallel()
	o := openOffice(t, 1000)
	m := o.message("op_1", "Assign")
	tests := []struct {
		who    slacktest.Person
		action string
		told   string
	}{
		{nobody, "acknowledge", "Refused: T1/UNOBODY is not on the list of people. Nothing was done."},
		{nobody, "happened", "Refused: T1/UNOBODY is not on the list of people."},
		{slacktest.Person{Team: "T2", User: "UANA"}, "happened", "Refused: T2/UANA is not on the list of people."},
		{vera, "acknowledge", "Refused: vera may not do this: it takes the role operator or approver. Ask somebody who may"},
		{vera, "assign", "Refused: vera may not do this: it takes the role operator or approver. Ask somebody who may"},
		{olga, "happened", "Refused: olga may not do this: it takes the role approver. Ask somebody who may"},
		{olga, "release", "Refused: olga may not do this: it takes the role approver."},
	}
	for _, tt := range tests {
		o.click(tt.who, m, tt.action)
		o.told(tt.who, tt.told)
	}
	if n := len(o.slack.Forms()); n != 0 {
		t.Errorf("%d forms were opened", n)
	}
	if acts := o.acts("op_1"); len(acts) != 0 || o.message("op_1").Edits != 0 {
		t.Errorf("something changed:\n%s", strings.Join(acts, "\n"))
	}
	for _, want := range []string{"somebody who is not on the list of people clicked", "T1/UNOBODY"} {
		if !strings.Contains(o.log.String(), want) {
			t.Errorf("the log does not say %q", want)
		}
	}
	o.await("/metrics", 200, `reconciler_slack_actions_total\{result="stranger"\} 3`)

	// What an operator may do, with its forms.
	o.click(olga, m, "assign")
	f := o.form()
	if !containsAll(f.Plain(), []string{"Assign", "- ana", "- bob", "- olga", "- vera"}) {
		t.Errorf("the form:\n%s", f.Plain())
	}
	if answer := o.submit(f, map[string]string{"assignee": "=bob"}); !strings.Contains(answer, "Done by olga: assigned to bob.") {
		t.Errorf("the answer: %s", answer)
	}
	m = o.message("op_1", "Assigned to bob.")
	o.click(olga, m, "snooze")
	if answer := o.submit(o.form(), map[string]string{"for": "=24h", "reason": "Tomorrow."}); !strings.Contains(answer, "Done by olga: snoozed until ") {
		t.Errorf("the answer: %s", answer)
	}
	m = o.message("op_1", "💤", "Snoozed: nobody is told again before")
	o.click(olga, m, "check_now")
	o.told(olga, "Done by olga: the next sweep looks at it.")
	acts := strings.Join(o.acts("op_1"), "\n")
	if !containsAll(acts, []string{`"verb": "assign"`, `"assignee": "bob"`, `"verb": "snooze"`, "Tomorrow.", `"verb": "check_now"`}) {
		t.Errorf("the journal:\n%s", acts)
	}
}

// Ten deliveries of one click at two replicas are one action.
func TestAClickThatIsToldManyTimesCountsOnce(t *testing.T) {
	t.Parallel()
	o := openOffice(t, 1000)
	m := o.message("op_1", "Acknowledge")
	other := start(t, parse(t, clickable, o.environ), o.url)
	other.await("/readyz", 200, "")
	body := o.press(olga, m, "acknowledge")
	var all sync.WaitGroup
	for i := range 10 {
		to := o.public
		if i%2 == 1 {
			to = other.public
		}
		all.Go(func() {
			status, _, err := slacktest.Deliver(t.Context(), to+"/slack/actions", slacktest.Sign(clickSecret, time.Now(), body), body)
			if err != nil || status != http.StatusOK {
				t.Errorf("%d, %v", status, err)
			}
		})
	}
	all.Wait()
	if acts := o.acts("op_1"); len(acts) != 1 {
		t.Errorf("%d entries in the journal:\n%s", len(acts), strings.Join(acts, "\n"))
	}
	o.told(olga, "It was done before; nothing was done twice")

	// A form that is sent twice as well.
	o.click(ana, o.message("op_1", "Acknowledged"), "did-not-happen")
	for _, want := range []string{"Done by ana: it did not happen. Operation op_1 is failed.", "It was done before; nothing was done twice."} {
		if answer := o.submit(o.form(), map[string]string{"reason": "The bank has nothing."}); !strings.Contains(answer, want) {
			t.Errorf("the answer: %s, want %s", answer, want)
		}
	}
	if acts := o.acts("op_1"); len(acts) != 2 {
		t.Errorf("%d entries in the journal", len(acts))
	}
}

func TestAClickOnWhatChangedMeanwhileDoesNothing(t *testing.T) {
	t.Parallel()
	o := openOffice(t, 1000, 2000)
	old := o.message("op_1", "Acknowledge")
	o.click(ana, old, "happened") // the form stays open on a desk
	form := o.form()
	o.click(olga, old, "acknowledge")
	o.told(olga, "Done by olga")
	o.click(ana, old, "acknowledge")
	o.told(ana, "Changed meanwhile: this is about version 1 of the finding, and it is at version 2: it is acknowledged. Look at it again, then decide anew.")
	o.click(bob, old, "release")
	o.told(bob, "Changed meanwhile: this is about version 1 of the finding, and it is at version 2: it is acknowledged. Look at it again, then decide anew.")

	o.click(bob, o.message("op_1", "Acknowledged"), "did-not-happen")
	o.submit(o.form(), map[string]string{"reason": "The bank has nothing."})
	answer := o.submit(form, map[string]string{"reason": "I saw it.", "effect": "re_1"})
	if !containsAll(answer, []string{`"update"`, "Changed meanwhile: this is about version 1", "bob settled it as did-not-happen at "}) {
		t.Errorf("a form that was sent after the finding was settled: %s", answer)
	}
	if got := o.state("op_1"); got != recon.Failed {
		t.Errorf("the operation is %s", got)
	}

	// A message that somebody deleted: the click counts, and it is told anew.
	m := o.message("op_2", "Acknowledge")
	body := o.press(olga, m, "acknowledge")
	o.slack.Delete(m.TS)
	if status, _ := o.send(body); status != http.StatusOK {
		t.Errorf("a click on a deleted message: %d", status)
	}
	if anew := o.message("op_2", "Acknowledged"); anew.TS == m.TS {
		t.Error("the deleted message stands")
	}
}

func TestATypedEffectIsLookedUpBeforeItCounts(t *testing.T) {
	t.Parallel()
	o := openOffice(t, 1000)
	o.click(ana, o.message("op_1", "It happened…"), "happened")
	f := o.form()
	answer := o.submit(f, map[string]string{"reason": " ", "effect": "re_x"})
	if !containsAll(answer, []string{`"response_action":"errors"`, `"reason"`, "Say why it is so."}) {
		t.Errorf("without a reason: %s", answer)
	}
	answer = o.submit(f, map[string]string{"reason": strings.Repeat("x", 5000), "effect": "re_x"})
	if !containsAll(answer, []string{`"response_action":"errors"`, "At most 1,000 characters are kept; these are 5,000."}) {
		t.Errorf("5,000 letters: %s", answer)
	}
	answer = o.submit(f, map[string]string{"reason": "I saw it.", "effect": ""})
	if !containsAll(answer, []string{`"response_action":"errors"`, `"effect":"Look it up at the provider and write its id here."`}) {
		t.Errorf("without an effect: %s", answer)
	}
	if acts := o.acts("op_1"); len(acts) != 0 {
		t.Errorf("something was done: %s", acts)
	}
	answer = o.submit(f, map[string]string{"reason": "I saw it. <!channel> \x1b[31m", "effect": "re_typo"})
	if !strings.Contains(answer, "Proposed by ana: it happened, as re_typo. A second person must say the same, because the provider does not know that effect.") {
		t.Errorf("an effect that is not there: %s", answer)
	}
	m := o.message("op_1", "because the provider does not know that effect")
	if strings.Contains(m.Text+string(m.Blocks), "<!channel>") || o.state("op_1") != recon.Unknown {
		t.Errorf("the message calls a channel, or the operation is closed:\n%s", m.Blocks)
	}
	o.click(bob, m, "approve")
	if f := o.form(); strings.Contains(string(f.View), "mrkdwn") || !strings.Contains(f.Plain(), "I saw it. <!channel>") {
		t.Errorf("the form:\n%s", f.Plain())
	}
}

func TestWhatIsNotFromSlackIsRefused(t *testing.T) {
	t.Parallel()
	o := openOffice(t, 1000)
	click := o.press(olga, o.message("op_1", "Acknowledge"), "acknowledge")
	now := time.Now()
	form := func(payload string) []byte { return []byte(url.Values{"payload": {payload}}.Encode()) }
	sign := func(body []byte) http.Header { return slacktest.Sign(clickSecret, now, body) }
	large := []byte("payload=" + strings.Repeat("x", maxDelivery))
	tests := []struct {
		name   string
		body   []byte
		header http.Header
		status int
		text   string
	}{
		{"forged", click, slacktest.Sign("another", now, click), 401, "this is not signed by Slack within the last five minutes"},
		{"old", click, slacktest.Sign(clickSecret, now.Add(-6*time.Minute), click), 401, "this machine's clock"},
		{"of tomorrow", click, slacktest.Sign(clickSecret, now.Add(24*time.Hour), click), 401, "not signed"},
		{"unsigned", click, http.Header{}, 401, "not signed"},
		{"no form", []byte("{}"), sign([]byte("{}")), 400, "this is not what Slack sends"},
		{"no JSON", form("{"), sign(form("{")), 400, "this is not what Slack sends"},
		{"too large", large, sign(large), 413, "a delivery is at most 1048576 bytes"},
		{"something else", form(`{"type":"shortcut"}`), sign(form(`{"type":"shortcut"}`)), 200, ""},
	}
	for _, tt := range tests {
		status, text, err := slacktest.Deliver(t.Context(), o.public+"/slack/actions", tt.header, tt.body)
		if err != nil || status != tt.status || !strings.Contains(text, tt.text) || tt.text == "" && text != "" {
			t.Errorf("%s: %d %q (%v), want %d %q", tt.name, status, text, err, tt.status, tt.text)
		}
	}
	if acts := o.acts("op_1"); len(acts) != 0 {
		t.Errorf("something was done: %s", acts)
	}
	if status, _, err := slacktest.Deliver(t.Context(), o.base+"/slack/actions", sign(click), click); err != nil || status != 404 {
		t.Errorf("the private listener: %d (%v), want 404", status, err)
	}
	for result, n := range map[string]string{"bad_signature": "4", "not_readable": "2", "too_large": "1", "other": "1", "done": "0"} {
		o.await("/metrics", 200, `reconciler_slack_actions_total\{result="`+result+`"\} `+n)
	}
}

func TestWhenSlackOrTheLedgerIsAwayThePersonKnows(t *testing.T) {
	t.Parallel()
	o := openOffice(t, 1000)
	m := o.message("op_1", "Release…")
	o.slack.Spoil(slacktest.Fault{Method: "views.open", Status: 503})
	if status, text := o.send(o.press(ana, m, "release")); status != 503 || !strings.Contains(text, "Slack did not open the form. Nothing was done") {
		t.Errorf("while Slack opens no form: %d %q", status, text)
	}
	o.told(ana, "Slack did not open the form. Nothing was done: click again")
	o.slack.Spoil(slacktest.Fault{Method: "response_url", Status: 500})
	o.click(vera, m, "acknowledge") // nobody can be told, and nothing breaks
	o.eventually("the log says so", func() bool { return strings.Contains(o.log.String(), "could not be told what became of it") })
	o.click(ana, m, "release")
	if acts := o.acts("op_1"); len(acts) != 0 || o.form().For != ana {
		t.Errorf("done: %s", acts)
	}
	if err := o.stop(); err != nil {
		t.Error(err)
	}
}

func TestNobodyReleasesInSlackWhatCannotBeSentAgain(t *testing.T) {
	t.Parallel()
	o := openOffice(t, 1000)
	o.click(ana, o.message("op_1", "Release…"), "release")
	o.exec(t, `UPDATE reconciler.operations SET request = NULL`) // erased since
	answer := o.submit(o.form(), map[string]string{"reason": "The request never left."})
	if !strings.Contains(answer, "Refused: it may not be sent again: its request is not stored") || o.state("op_1") != recon.Unknown || len(o.acts("op_1")) != 0 {
		t.Errorf("the answer: %s; the operation is %s", answer, o.state("op_1"))
	}
	o.click(olga, o.message("op_1", "Acknowledge"), "acknowledge")
	if m := o.message("op_1", "Acknowledged"); m.Value("release") != "" || m.Value("happened") == "" {
		t.Errorf("it is offered:\n%s", m.Plain())
	}
}

// Support made a refund in the dashboard. It is told with all that is known, one click and a
// reason adopt it, and after that it is flagged no more.
func TestB02_WhatWasMadeByHandIsAdoptedInSlack(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	made := time.Now().Add(-40 * time.Minute).UTC().Truncate(time.Second)
	byHand := recon.Effect{
		ID: o.refund("re_B1", "B", 1500), Source: "stripe-main", System: "stripe-main", Account: "acct_1", Mode: "live", Kind: "refund",
		Status: recon.Completed, Parent: "ch_B", Money: recon.Money{Minor: 1500, Currency: "EUR"}, CreatedAt: made, CreatedBy: "support",
	}
	flag := func() {
		t.Helper()
		_, err := o.ledger.Record(t.Context(), ledger.Batch{Now: time.Now(), Effects: []recon.Effect{byHand}, Findings: []recon.Finding{{
			Kind: recon.FindOrphan, Certainty: recon.Proof, Source: "stripe-main", Effects: []recon.EffectRef{byHand.Ref()},
			Reason: "No operation of ours explains it.", Money: byHand.Money,
		}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	flag()
	m := o.message("re_B1", "15.00 EUR", "ch_B", "support", "Adopt…", "Not ours…")
	o.click(ana, m, "adopt")
	f := o.form()
	if !containsAll(f.Plain(), []string{"Adopt the effect", "re_B1", "15.00 EUR", "The operation that it belongs to", "Leave it empty and one is made for it."}) {
		t.Errorf("the form:\n%s", f.Plain())
	}
	answer := o.submit(f, map[string]string{"reason": "Support did it.", "operation": ""})
	if !strings.Contains(answer, "Done by ana: re_B1 has an operation of its own now.") {
		t.Errorf("the answer: %s", answer)
	}
	o.message("re_B1", "✅ Ended")
	flag()
	time.Sleep(3 * noticesEvery) // long enough for whoever would tell it anew
	roots := o.slack.Roots("payments-recon")
	if len(roots) != 1 || !strings.Contains(roots[0].Plain(), "✅ Ended") {
		t.Errorf("it is flagged again: %q", o.messages())
	}
}

// A provider that takes its time: Slack is answered in time, and the form shows what became
// of it afterwards, also to whoever closed it.
func TestAnAnswerThatTakesLongerThanSlackWaitsIsShownLater(t *testing.T) {
	t.Parallel()
	o := openOffice(t, 1000)
	refund := o.refund("re_slow", "op_1", 1000)
	o.click(ana, o.message("op_1", "It happened…"), "happened")
	o.stripe.Script(stripetest.Fault{Kind: stripetest.Slow, Wait: 4 * time.Second})
	began := time.Now()
	answer := o.submit(o.form(), map[string]string{"reason": "It is in the dashboard.", "effect": refund})
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("Slack waited %s", took)
	}
	if !strings.Contains(answer, "This takes a while: the provider is asked. What becomes of it is shown here.") {
		t.Errorf("the answer: %s", answer)
	}
	o.slack.Spoil(slacktest.Fault{Method: "views.update", Error: "not_found"}) // the form was closed
	o.told(ana, "Done by ana: it happened, as re_slow. Operation op_1 is succeeded.")
}

// Before the ledger has answered nothing can be done, and whoever clicks sees that.
func TestAClickWhileTheLedgerIsAwayIsNotTaken(t *testing.T) {
	t.Parallel()
	slack, err := slacktest.Start(slacktest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slack.Close)
	c := parse(t, clickable, map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": "http://127.0.0.1:1", "TOKEN": "xoxb-TESTONLY", "SLACK_URL": slack.URL(), "SIGNING": clickSecret})
	o := &office{running: start(t, c, "postgres://127.0.0.1:1/away"), slack: slack}
	body, err := slack.Click(slacktest.Press{By: ana, Channel: "payments-recon", TS: "1.000001", Action: "acknowledge", Value: `{"finding":"f1","version":1}`})
	if err != nil {
		t.Fatal(err)
	}
	if status, text := o.send(body); status != http.StatusServiceUnavailable || text != "starting: the ledger does not answer yet; try again in a moment\n" {
		t.Errorf("%d %q", status, text)
	}
}

// A call whose answer was lost may be sent once more, under the same key, because a person
// says so in Slack.
func TestARetryIsReleasedInSlackWhileItsKeyServes(t *testing.T) {
	t.Parallel()
	o := openOffice(t)
	conn, err := pgx.Connect(t.Context(), o.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	var id, token string
	err = conn.QueryRow(t.Context(), `SELECT a ->> 'operation_id' FROM reconciler.open_operation('{"action": "refund.create", "target": "order:1",
		"parent": "ch_1", "case": "case-1", "step": 1, "amount": 1000, "currency": "EUR", "request": {"charge": "ch_1", "amount": 1000}}') AS a`).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	err = conn.QueryRow(t.Context(), `SELECT a ->> 'token'
		FROM reconciler.claim_operation(jsonb_build_object('operation_id', $1::text, 'holder', 'shop')) AS a`, id).Scan(&token)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `SELECT reconciler.finish_attempt(jsonb_build_object('operation_id', $1::text, 'token', $2::text,
		'class', 'indeterminate'))`, id, token); err != nil {
		t.Fatal(err)
	}
	_, err = o.ledger.Record(t.Context(), ledger.Batch{Now: time.Now(), Findings: []recon.Finding{{
		Kind: recon.FindUnresolved, Certainty: recon.Proof, Source: "stripe-main", Operations: []recon.OperationID{recon.OperationID(id)},
		Reason: "Nobody knows whether it happened.", Money: recon.Money{Minor: 1000, Currency: "EUR"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	o.click(ana, o.message(id, "Release…"), "release")
	if !containsAll(o.form().Plain(), []string{"Release", "Safe retry ends in ", "under the same key"}) {
		t.Errorf("the form:\n%s", o.form().Plain())
	}
	answer := o.submit(o.form(), map[string]string{"reason": "The request never left."})
	if !strings.Contains(answer, "Done by ana: it may be sent once more under the same key. Operation "+id+" is pending.") {
		t.Errorf("the answer: %s", answer)
	}
	acts := o.acts(recon.OperationID(id))
	if o.state(recon.OperationID(id)) != recon.Pending || len(acts) != 1 || !containsAll(acts[0], []string{`"by": "ana"`, "The request never left.", `"to": "pending"`}) {
		t.Errorf("it is %s:\n%s", o.state(recon.OperationID(id)), strings.Join(acts, "\n"))
	}
	if o.stripe.Writes() != 0 {
		t.Error("it was sent from here")
	}
}
