package large

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// morning has people look at what is open. They know the truth, as somebody does who asks
// the bank by telephone; now and then one of them is wrong, and the rule of two must stop it.
func (w *World) morning(ctx context.Context) error {
	open, err := w.ledger.Findings(ctx, ledger.FindingFilter{
		States: []recon.FindingState{recon.FindingOpen, recon.FindingAcknowledged, recon.FindingSnoozed}, Limit: 10_000,
	})
	if err != nil {
		return err
	}
	slices.SortFunc(open, func(a, b ledger.FindingRow) int { // ids differ from life to life
		return cmp.Or(a.OpenedAt.Compare(b.OpenedAt), cmp.Compare(a.Fingerprint(), b.Fingerprint()))
	})
	w.lookAtSlack(open)
	for _, f := range open {
		if err := w.decide(ctx, f); err != nil {
			return fmt.Errorf("finding %s (%s): %w", f.ID, f.Kind, err)
		}
	}
	w.news(ctx)
	return nil
}

// decide does what somebody does with one finding this morning.
func (w *World) decide(ctx context.Context, f ledger.FindingRow) error {
	var i intent
	if len(f.Operations) > 0 {
		i = w.intents[f.Operations[0]]
	}
	today := int(w.clock.Now().Sub(epoch) / day)
	switch mood := (i.n + len(f.Effects) + today) % 5; {
	case f.Kind == recon.FindBlind, mood == 0:
		a := ledger.PersonAction{Finding: f.ID, Verb: recon.Acknowledge, Key: fmt.Sprint(f.ID, today)}
		for range 1 + i.n%2 { // a click that is delivered twice
			if _, err := w.say(ctx, "ana", a); err != nil {
				return err
			}
		}
		return nil
	case mood == 1:
		_, err := w.say(ctx, "bob", ledger.PersonAction{Finding: f.ID, Verb: recon.Snooze, Until: w.clock.Now().Add(20 * time.Hour)})
		return err
	case mood == 2 && len(f.Operations) == 1 && f.Kind == recon.FindMissing:
		if err := w.lie(ctx, f); err != nil {
			return err
		}
	}
	a, settles := w.answer(f, i)
	if !settles {
		_, err := w.say(ctx, "ana", ledger.PersonAction{Finding: f.ID, Verb: recon.CheckNow})
		return err
	}
	outcome, err := w.say(ctx, "ana", a)
	if err == nil && outcome == ledger.PersonProposed {
		_, err = w.say(ctx, "bob", a)
	}
	return err
}

// answer is what the truth says of a finding.
func (w *World) answer(f ledger.FindingRow, i intent) (ledger.PersonAction, bool) {
	a := ledger.PersonAction{Finding: f.ID, Reason: "the provider says so by telephone"}
	live := 0
	for _, d := range w.book.by(i.id) {
		if d.live(w.clock.Now()) {
			live++
		}
	}
	switch f.Kind {
	case recon.FindMissing, recon.FindReversed:
		a.Verb = recon.DidNotHappen
		return a, live == 0
	case recon.FindNeverSent:
		a.Verb = recon.DidNotHappen
		return a, live == 0 && w.sent[i.id] == 0
	case recon.FindUnresolved:
		// Only what the product has given up is left to people.
		a.Verb = recon.DidNotHappen
		return a, live == 0 && w.clock.Now().Sub(i.at) > 4*day
	case recon.FindMismatch, recon.FindDuplicate:
		a.Verb = recon.Accept
		return a, true
	case recon.FindOrphan:
		a.Verb = recon.Ignore
		if len(f.Effects) == 1 && len(f.Effects[0].ID)%2 == 0 {
			a.Verb, a.Effect = recon.Adopt, f.Effects[0].ID
		}
		if f.Source == cards {
			a.Action = refundCreate
		}
		return a, true
	}
	return a, false
}

// lie has somebody say that a thing happened which did not, twice, and somebody else drop it.
func (w *World) lie(ctx context.Context, f ledger.FindingRow) error {
	a := ledger.PersonAction{Finding: f.ID, Verb: recon.Happened, Effect: "re_nowhere", Reason: "I think so"}
	for range 2 {
		answer, err := w.do(ctx, "ana", a)
		if err != nil {
			return err
		}
		if answer.Outcome == ledger.PersonDone {
			w.fault("nobody settles alone", "%s: ana alone said that %v happened", f.ID, f.Operations)
		}
	}
	w.tally.fault("wrong proposal of a person")
	_, err := w.say(ctx, "bob", ledger.PersonAction{Finding: f.ID, Verb: recon.Reject, Reason: "it did not"})
	return err
}

// say does one thing, and notes down what came of it.
func (w *World) say(ctx context.Context, who string, a ledger.PersonAction) (ledger.PersonOutcome, error) {
	answer, err := w.do(ctx, who, a)
	if err != nil {
		return "", err
	}
	w.tally.person(answer.Outcome)
	if answer.Outcome != ledger.PersonDone || !a.Verb.Settles() {
		return answer.Outcome, nil
	}
	if answer.Operation != "" {
		w.person[answer.Operation] = a.Verb
	}
	if answer.Made != "" {
		w.adopted[answer.Made] = answer.Effect
	}
	return answer.Outcome, nil
}

// do does it in Slack where that has a button for it, else by the command line.
func (w *World) do(ctx context.Context, who string, a ledger.PersonAction) (ledger.PersonAnswer, error) {
	answer, clicked, err := w.byClick(ctx, who, a)
	if err == nil && !clicked {
		answer, err = w.byCommand(ctx, who, a)
	}
	if err == nil && a.Verb != recon.Acknowledge && a.Verb != recon.Snooze {
		for _, name := range sourceNames {
			w.expect(name, w.clock.Now().Add(time.Minute))
		}
	}
	return answer, err
}

func (w *World) byCommand(ctx context.Context, who string, a ledger.PersonAction) (ledger.PersonAnswer, error) {
	desk := sweep.Desk{Ledger: w.ledger, Now: w.clock.Now, Source: func(name recon.SourceName) (sources.Source, error) { return w.sources[name], nil }}
	a.Person, a.Via = who, "command line"
	return desk.Do(ctx, a)
}
