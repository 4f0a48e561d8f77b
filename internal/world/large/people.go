package large

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// morning has people look at what is open. They know the truth, as somebody does who asks
// the bank by telephone; now and then one of them is wrong, and the rule of two must stop it.
// What takes two people the second one ends when the channel shows it.
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
	for _, do := range []func(context.Context, ledger.FindingRow) error{w.meddle, w.decide} {
		for _, f := range open {
			if err := do(ctx, f); err != nil {
				return fmt.Errorf("finding %s (%s): %w", f.ID, f.Kind, err)
			}
		}
	}
	if err := w.secondAll(ctx); err != nil {
		return err
	}
	w.news(ctx)
	return nil
}

// today is the number of this day.
func (w *World) today() int { return int(w.clock.Now().Sub(epoch) / day) }

// lot draws a number below n for a finding on this day, so that it needs no shared dice.
func (w *World) lot(f ledger.FindingRow, what string, n uint32) uint32 {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, what, f.Fingerprint(), w.today()) // it never fails
	return h.Sum32() % n
}

// leaves reports whether people have no time today for what settles nothing of a finding.
func (w *World) leaves(f ledger.FindingRow) bool { return w.lot(f, "leaves", 2) == 0 }

// decide does what somebody does with one finding this morning.
func (w *World) decide(ctx context.Context, f ledger.FindingRow) error {
	var i intent
	if len(f.Operations) > 0 {
		i = w.intents[f.Operations[0]]
	}
	a := ledger.PersonAction{Finding: f.ID}
	switch mood := (i.n + len(f.Effects) + w.today()) % 7; {
	case f.Kind == recon.FindBlind && mood != 3, mood == 0:
		if w.leaves(f) {
			return nil
		}
		a.Verb, a.Key = recon.Acknowledge, fmt.Sprint(f.ID, w.today())
		for range 1 + i.n%2 { // a click that is delivered twice
			if _, err := w.say(ctx, operator, a); err != nil {
				return err
			}
		}
		return nil
	case mood == 1:
		if w.leaves(f) {
			return nil
		}
		a.Verb, a.Until = recon.Snooze, w.clock.Now().Add(20*time.Hour)
		_, err := w.say(ctx, approver, a)
		return err
	case mood == 2 && len(f.Operations) == 1 && f.Kind == recon.FindMissing:
		return w.lie(ctx, f)
	case mood == 3 && w.lot(f, "assign", 2) == 0:
		a.Verb, a.Assignee = recon.Assign, []string{proposer, approver, operator}[i.n%3]
		if _, err := w.say(ctx, operator, a); err != nil {
			return err
		}
	}
	return w.settle(ctx, f, i)
}

// settle has somebody say what the truth is, or ask for another look where that is not the
// time yet.
func (w *World) settle(ctx context.Context, f ledger.FindingRow, i intent) error {
	answers := w.answers(f, i)
	for _, a := range answers {
		outcome, err := w.say(ctx, proposer, a)
		if outcome == ledger.PersonProposed {
			w.waiting = append(w.waiting, waiting{finding: f, wants: a})
		}
		if err != nil || outcome == ledger.PersonProposed || outcome == ledger.PersonDone {
			return err
		}
	}
	if len(answers) > 0 || w.leaves(f) {
		return nil
	}
	_, err := w.say(ctx, proposer, ledger.PersonAction{Finding: f.ID, Verb: recon.CheckNow})
	return err
}

// answers are what the truth lets somebody say of a finding, what they would rather say
// first.
func (w *World) answers(f ledger.FindingRow, i intent) []ledger.PersonAction {
	var live []*deed
	for _, d := range w.book.by(i.id) {
		if d.live(w.clock.Now()) {
			live = append(live, d)
		}
	}
	say := func(v recon.Verb) ledger.PersonAction {
		return ledger.PersonAction{Finding: f.ID, Verb: v, Reason: "the provider says so by telephone"}
	}
	switch f.Kind {
	case recon.FindMissing, recon.FindUnresolved, recon.FindReversed, recon.FindNeverSent:
		return w.answersOf(f, i, live, say)
	case recon.FindMismatch, recon.FindDuplicate:
		return []ledger.PersonAction{say(recon.Accept)}
	case recon.FindOrphan:
		if len(f.Effects) != 1 || w.lot(f, "adopt", 3) == 0 {
			return []ledger.PersonAction{say(recon.Ignore)}
		}
		a := say(recon.Adopt)
		a.Effect = f.Effects[0].ID
		if f.Source == cards {
			a.Action = refundCreate // several make refunds there, so that a click alone does not say which
		}
		return []ledger.PersonAction{a}
	}
	return nil
}

// answersOf is what can be said of one operation, given its effects that exist.
func (w *World) answersOf(f ledger.FindingRow, i intent, live []*deed, say func(recon.Verb) ledger.PersonAction) []ledger.PersonAction {
	inDoubt := f.Kind == recon.FindMissing || f.Kind == recon.FindUnresolved
	if len(live) > 0 {
		if d := live[0]; inDoubt && len(live) == 1 && d.equals(i) && d.status(w.clock.Now()) == recon.Completed && w.lot(f, "happened", 2) == 0 {
			a := say(recon.Happened)
			a.Effect = d.id
			return []ledger.PersonAction{a}
		}
		return nil
	}
	var list []ledger.PersonAction
	if inDoubt && w.shows(f, recon.Release) && w.lot(f, "release", 2) == 0 {
		list = append(list, say(recon.Release))
	}
	switch {
	case f.Kind == recon.FindNeverSent && w.sent[i.id] > 0:
	case f.Kind == recon.FindUnresolved && w.clock.Now().Sub(i.at) <= 4*day:
		// Only what the product has given up is left to people.
	default:
		list = append(list, say(recon.DidNotHappen))
	}
	return list
}

// waiting is what somebody proposed this morning, or is thought to have.
type waiting struct {
	finding ledger.FindingRow
	wants   ledger.PersonAction
	wrong   bool
}

// secondAll has a second person end what was proposed, as the channel shows it by then where
// somebody looks again.
func (w *World) secondAll(ctx context.Context) error {
	all := w.waiting
	w.waiting = nil
	if len(all) == 0 {
		return nil
	}
	if w.today() == 1 { // on other days they say it by the command line
		if err := w.tellNow(ctx); err != nil {
			return err
		}
		var proposed []ledger.FindingRow
		for _, p := range all {
			proposed = append(proposed, p.finding)
		}
		w.lookAtSlack(proposed)
	}
	for _, p := range all {
		if err := w.second(ctx, p); err != nil {
			return fmt.Errorf("finding %s (%s): %w", p.finding.ID, p.finding.Kind, err)
		}
	}
	return nil
}

// second ends a proposal: it is approved, or rejected where it is wrong. Whoever made it is
// not let, by whatever way.
func (w *World) second(ctx context.Context, p waiting) error {
	if w.lot(p.finding, "alone", 6) == 0 {
		if err := w.inVain(ctx, proposer, slack.Approve, p.finding); err != nil {
			return err
		}
	}
	a := p.wants
	if p.wrong {
		a = ledger.PersonAction{Finding: a.Finding, Verb: recon.Reject, Reason: "it did not"}
	}
	outcome, err := w.say(ctx, approver, a)
	if err == nil && len(p.finding.Operations) == 0 && outcome != ledger.PersonDone {
		w.fault("what one person proposes another can approve", "%s of %s by %s: %s", a.Verb, p.finding.Kind, approver, outcome)
	}
	return err
}

// lie has somebody say that a thing happened which did not, twice. Somebody else drops it.
func (w *World) lie(ctx context.Context, f ledger.FindingRow) error {
	a := ledger.PersonAction{Finding: f.ID, Verb: recon.Happened, Effect: "re_nowhere", Reason: "I think so"}
	for range 2 {
		answer, err := w.do(ctx, proposer, a)
		if err != nil {
			return err
		}
		if answer.Outcome == ledger.PersonDone {
			w.fault("nobody settles alone", "%s: %s alone said that %v happened", f.ID, proposer, f.Operations)
		}
	}
	w.tally.fault("wrong proposal of a person")
	w.waiting = append(w.waiting, waiting{finding: f, wants: a, wrong: true})
	return nil
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
		w.settledBy(ctx, answer.Operation, a.Verb)
	}
	if answer.Made != "" {
		w.adopted[answer.Made] = answer.Effect
	}
	return answer.Outcome, nil
}

// settledBy notes down what people said of an operation. What they release an agent tries again.
func (w *World) settledBy(ctx context.Context, op recon.OperationID, v recon.Verb) {
	i := w.intents[op]
	if v == recon.Release {
		w.tally.errand(opsReleased, 1)
		w.released[op] = w.clock.Now()
		w.agenda.Plan(w.clock.Now().Add(time.Duration(1+i.n%20)*time.Minute), func() error { return w.sendReleased(ctx, i) })
		return
	}
	w.person[op] = v
	switch v {
	case recon.Happened:
		w.tally.errand(opsKnown, 1)
		w.succeeded[op] = true
		w.closes(op, recon.Succeeded, false)
	case recon.DidNotHappen:
		w.closes(op, recon.Failed, false)
	}
}

// do does it in Slack where that has a button for it, else by the command line.
func (w *World) do(ctx context.Context, who string, a ledger.PersonAction) (ledger.PersonAnswer, error) {
	answer, clicked, err := w.byClick(ctx, who, a)
	if err == nil && !clicked {
		answer, err = w.byCommand(ctx, who, a)
	}
	if err == nil && (a.Verb.Settles() || a.Verb == recon.CheckNow) {
		for _, name := range sourceNames {
			w.expect(name, w.clock.Now().Add(time.Minute))
		}
	}
	return answer, err
}

func (w *World) byCommand(ctx context.Context, who string, a ledger.PersonAction) (ledger.PersonAnswer, error) {
	desk := sweep.Desk{Ledger: w.ledger, Now: w.clock.Now, Source: func(name recon.SourceName) (sources.Source, error) { return w.sources[name], nil }}
	a.Person, a.Via = who, "command line"
	if a.Key == "" {
		w.said++
		a.Key = fmt.Sprintf("said-%d", w.said)
	}
	var answer ledger.PersonAnswer
	err := w.mortally(inPerson, func() (err error) {
		answer, err = desk.Do(ctx, a)
		return err
	})
	if errors.Is(err, errDied) { // who hears no answer says it again
		return desk.Do(ctx, a)
	}
	return answer, err
}
