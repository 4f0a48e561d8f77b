package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// People is what a desk asks of the ledger. [ledger.Ledger] is one.
type People interface {
	Finding(ctx context.Context, id string) (ledger.FindingRow, error)
	Cases(ctx context.Context, ids []recon.OperationID) ([]recon.Case, error)
	EffectsByID(ctx context.Context, id string) ([]recon.Effect, error)
	Person(ctx context.Context, a ledger.PersonAction) (ledger.PersonAnswer, error)
}

var _ People = (*ledger.Ledger)(nil)

// Desk takes what people decide. An effect that somebody names is looked up at its
// provider before the ledger is told, so that the provider's word counts and not the
// person's.
type Desk struct {
	Ledger People
	// Source opens the source of a name; nil, or a nil source, means that it cannot be
	// asked from here, and then what is stored is all that is known.
	Source func(recon.SourceName) (sources.Source, error)
	// Now gives the time of the look.
	Now func() time.Time
}

// Do carries out one action of a person. A provider that cannot be asked is no error:
// the answer then says that a second person is needed.
func (d *Desk) Do(ctx context.Context, a ledger.PersonAction) (ledger.PersonAnswer, error) {
	if a.Verb == recon.Happened || a.Verb == recon.Adopt {
		if err := d.see(ctx, &a); err != nil {
			return ledger.PersonAnswer{}, err
		}
	}
	return d.Ledger.Person(ctx, a)
}

// subject is the effect that a person means, and where it would be.
type subject struct {
	source   recon.SourceName
	question sources.Question
	about    *recon.Case // the operation that it would belong to; nil: none is named
}

// see looks for the effect that the action is about and adds what it brought.
func (d *Desk) see(ctx context.Context, a *ledger.PersonAction) error {
	s, err := d.subject(ctx, *a)
	if err != nil || s.question.EffectID == "" {
		return err // nothing to look for; the ledger says what is missing
	}
	a.Effect = s.question.EffectID
	source, err := d.open(s.source)
	if err != nil {
		return err
	}
	if source != nil {
		if a.Seen, err = LookUp(ctx, source, s.question, d.Now); err != nil {
			return fmt.Errorf("look for %s at %s: %w", a.Effect, s.source, err)
		}
	}
	if s.about == nil {
		return nil
	}
	effect, err := d.effect(ctx, *a, *s.about)
	if err != nil || effect == nil {
		return err
	}
	a.Mismatch = mismatchOf(*s.about, *effect, d.Now())
	return nil
}

func (d *Desk) open(name recon.SourceName) (sources.Source, error) {
	if d.Source == nil {
		return nil, nil
	}
	source, err := d.Source(name)
	if err != nil || source == nil {
		return nil, err
	}
	if _, can := source.Sheet().Ability(recon.ByID); !can {
		return nil, nil // files, for instance: what was imported is what there is
	}
	return source, nil
}

// subject finds out which effect is meant: the named one, else the one that the
// operation knows, else the only one of the finding.
func (d *Desk) subject(ctx context.Context, a ledger.PersonAction) (subject, error) {
	f, err := d.Ledger.Finding(ctx, a.Finding)
	if err != nil {
		return subject{}, err
	}
	s := subject{source: f.Source, question: sources.Question{EffectID: a.Effect, From: d.Now().Add(-time.Minute)}}
	operation := a.Operation
	if operation == "" && a.Verb == recon.Happened && len(f.Operations) == 1 {
		operation = f.Operations[0]
	}
	if operation != "" {
		cases, err := d.Ledger.Cases(ctx, []recon.OperationID{operation})
		if err != nil {
			return s, err
		}
		if len(cases) == 1 {
			c := cases[0]
			o := c.Operation
			s.about, s.source = &c, o.Source
			s.question.Operation, s.question.Kind, s.question.Account, s.question.Mode = o.ID, c.Policy.Effect, o.Account, o.Mode
			if s.question.EffectID == "" && a.Verb == recon.Happened {
				s.question.EffectID = o.EffectID
			}
		}
	}
	for _, e := range f.Effects {
		if e.ID == s.question.EffectID || s.question.EffectID == "" && len(f.Effects) == 1 {
			s.source, s.question.EffectID = e.Source, e.ID
			s.question.Kind, s.question.Account, s.question.Mode = e.Kind, e.Account, e.Mode
		}
	}
	return s, nil
}

// effect is the effect as it was just seen, else as it is stored.
func (d *Desk) effect(ctx context.Context, a ledger.PersonAction, c recon.Case) (*recon.Effect, error) {
	if a.Seen != nil {
		return a.Seen.Effect, nil
	}
	stored, err := d.Ledger.EffectsByID(ctx, a.Effect)
	if err != nil {
		return nil, err
	}
	for i, e := range stored {
		if e.Mode == c.Operation.Mode && (c.Operation.Account == "" || e.Account == c.Operation.Account) {
			return &stored[i], nil
		}
	}
	return nil, nil
}

// mismatchOf is the finding that an effect would be on an operation; nil where it would
// be none. The same rule says it that a sweep would raise it by.
func mismatchOf(c recon.Case, e recon.Effect, now time.Time) *recon.Finding {
	c.Operation.EffectID = e.ID
	c.Settled, c.Effects = nil, []recon.Effect{e}
	paired := pair([]recon.Case{c}, []recon.Effect{e}, nil)
	d := rules.Decide(paired[0], now)
	i := slices.IndexFunc(d.Findings, func(f recon.Finding) bool { return f.Kind == recon.FindMismatch })
	if i < 0 {
		return nil
	}
	return &d.Findings[i]
}

// LookUp asks a source for one effect by its id, now. The look that it gives is always
// one by id: found, absent, or blind with the fault that it met.
func LookUp(ctx context.Context, source sources.Source, q sources.Question, now func() time.Time) (*ledger.Seen, error) {
	answer, err := source.Ask(ctx, []sources.Question{q}, now)
	if err != nil {
		return nil, err
	}
	// A question without account goes to all of them: one that has it outweighs the rest,
	// and one that could not look outweighs those that do not have it.
	worth := map[recon.Outcome]int{recon.Absent: 1, recon.Blind: 2, recon.Found: 3}
	var best *recon.Look
	for i, l := range answer.Looks {
		about := l.Method == recon.ByID && l.EffectID == q.EffectID || l.Outcome == recon.Blind
		if about && (best == nil || worth[l.Outcome] > worth[best.Outcome]) {
			best = &answer.Looks[i]
		}
	}
	if best == nil {
		return nil, errors.New("the source answered without saying whether it is there")
	}
	seen := &ledger.Seen{Look: *best}
	// What could not be asked at all is told by a look at a window; what was asked is this.
	seen.Look.Method, seen.Look.EffectID, seen.Look.Window = recon.ByID, q.EffectID, recon.Window{}
	if best.Outcome != recon.Found {
		return seen, nil
	}
	for i, e := range answer.Effects {
		if e.ID == q.EffectID && slices.Contains(best.Found, e.Identity()) {
			seen.Effect = &answer.Effects[i]
		}
	}
	return seen, nil
}
