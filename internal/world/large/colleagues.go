package large

import (
	"context"
	"errors"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// The people of the company. The stranger is in the channel and on no list.
const (
	proposer = "ana"
	approver = "bob"
	operator = "otto"
	viewer   = "vera"
	stranger = "sid"
)

// members are people as Slack knows them.
var members = map[string]slacktest.Person{
	proposer: {Team: "T1", User: "UANA"}, approver: {Team: "T1", User: "UBOB"}, operator: {Team: "T1", User: "UOTTO"},
	viewer: {Team: "T1", User: "UVERA"}, stranger: {Team: "T1", User: "USID"},
}

// listed is the company's list of people.
var listed = ledger.People{
	People: []ledger.Person{
		{Name: proposer, Role: "approver", Slack: "T1/UANA"}, {Name: approver, Role: "approver", Slack: "T1/UBOB"},
		{Name: operator, Role: "operator", Slack: "T1/UOTTO"}, {Name: viewer, Role: "viewer", Slack: "T1/UVERA"},
	},
	ApproveAbove: map[string]int64{"EUR": 5000},
}

// meddle has somebody who may not do it click what a message offers, and now and then try
// it by the command line too.
func (w *World) meddle(ctx context.Context, f ledger.FindingRow) error {
	if w.lot(f, "meddle", 20) > 0 {
		return nil
	}
	who := []string{viewer, stranger, operator}[w.lot(f, "who", 3)]
	var offered []recon.Verb
	for _, b := range slack.Buttons() {
		if w.shows(f, b) && (who != operator || takesApprover(b)) {
			offered = append(offered, b)
		}
	}
	if len(offered) == 0 {
		return nil
	}
	return w.inVain(ctx, who, offered[w.lot(f, "button", uint32(len(offered)))], f)
}

// takesApprover reports whether an operator may not click it.
func takesApprover(button recon.Verb) bool {
	return button.Settles() || button == recon.Reject || button == slack.Approve
}

// inVain has somebody click what they may not do, and say the same by the command line where
// that knows the verb. Nothing must come of it: no form opens, and the finding stays as it is.
func (w *World) inVain(ctx context.Context, who string, button recon.Verb, f ledger.FindingRow) error {
	before, err := w.ledger.Finding(ctx, f.ID)
	if err != nil {
		return err
	}
	a := ledger.PersonAction{Finding: f.ID, Verb: button, Reason: "why not"}
	if at := w.buttons[f.ID]; w.shows(f, button) {
		w.tally.fault("click of somebody who may not")
		forms := len(w.slack.Forms())
		press := slacktest.Press{By: members[who], Channel: destination, TS: at.ts, Action: string(button), Value: at.values[string(button)]}
		if err := w.click(ctx, press, a); err != nil && !errors.Is(err, errNoForm) {
			return err
		}
		if len(w.slack.Forms()) > forms {
			w.fault(onlyWhoMay, "%s opened a form of %s on %s", who, button, f.ID)
		}
	}
	if takesApprover(button) && button != slack.Approve {
		answer, err := w.byCommand(ctx, who, a)
		if err != nil {
			return err
		}
		if answer.Outcome != ledger.PersonRefused {
			w.fault(onlyWhoMay, "%s of %s by %s: %s", button, f.ID, who, answer.Outcome)
		}
		w.tally.person(answer.Outcome)
	}
	after, err := w.ledger.Finding(ctx, f.ID)
	if err == nil && after.Version != before.Version {
		w.fault(onlyWhoMay, "%s of %s by %s changed it", button, f.ID, who)
	}
	return err
}

const onlyWhoMay = "only who may do it does it"
