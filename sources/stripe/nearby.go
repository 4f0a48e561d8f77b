package stripe

import (
	"context"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	// crowd is how many questions make it worth guessing where their effects lie.
	crowd = 100
	// soon is how long after its request an effect has nearly always been made.
	soon = 10 * time.Second
	// guessShare bounds the pages of the guess: one for so many questions.
	guessShare = 10
)

// nearby reads what was created just after a crowd of questions was sent, when that is long
// ago, as after an outage: a list that begins now would first show everything since. It
// only ever finds. It gives the questions that it did not find, in their order, and what it
// read answers for its range as any list does.
func (a *asking) nearby(ctx context.Context, g sources.Group) ([]sources.Question, error) {
	until := g.Questions[0].From.Add(recon.ClockSkew + soon)
	if len(g.Questions) < crowd || a.now().Sub(until) < until.Sub(g.Oldest()) {
		return g.Questions, nil
	}
	r := a.open(listing{place: a.place(g.Account, g.Mode), kind: g.Kind, limit: a.pageSize, since: sources.Since(g.Oldest()), until: until.Truncate(time.Second).UTC()})
	r.to = r.until
	left := slices.Clone(g.Questions)
	for r.pages < len(g.Questions)/guessShare && len(left) > 0 && !r.done && r.fault == nil {
		read := len(r.found)
		if err := a.turn(ctx, r); err != nil {
			return nil, err
		}
		left = slices.DeleteFunc(left, a.shownBy(r.found[read:]))
	}
	if r.pages > 0 {
		a.memory.SawDensity(g.List, r.perSecond())
	}
	a.tell(g, r)
	return left, nil
}

// shownBy tells which questions ask for one of the effects: the id that they know, else
// our reference. One of a group has several effects, or shares one.
func (a *asking) shownBy(found []recon.EffectIdentity) func(sources.Question) bool {
	ids, references := map[string]bool{}, map[string]bool{}
	for _, id := range found {
		ids[id.ID] = true
		references[a.Seen[id].Effect.Reference] = true
	}
	return func(q sources.Question) bool {
		if q.EffectID != "" || q.Group != "" {
			return q.Group == "" && ids[q.EffectID]
		}
		return q.Operation != "" && references[string(q.Operation)]
	}
}
