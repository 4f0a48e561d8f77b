package daemon

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

const (
	clickSecret = "8f742231b10e8888TESTONLY"
	// clickable tells two people in Slack, who may decide, and others, who may not.
	clickable = `
listen: {public: "127.0.0.1:0", private: "127.0.0.1:0"}
schedule: {sweep: "off", reverify: "off", audit: "off"}
sources:
  - {name: stripe-main, kind: stripe, settings: {account: acct_1, api_key: "${KEY}", api_url: "${STRIPE_URL}", marker: op_id}}
actions:
  refund.create: {source: stripe-main, effect: refund, class: irreversible}
people:
  - {name: ana, slack: T1/UANA, role: approver}
  - {name: bob, slack: T1/UBOB, role: approver}
  - {name: olga, slack: T1/UOLGA, role: operator}
  - {name: vera, slack: T1/UVERA, role: viewer}
escalation:
  destinations:
    - {name: recon, kind: slack, settings: {channel: "#payments-recon", token: "${TOKEN}", api_url: "${SLACK_URL}", signing_secret: "${SIGNING}"}}
  approve_above: {EUR: 5000}
`
)

var (
	ana    = slacktest.Person{Team: "T1", User: "UANA"}
	bob    = slacktest.Person{Team: "T1", User: "UBOB"}
	olga   = slacktest.Person{Team: "T1", User: "UOLGA"}
	vera   = slacktest.Person{Team: "T1", User: "UVERA"}
	nobody = slacktest.Person{Team: "T1", User: "UNOBODY"}
)

// office is a daemon whose findings people see in Slack.
type office struct {
	*running
	slack  *slacktest.Server
	stripe *stripetest.Server
	ledger *ledger.Ledger
	url    string
	// environ is what the configuration is filled in with.
	environ map[string]string
}

// openOffice starts one that has a finding on an operation of each amount: op_1, op_2.
func openOffice(t *testing.T, amounts ...int64) *office {
	t.Helper()
	stripe, slack := startFakes(t)
	o := &office{slack: slack, stripe: stripe, url: pgtest.URL(t), environ: map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL(),
		"TOKEN": "xoxb-TESTONLY", "SLACK_URL": slack.URL(), "SIGNING": clickSecret}}
	c := parse(t, clickable, o.environ)
	var err error
	if o.ledger, err = ledger.Open(t.Context(), ledger.Options{URL: o.url, MaxConns: 4}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.ledger.Close)
	if _, err := o.ledger.ApplyPolicies(t.Context(), c.Policies, time.Now()); err != nil {
		t.Fatal(err)
	}
	for i, amount := range amounts {
		o.unresolved(t, i+1, amount)
	}
	o.running = start(t, c, o.url)
	o.await("/readyz", 200, "")
	return o
}

// unresolved records an operation of which nobody knows whether it happened, and says so.
func (o *office) unresolved(t *testing.T, i int, amount int64) {
	t.Helper()
	id := recon.OperationID("op_" + string(rune('0'+i)))
	line, err := recon.MarshalOperation(recon.Operation{
		ID: id, Source: "stripe-main", Action: "refund.create", Target: "order:" + string(id), Parent: "ch_" + string(id),
		Money: recon.Money{Minor: amount, Currency: "EUR"}, State: recon.Unknown, Account: "acct_1", Mode: "live",
		CreatedAt: time.Now().Add(-time.Hour), SentAt: time.Now().Add(-time.Hour), Marks: []recon.Mark{recon.MarkKey, recon.MarkReference},
		Key: "key-" + string(id), KeyExpiresAt: time.Now().Add(20 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.ledger.Import(t.Context(), strings.NewReader(string(line)+"\n"), time.Now()); err != nil {
		t.Fatal(err)
	}
	// As if it had been opened with its request, which alone can be sent again.
	o.exec(t, `UPDATE reconciler.operations SET request = '{}' WHERE operation_id = $1`, string(id))
	_, err = o.ledger.Record(t.Context(), ledger.Batch{Now: time.Now(), Findings: []recon.Finding{{
		Kind: recon.FindUnresolved, Certainty: recon.Proof, Source: "stripe-main", Operations: []recon.OperationID{id},
		Reason: "Nobody knows whether it happened.", Money: recon.Money{Minor: amount, Currency: "EUR"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
}

// exec changes what the ledger holds, by a way that people do not have.
func (o *office) exec(t *testing.T, sql string, arguments ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), o.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), sql, arguments...); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until something is so.
func (o *office) eventually(what string, so func() bool) {
	o.Helper()
	for deadline := time.Now().Add(20 * time.Second); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			o.Fatalf("not within 20 s: %s\nmessages: %+v\ntold: %+v\n%s", what, o.messages(), o.slack.Told(), o.log)
		}
	}
}

func (o *office) messages() []string {
	var list []string
	for _, m := range o.slack.Messages("") {
		list = append(list, m.Plain())
	}
	return list
}

// message is the one that is about an operation, once it says all that is wanted.
func (o *office) message(operation string, wants ...string) slacktest.Message {
	o.Helper()
	var found slacktest.Message
	o.eventually("a message about "+operation+" that says "+strings.Join(wants, ", "), func() bool {
		for _, m := range o.slack.Roots("payments-recon") {
			if found = m; strings.Contains(m.Plain(), operation) && containsAll(m.Plain(), wants) {
				return true
			}
		}
		return false
	})
	return found
}

func containsAll(s string, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

// press makes the click on a button of a message.
func (o *office) press(who slacktest.Person, m slacktest.Message, action string) []byte {
	o.Helper()
	value := m.Value(action)
	if value == "" {
		o.Fatalf("the message has no button %s:\n%s", action, m.Plain())
	}
	body, err := o.slack.Click(slacktest.Press{By: who, Channel: m.Channel, TS: m.TS, Action: action, Value: value})
	if err != nil {
		o.Fatal(err)
	}
	return body
}

// send delivers a body as Slack does.
func (o *office) send(body []byte) (int, string) {
	o.Helper()
	status, answer, err := slacktest.Deliver(o.Context(), o.public+"/slack/actions", slacktest.Sign(clickSecret, time.Now(), body), body)
	if err != nil {
		o.Fatal(err)
	}
	return status, answer
}

// click presses a button, which must be taken.
func (o *office) click(who slacktest.Person, m slacktest.Message, action string) {
	o.Helper()
	if status, answer := o.send(o.press(who, m, action)); status != 200 || answer != "" {
		o.Fatalf("%s by %s: %d %q, want an empty 200", action, who.User, status, answer)
	}
}

// form is the newest form that a click opened.
func (o *office) form() slacktest.Form {
	o.Helper()
	forms := o.slack.Forms()
	if len(forms) == 0 {
		o.Fatalf("no form was opened\n%s", o.log)
	}
	return forms[len(forms)-1]
}

// submit fills a form in and sends it; the answer must be a 200.
func (o *office) submit(f slacktest.Form, fields map[string]string) string {
	o.Helper()
	body, err := f.Submission(fields)
	if err != nil {
		o.Fatal(err)
	}
	status, answer := o.send(body)
	if status != 200 {
		o.Fatalf("the form: %d %q", status, answer)
	}
	return answer
}

// told waits until somebody alone was told something.
func (o *office) told(who slacktest.Person, part string) {
	o.Helper()
	o.eventually(who.User+" is told "+part, func() bool {
		for _, told := range o.slack.Told() {
			if told.To == who && strings.Contains(told.Text, part) {
				return true
			}
		}
		return false
	})
}

func (o *office) state(operation recon.OperationID) recon.State {
	o.Helper()
	s, err := o.ledger.Story(o.Context(), operation)
	if err != nil {
		o.Fatal(err)
	}
	return s.Operation.State
}

// acts are what people did with the operation, as its journal tells it.
func (o *office) acts(operation recon.OperationID) []string {
	o.Helper()
	s, err := o.ledger.Story(o.Context(), operation)
	if err != nil {
		o.Fatal(err)
	}
	var list []string
	for _, e := range s.Journal {
		if e.Kind == recon.EntryPerson {
			list = append(list, string(e.Body))
		}
	}
	return list
}

func (o *office) refund(id, operation string, amount int64) string {
	o.Helper()
	_, err := o.stripe.AddRefund(stripetest.Refund{
		ID: id, Account: "acct_1", Mode: "live", Charge: "ch_" + operation, Amount: amount, Currency: "eur",
		Created: time.Now().Add(-30 * time.Minute),
	})
	if err != nil {
		o.Fatal(err)
	}
	return id
}

// From the message to the closed operation, and the message tells it.
func TestAPersonDecidesInSlackWhatNobodyKnew(t *testing.T) {
	t.Parallel()
	o := openOffice(t, 1000)
	m := o.message("op_1", "It happened…")

	o.click(olga, m, "acknowledge")
	o.told(olga, "Done by olga: acknowledged until ")
	m = o.message("op_1", "Acknowledged: nobody is told again before")

	refund := o.refund("re_typed_1", "op_1", 1000)
	o.click(ana, m, "happened")
	f := o.form()
	if f.For != ana || !containsAll(f.Plain(), []string{"It happened", "op_1", "10.00 EUR", "Safe retry ends in ", "The effect's id", "Reason"}) {
		t.Errorf("the form for %v:\n%s", f.For, f.Plain())
	}
	answer := o.submit(f, map[string]string{"reason": "It is in the dashboard.", "effect": refund})
	if !containsAll(answer, []string{`"response_action":"update"`, "Done by ana: it happened, as re_typed_1. Operation op_1 is succeeded."}) {
		t.Errorf("the answer: %s", answer)
	}
	if got := o.state("op_1"); got != recon.Succeeded {
		t.Errorf("the operation is %s", got)
	}
	o.message("op_1", "✅ Ended")
	acts := o.acts("op_1")
	if len(acts) != 2 || !containsAll(acts[0], []string{`"by": "olga"`, `"acknowledge"`, `"via": "slack"`}) ||
		!containsAll(acts[1], []string{`"by": "ana"`, `"happened"`, "It is in the dashboard.", `"via": "slack"`, `"to": "succeeded"`, "look_id"}) {
		t.Errorf("the journal:\n%s", strings.Join(acts, "\n"))
	}
	if strings.Contains(o.log.String(), "TESTONLY") {
		t.Error("the log shows a secret")
	}
	o.await("/metrics", 200, `reconciler_slack_actions_total\{result="done"\} 2`)
}
