package sweep

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// mostReadings bounds the objects that one run reads for their own sake.
const mostReadings = 500

// read asks the source for objects that an event told of without showing them and for
// effects whose tellings disagree, whoever they belong to. What is read of them concludes
// their operations, closed ones too; open ones of which it concludes nothing are asked
// for in this same run.
func (p *pass) read(ctx context.Context) error {
	if down(p.state) || p.ladder != ledger.OpenOperations {
		return nil
	}
	if _, can := p.Source.Sheet().Ability(recon.ByID); !can {
		return nil
	}
	list, err := p.Ledger.Readings(ctx, p.out.Source, p.begun, mostReadings)
	if err != nil {
		return fmt.Errorf("read what is to be read at %s: %w", p.out.Source, err)
	}
	if len(list) == 0 {
		return nil
	}
	if err := p.remain(ctx, list); err != nil {
		return err
	}
	batch := make([]sources.Question, 0, len(list))
	for _, r := range list {
		batch = append(batch, sources.Question{
			Kind: r.Kind, Account: r.Account, Mode: r.Mode, EffectID: r.EffectID, Parent: r.Parent, From: r.From,
		})
	}
	answer, err := p.Source.Ask(ctx, batch, p.options.Now)
	if err != nil {
		return fmt.Errorf("ask %s for %d objects: %w", p.out.Source, len(batch), err)
	}
	p.listen(answer)
	lacking, err := p.learn(ctx, answer)
	if err != nil {
		return err
	}
	if p.state != p.told { // nothing else may be due that would say so
		if err := p.recordHealth(ctx); err != nil {
			return err
		}
	}
	if err := p.Ledger.FinishReadings(ctx, sortReadings(list, answer, lacking), p.options.Now()); err != nil {
		return fmt.Errorf("end %d readings: %w", len(list), err)
	}
	return p.step("read")
}

// remain makes sure that what is read now is read again if this run does not come to its
// end: a reading clears the doubt about an effect before anything is concluded from it.
func (p *pass) remain(ctx context.Context, list []ledger.Reading) error {
	var doubts []ledger.Reading
	for i := range list {
		if list[i].Since.IsZero() {
			doubts = append(doubts, list[i])
			list[i].Since = p.begun
		}
	}
	if err := p.Ledger.WantReadings(ctx, doubts, p.begun); err != nil {
		return fmt.Errorf("remember what is read: %w", err)
	}
	return p.step("remain")
}

// learn stores an answer that no operation was asked for, and concludes the operations
// that its effects name, and those that waited for an effect that is not there. What cannot
// be stored it gives, and puts on the shelf: the lists that showed it answer for operations
// too.
func (p *pass) learn(ctx context.Context, answer sources.Answer) (lacking []recon.Effect, err error) {
	t := teller{
		ledger: p.Ledger, decided: p.decided, hold: p.held, runID: p.run.ID, judged: p.Watch.Judged, limit: p.limit,
		sheet: func(name recon.SourceName) (recon.Sheet, bool) { return p.Source.Sheet(), name == p.out.Source },
	}
	now := p.options.Now()
	refused, err := t.store(ctx, answer.Effects, answer.Raw, answer.Looks, now)
	if err != nil {
		return nil, err
	}
	for _, e := range answer.Effects {
		if slices.Contains(refused, e.Identity()) {
			lacking = append(lacking, e)
		}
	}
	p.shelf.put(sources.Answer{Effects: lacking, Raw: answer.Raw, Looks: answer.Looks}, nil)
	if err := p.step("store"); err != nil {
		return nil, err
	}
	ids, err := concerned(ctx, p.Ledger, answer.Effects)
	if err != nil {
		return nil, err
	}
	seekers, err := p.seekers(ctx, answer.Looks)
	if err != nil {
		return nil, err
	}
	done, err := t.conclude(ctx, append(ids, seekers...), answer.Looks, now)
	if err != nil {
		return nil, err
	}
	for kind, n := range done.opened {
		p.out.Findings[kind] += n
	}
	for _, j := range done.changed {
		if capped(j.Decision) {
			p.changed++
		}
		p.out.Claimed++
		*p.class(j.Decision)++
	}
	return lacking, p.step("learn")
}

// seekers are the operations that know by its id what was not found by it: what is stored beside
// it is all that they have.
func (p *pass) seekers(ctx context.Context, looks []recon.Look) ([]recon.OperationID, error) {
	var gone []recon.Effect
	for _, l := range looks {
		if l.Method == recon.ByID && l.Outcome == recon.Absent {
			gone = append(gone, recon.Effect{ID: l.EffectID})
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	ids, err := p.Ledger.Named(ctx, gone)
	if err != nil {
		return nil, fmt.Errorf("find the operations that know what is not there: %w", err)
	}
	return ids, nil
}

// sortReadings says which readings an answer answers: none of whose object the ledger lacks
// still, because the database refuses it.
func sortReadings(list []ledger.Reading, a sources.Answer, lacking []recon.Effect) ledger.Read {
	type object struct{ kind, account, mode, id string }
	found := make(map[object]bool, len(a.Effects))
	for _, e := range a.Effects {
		found[object{e.Kind, e.Account, e.Mode, e.ID}] = true
	}
	var out ledger.Read
	for _, r := range list {
		here := r.EffectID != "" && found[object{r.Kind, r.Account, r.Mode, r.EffectID}]
		switch {
		case slices.ContainsFunc(lacking, func(e recon.Effect) bool { return wants(r, e) }):
			out.Unanswered = append(out.Unanswered, r)
		case here:
			out.Answered = append(out.Answered, r)
		case slices.ContainsFunc(a.Looks, func(l recon.Look) bool { return answers(l, r) }):
			out.Answered = append(out.Answered, r)
			if r.EffectID != "" {
				out.Gone = append(out.Gone, r)
			}
		default:
			out.Unanswered = append(out.Unanswered, r)
		}
	}
	return out
}

// wants reports whether an effect is what is to be read, or some of it.
func wants(r ledger.Reading, e recon.Effect) bool {
	here := e.Kind == r.Kind && e.Account == r.Account && e.Mode == r.Mode
	return here && (e.ID == r.EffectID || r.EffectID == "" && e.Under(r.Parent))
}

// answers reports whether a look told of what was to be read, also by not finding it. A
// list that does not hold a known object says nothing: it may be older.
func answers(l recon.Look, r ledger.Reading) bool {
	if l.Outcome == recon.Blind || l.Kind != r.Kind || l.Account != r.Account || l.Mode != r.Mode {
		return false
	}
	if r.EffectID != "" {
		return l.Method == recon.ByID && l.EffectID == r.EffectID
	}
	return l.Parent == r.Parent || isList(l) && !l.Window.From.After(r.From)
}
