package large

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/daemon"
	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	destination = "payments-recon"
	slackToken  = "xoxb-TESTONLY"
	slackSecret = "8f742231b10e8888TESTONLY"
)

// office is where people see findings in Slack, and what they click there is taken.
type office struct {
	slack  *slacktest.Server
	clicks string // address of the product's handler
	// buttons are the messages as they stood this morning, by the finding that they are about.
	buttons map[string]standing
	posted  int // clicks and forms so far
}

// standing is a message with buttons, and the version of its finding that it shows.
type standing struct {
	message slacktest.Message
	version int64
}

// clickable is what the product's handler is told of the company: where Slack is, and the
// one provider at which it looks effects up.
const clickable = `
sources:
  - {name: stripe-main, kind: stripe, settings: {system: stripe, account: acct_large, api_key: "${KEY}", api_url: "${CARDS}", marker: operation_id, per_second: 1000000}}
actions:
  refund.create: {source: stripe-main, effect: refund, class: irreversible}
escalation:
  destinations:
    - {name: payments-recon, kind: slack, settings: {channel: "#payments-recon", token: "${TOKEN}", api_url: "${SLACK}", signing_secret: "${SIGNING}"}}
`

func (w *World) openSlack() error {
	var err error
	w.slack, err = slacktest.Start(slacktest.Options{Now: w.clock.Now, Channels: []string{destination}})
	if err != nil {
		return err
	}
	w.onEnd(w.slack.Close)
	n, err := slack.New(destination, slack.Settings{
		Channel: "#" + destination, Token: recon.NewSecret(slackToken), APIURL: w.slack.URL(), SigningSecret: recon.NewSecret(slackSecret),
	})
	if err != nil {
		return err
	}
	silent := slog.New(slog.DiscardHandler)
	policy := escalation.Policy{Everybody: []string{destination}}
	w.planner = &escalation.Planner{Desk: w.ledger, Policy: policy, Now: w.clock.Now, Log: silent}
	w.notices = &outbox{Ledger: w.ledger, last: map[string]recon.Delivery{}}
	w.deliver = &escalation.Deliverer{
		Notifiers: map[string]escalation.Notifier{destination: n}, Outbox: w.notices, Stories: w.ledger, Now: w.clock.Now, Log: silent,
		Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
	return w.takeClicks(silent)
}

// takeClicks starts the product's own handler of clicks.
func (w *World) takeClicks(log *slog.Logger) error {
	c, err := config.Parse("world.yaml", []byte(clickable), func(name string) (string, bool) {
		v, ok := map[string]string{"KEY": productKey, "CARDS": w.at.cards.URL(), "TOKEN": slackToken, "SLACK": w.slack.URL(), "SIGNING": slackSecret}[name]
		return v, ok
	})
	if err != nil {
		return err
	}
	handler, err := daemon.Clicks(c, w.ledger, log)
	if err != nil {
		return err
	}
	server := httptest.NewServer(handler)
	w.onEnd(server.Close)
	w.clicks = server.URL
	return nil
}

// lookAtSlack has people see what stands in the channel of what is open.
func (w *World) lookAtSlack(open []ledger.FindingRow) {
	w.buttons = map[string]standing{}
	opened := map[string]bool{}
	for _, f := range open {
		opened[f.ID] = true
	}
	for _, m := range w.slack.Messages(destination) {
		var b slack.Button
		if json.Unmarshal([]byte(m.Value(string(recon.Acknowledge))), &b) == nil && opened[b.Finding] {
			w.buttons[b.Finding] = standing{m, b.Version}
		}
	}
}

// members are people as Slack knows them.
var members = map[string]slacktest.Person{"ana": {Team: "T1", User: "UANA"}, "bob": {Team: "T1", User: "UBOB"}}

// byClick does what a person wants by a button of the finding's message; false says that there is
// none for it, or that the finding is another one by now than the message shows.
func (w *World) byClick(ctx context.Context, who string, a ledger.PersonAction) (ledger.PersonAnswer, bool, error) {
	at, value := w.buttons[a.Finding], ""
	if a.Verb != recon.Adopt { // of which the world must know what was made
		value = at.message.Value(string(a.Verb))
	}
	if value == "" {
		return ledger.PersonAnswer{}, false, nil
	}
	before, err := w.ledger.Finding(ctx, a.Finding)
	if err != nil {
		return ledger.PersonAnswer{}, true, err
	}
	if err := w.click(ctx, slacktest.Press{By: members[who], Channel: destination, TS: at.message.TS, Action: string(a.Verb), Value: value}, a); err != nil {
		return ledger.PersonAnswer{}, true, err
	}
	after, err := w.ledger.Finding(ctx, a.Finding)
	if before.Version != at.version {
		w.tally.fault("click on an outdated message")
		if after.Version != before.Version {
			w.fault("an outdated click does nothing", "%s: %s by %s on version %d of %d", a.Finding, a.Verb, who, at.version, before.Version)
		}
		return ledger.PersonAnswer{}, false, err
	}
	return cameOf(before, after, who, a), true, err
}

// cameOf tells what came of a click from what the ledger holds before and after it: what the
// person is told is for people.
func cameOf(before, after ledger.FindingRow, who string, a ledger.PersonAction) ledger.PersonAnswer {
	answer := ledger.PersonAnswer{Outcome: ledger.PersonRefused, Finding: a.Finding}
	switch p := after.Proposal; {
	case a.Verb == recon.CheckNow, a.Verb == recon.Acknowledge && after.State == recon.FindingAcknowledged,
		a.Verb == recon.Snooze && after.State == recon.FindingSnoozed:
		answer.Outcome = ledger.PersonDone
	case a.Verb.Settles() && before.State != recon.FindingSettled && after.State == recon.FindingSettled && after.SettledBy == who:
		answer.Outcome = ledger.PersonDone
		if len(after.Operations) > 0 {
			answer.Operation = after.Operations[0]
		}
	case a.Verb.Settles() && p != nil && p.Person == who && p.Verb == a.Verb:
		answer.Outcome = ledger.PersonProposed
	}
	return answer
}

// click presses a button, and fills the form in that it may open.
func (w *World) click(ctx context.Context, p slacktest.Press, a ledger.PersonAction) error {
	w.tally.count(func(n *Numbers) { n.Clicks++ })
	forms := len(w.slack.Forms())
	body, err := w.slack.Click(p)
	if err != nil {
		return err
	}
	// What opens a form does so once.
	if err := w.post(ctx, a.Finding, body, a.Verb == recon.Acknowledge || a.Verb == recon.CheckNow); err != nil {
		return err
	}
	opened := w.slack.Forms()[forms:]
	if len(opened) == 0 {
		return nil
	}
	w.tally.count(func(n *Numbers) { n.Forms++ })
	if body, err = opened[0].Submission(entry(a)); err != nil {
		return err
	}
	return w.post(ctx, a.Finding, body, true)
}

// entry is what a person writes into a form.
func entry(a ledger.PersonAction) map[string]string {
	in := map[string]string{slack.FieldReason: a.Reason}
	if a.Verb == recon.Snooze {
		in = map[string]string{slack.FieldReason: "not now", "for": "=24h"}
	}
	if a.Effect != "" {
		in["effect"] = a.Effect
	}
	return in
}

// post delivers a click or a form as Slack does, signed, and now and then twice where it may be.
// Now and then a stranger sends it first, which must be refused.
func (w *World) post(ctx context.Context, finding string, body []byte, again bool) error {
	w.posted++
	if w.posted%5 == 0 {
		w.tally.fault("click that a stranger signed")
		status, _, err := slacktest.Deliver(ctx, w.clicks, slacktest.Sign("somebody else's", time.Now(), body), body)
		if err != nil {
			return err
		}
		if status != http.StatusUnauthorized {
			w.fault("a forged click is refused", "%s: it was answered %d", finding, status)
			return nil // what it did is done
		}
	}
	times := 1
	if again && w.posted%3 == 0 {
		w.tally.fault("click that came twice")
		times = 2
	}
	for range times {
		status, answer, err := slacktest.Deliver(ctx, w.clicks, slacktest.Sign(slackSecret, time.Now(), body), body)
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			return fmt.Errorf("a click on %s was answered %d: %s", finding, status, answer)
		}
	}
	return nil
}
