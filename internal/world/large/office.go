package large

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	waiting []waiting
	// formsFail says that Slack may not open forms now.
	formsFail bool
	deleted   map[string]bool // messages that people deleted, by ts
}

// standing is a message with buttons, and the version of its finding that it shows.
type standing struct {
	ts      string
	values  map[string]string // of its buttons
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
	w.deleted = map[string]bool{}
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

// shows reports whether the message of a finding had a button this morning.
func (w *World) shows(f ledger.FindingRow, button recon.Verb) bool {
	return w.buttons[f.ID].values[string(button)] != ""
}

// lookAtSlack has people see what stands in the channel of what is open.
func (w *World) lookAtSlack(open []ledger.FindingRow) {
	w.buttons = map[string]standing{}
	opened := map[string]bool{}
	for _, f := range open {
		opened[f.ID] = true
	}
	for _, m := range w.slack.Messages(destination) {
		if !bytes.Contains(m.Blocks, []byte(recon.Acknowledge)) {
			continue // what is over has no buttons
		}
		values := m.Buttons()
		var b slack.Button
		if json.Unmarshal([]byte(values[string(recon.Acknowledge)]), &b) == nil && opened[b.Finding] {
			w.buttons[b.Finding] = standing{m.TS, values, b.Version}
		}
	}
}

// byClick does what a person wants by a button of the finding's message; false says that there is
// none for it, that the finding is another one by now than the message shows, or that a form
// cannot say it. Who is the second of two approves, and does not say it anew.
func (w *World) byClick(ctx context.Context, who string, a ledger.PersonAction) (ledger.PersonAnswer, bool, error) {
	at, button := w.buttons[a.Finding], a.Verb
	if who == approver && a.Verb.Settles() {
		button = slack.Approve
	}
	value := at.values[string(button)]
	if value == "" {
		return ledger.PersonAnswer{}, false, nil
	}
	before, err := w.ledger.Finding(ctx, a.Finding)
	if err != nil {
		return ledger.PersonAnswer{}, true, err
	}
	err = w.click(ctx, slacktest.Press{By: members[who], Channel: destination, TS: at.ts, Action: string(button), Value: value}, a)
	if errors.Is(err, errNoForm) {
		w.tally.fault("form that Slack did not open")
		return ledger.PersonAnswer{}, false, nil
	}
	if err != nil {
		return ledger.PersonAnswer{}, true, err
	}
	after, err := w.ledger.Finding(ctx, a.Finding)
	if err != nil {
		return ledger.PersonAnswer{}, true, err
	}
	if before.Version != at.version {
		w.tally.fault("click on an outdated message")
		if after.Version != before.Version {
			w.fault("an outdated click does nothing", "%s: %s by %s on version %d of %d", a.Finding, button, who, at.version, before.Version)
		}
		return ledger.PersonAnswer{}, false, nil
	}
	answer := cameOf(before, after, who, a)
	switch refused := answer.Outcome == ledger.PersonRefused; {
	case refused && button == recon.Adopt && a.Action != "":
		return answer, false, nil // which action it was only the command line can say
	case refused:
		return answer, true, nil
	case a.Verb == recon.Adopt && answer.Outcome == ledger.PersonDone:
		err = w.madeBy(ctx, &answer)
	}
	w.tally.count(func(n *Numbers) { n.Buttons[button]++ })
	return answer, true, err
}

// madeBy finds out which operation was made for an effect that somebody adopted.
func (w *World) madeBy(ctx context.Context, answer *ledger.PersonAnswer) error {
	story, err := w.ledger.FindingStory(ctx, answer.Finding)
	for _, act := range story.Acts {
		if act.Verb == recon.Adopt && !act.Proposed {
			answer.Made, answer.Effect = act.Operation, act.Effect
		}
	}
	return err
}

// cameOf tells what came of a click from what the ledger holds before and after it: what the
// person is told is for people.
func cameOf(before, after ledger.FindingRow, who string, a ledger.PersonAction) ledger.PersonAnswer {
	answer := ledger.PersonAnswer{Outcome: ledger.PersonRefused, Finding: a.Finding}
	done := false
	switch a.Verb {
	case recon.CheckNow:
		done = after.Version != before.Version
	case recon.Acknowledge:
		done = after.State == recon.FindingAcknowledged
	case recon.Snooze:
		done = after.State == recon.FindingSnoozed
	case recon.Assign:
		done = after.Assignee == a.Assignee
	case recon.Reject:
		done = before.Proposal != nil && after.Proposal == nil
	default:
		done = before.State != recon.FindingSettled && after.State == recon.FindingSettled && after.SettledBy == who
		if p := after.Proposal; !done && p != nil && p.Person == who && p.Verb == a.Verb {
			answer.Outcome = ledger.PersonProposed
		}
		if done && len(after.Operations) > 0 {
			answer.Operation = after.Operations[0]
		}
	}
	if done {
		answer.Outcome = ledger.PersonDone
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
	if body, err = opened[0].Submission(entry(recon.Verb(p.Action), a)); err != nil {
		return err
	}
	return w.post(ctx, a.Finding, body, true)
}

// errNoForm is a click of which the person is told that Slack opened no form.
var errNoForm = errors.New("the form was not opened by Slack")

// entry is what a person writes into the form of a button.
func entry(button recon.Verb, a ledger.PersonAction) map[string]string {
	in := map[string]string{slack.FieldReason: a.Reason}
	switch button {
	case recon.Snooze:
		in[slack.FieldReason], in["for"] = "not now", "=24h"
	case recon.Assign:
		in["assignee"] = "=" + a.Assignee
	case recon.Happened:
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
		if status == http.StatusServiceUnavailable && w.formsFail {
			return errNoForm
		}
		if status != http.StatusOK {
			return fmt.Errorf("a click on %s was answered %d: %s", finding, status, answer)
		}
	}
	return nil
}
