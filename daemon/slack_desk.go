package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// clickDesk does what people click, as whoever the list of people says they are. The
// ledger holds all rules; what is asked here first only saves people a form in vain.
type clickDesk struct {
	config *config.Config
	ledger *ledger.Ledger
	log    *slog.Logger
}

// viaSlack is how the journal says by which way a person acted.
const viaSlack = "slack"

// do does one action. It gives what the person is told, also where nothing was done.
func (d *clickDesk) do(ctx context.Context, app *slack.Notifier, a slack.Action) outcome {
	people, err := d.ledger.People(ctx)
	if err != nil {
		return d.failed(a, err)
	}
	person, known := byAccounts(people, a.Accounts)
	switch {
	case !known:
		d.log.Warn("somebody who is not on the list of people clicked", "account", a.Accounts[0], "verb", string(a.Verb), "finding", a.Finding)
		return outcome{result: clickStranger, said: fmt.Sprintf("Refused: %s is not on the list of people. Nothing was done. "+
			"Whoever keeps the configuration of reconciler can add it to people.", a.Accounts[0])}
	case a.Sort == slack.Submission:
		return d.submitted(ctx, person, a)
	case a.Verb == recon.Acknowledge || a.Verb == recon.CheckNow:
		return d.decided(ctx, a, ledger.PersonAction{Verb: a.Verb, Person: person.Name})
	}
	return d.ask(ctx, app, people, person, a)
}

func byAccounts(people ledger.People, accounts []string) (ledger.Person, bool) {
	for _, account := range accounts {
		if p, ok := people.BySlack(account); ok {
			return p, true
		}
	}
	return ledger.Person{}, false
}

// submitted does what a form says.
func (d *clickDesk) submitted(ctx context.Context, person ledger.Person, a slack.Action) outcome {
	if faults := a.Entry.Faults(a.Verb); len(faults) > 0 {
		return outcome{result: clickForm, faults: faults}
	}
	e := a.Entry
	p := ledger.PersonAction{Verb: a.Verb, Person: person.Name, Reason: e.Reason, Effect: e.Effect, Operation: e.Operation, Action: e.Action, Assignee: e.Assignee}
	if a.Verb == recon.Snooze {
		span, err := recon.ParseDuration(e.For)
		if err == nil {
			p.Until, err = d.ledger.Now(ctx)
		}
		if err != nil {
			return d.failed(a, err)
		}
		p.Until = p.Until.Add(span.Std())
	}
	return d.decided(ctx, a, p)
}

// decided tells the ledger, and the person what it answers.
func (d *clickDesk) decided(ctx context.Context, a slack.Action, p ledger.PersonAction) outcome {
	p.Finding, p.Version, p.Key, p.Via = a.Finding, a.Version, a.Key, viaSlack
	now, err := Clock(ctx, d.ledger)
	if err != nil {
		return d.failed(a, err)
	}
	answer, err := NewDesk(d.config, d.ledger, now, nil).Do(ctx, p)
	if err != nil {
		return d.failed(a, err)
	}
	d.log.Info("somebody acted in Slack", "finding", a.Finding, "verb", string(p.Verb), "person", p.Person, "outcome", string(answer.Outcome), "repeated", answer.Repeated)
	o := outcome{result: string(answer.Outcome), said: answer.Text(p.Verb, d.config.Zone)}
	if field := a.Entry.Typed(p.Verb); answer.Outcome == ledger.PersonRefused && field != "" {
		return outcome{result: o.result, faults: map[string]string{field: o.said}} // the form stays, to be mended
	}
	return o
}

// ask opens the form that a click needs.
func (d *clickDesk) ask(ctx context.Context, app *slack.Notifier, people ledger.People, person ledger.Person, a slack.Action) outcome {
	f, err := d.ledger.FindingStory(ctx, a.Finding)
	if err != nil {
		return d.failed(a, err)
	}
	if no := d.inVain(f.FindingRow, person, a); no.Outcome != "" {
		return outcome{result: string(no.Outcome), said: no.Text(a.Verb, d.config.Zone)}
	}
	now, err := d.ledger.Now(ctx)
	if err != nil {
		return d.failed(a, err)
	}
	form := slack.Form{Verb: a.Verb, Button: a.Button, Answer: a.Answer, About: about(f, now, d.config.Zone), Effect: effectOf(f), Person: person.Name}
	switch a.Verb {
	case recon.Assign:
		form.People = names(people)
	case slack.Approve, recon.Reject:
		form.Proposal = f.Proposal
	}
	if err := app.Open(ctx, a.Trigger, form); err != nil {
		d.log.Warn("a form could not be opened in Slack", "finding", a.Finding, "verb", string(a.Verb), "error", err.Error())
		const text = "Slack did not open the form. Nothing was done: click again, or use `reconciler findings`."
		return outcome{result: clickNotDone, said: text, failed: text}
	}
	return outcome{result: clickForm}
}

// inVain says why a form need not be opened; an answer without outcome: it must.
func (d *clickDesk) inVain(f ledger.FindingRow, person ledger.Person, a slack.Action) ledger.PersonAnswer {
	no := func(outcome ledger.PersonOutcome, reason, next string) ledger.PersonAnswer {
		return ledger.PersonAnswer{Outcome: outcome, Finding: f.ID, Version: f.Version, State: f.State, Person: person.Name, Reason: reason, Next: next}
	}
	needs := []string{"approver"}
	if a.Verb == recon.Snooze || a.Verb == recon.Assign {
		needs = []string{"operator", "approver"}
	}
	switch p := f.Proposal; {
	case !slices.Contains(needs, person.Role):
		return no(ledger.PersonRefused, fmt.Sprintf("%s may not do this: it takes the role %s", person.Name, strings.Join(needs, " or ")),
			"Ask somebody who may, or have the list of people changed.")
	case a.Version != f.Version:
		return no(ledger.ChangedMeanwhile, fmt.Sprintf("this is about version %d of the finding, and it is at version %d: %s",
			a.Version, f.Version, howItStands(f, d.config.Zone)), "Look at it again, then decide anew.")
	case !f.Open():
		return no(ledger.PersonRefused, howItStands(f, d.config.Zone), "Nothing is left to do here; it opens again if what was observed changes.")
	case a.Verb != slack.Approve && a.Verb != recon.Reject:
	case p == nil:
		return no(ledger.PersonRefused, "nothing is proposed any more", "Decide anew.")
	case a.Verb == slack.Approve && p.Person == person.Name:
		return no(ledger.PersonRefused, person.Name+" proposed it", "A second, other person must approve it.")
	}
	return ledger.PersonAnswer{}
}

// howItStands says in a sentence how a finding stands.
func howItStands(f ledger.FindingRow, zone *time.Location) string {
	switch f.State {
	case recon.FindingSettled:
		return fmt.Sprintf("%s settled it as %s at %s", f.SettledBy, f.SettledAs, recon.TimeText(f.SettledAt, zone))
	case recon.FindingEnded:
		return fmt.Sprintf("it ended by itself at %s: %s", recon.TimeText(f.EndedAt, zone), f.Ending)
	}
	return "it is " + string(f.State)
}

// about says what a form decides on.
func about(f ledger.FindingStory, now time.Time, zone *time.Location) []string {
	lines := []string{f.Kind.Text()}
	for _, s := range f.Stories {
		lines = append(lines, s.Title()+", "+s.Operation.State.Text(), "operation "+recon.Shorten(string(s.Operation.ID), 120))
		if safe := s.SafeRetry(now, zone); safe != "" && len(f.Stories) == 1 {
			lines = append(lines, safe)
		}
	}
	for _, e := range f.Effects {
		line := recon.Noun(e.Kind) + " " + recon.Shorten(e.ID, 120) + ", " + e.Status.Text()
		if !e.Money.IsZero() {
			line += ", " + e.Money.Text(nil)
		}
		lines = append(lines, line)
	}
	return lines
}

// effectOf is the effect that the finding is about, where there is exactly one.
func effectOf(f ledger.FindingStory) string {
	switch {
	case len(f.FindingRow.Effects) == 1:
		return f.FindingRow.Effects[0].ID
	case len(f.Stories) == 1:
		return f.Stories[0].Operation.EffectID
	}
	return ""
}

// names are those of the people, each once.
func names(people ledger.People) []string {
	var list []string
	for _, p := range people.People {
		if !slices.Contains(list, p.Name) {
			list = append(list, p.Name)
		}
	}
	return list
}

// failed is what is told where the ledger or a provider's client failed. Whether it was
// done may then be unknown; the finding's version keeps a second click from doing it twice.
func (d *clickDesk) failed(a slack.Action, err error) outcome {
	d.log.Warn("what somebody clicked was not done", "finding", a.Finding, "verb", string(a.Verb), "error", err.Error())
	var usage *ledger.UsageError
	var role *ledger.RoleError
	var gone *ledger.NotFoundError
	switch {
	case errors.As(err, &usage), errors.As(err, &role), errors.As(err, &gone):
		return outcome{result: string(ledger.PersonRefused), said: "Refused: " + strings.TrimSuffix(err.Error(), ".") + "."}
	}
	if a.Sort == slack.Submission { // the form stays, with what was written into it
		return outcome{result: clickNotDone, faults: map[string]string{
			slack.FieldReason: "It could not be done now: the ledger does not answer. Send it again in a minute; nothing is done twice."}}
	}
	const text = "It could not be done now: the ledger does not answer. Look at the finding and click again in a minute; nothing is done twice."
	return outcome{result: clickNotDone, said: text, failed: text}
}
