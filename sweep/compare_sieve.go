package sweep

import (
	"context"
	"errors"
	"hash/maphash"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

// sieve compares large files in little memory. It reads both twice: first every line is
// read and checked, and a hundred bytes are kept of each; nearly all operations are then
// seen to be plainly matched by one effect. What is left, and what could have to do with
// it, is read again in full and compared as small files are. A test holds that the answer
// is the same.
type sieve struct {
	o          CompareOptions
	only       func(recon.SourceName) recon.Account
	ours       *hashed // of operations, and of effects: both are read at the same time
	theirs     *hashed
	operations rowsOf[operationRow]
	effects    rowsOf[effectRow]
	// What several operations bear says nothing of any.
	sharedKeys, sharedEffectIDs map[uint64]bool
	byID                        *finder // of all operations
	byKey, byEffectID           *finder // of those that effects ask for
	owner                       []int32 // by effect: the operation that it names, or -1
	linked                      []int32 // by operation: how many effects name it
	facts                       compareFacts
	whose                       tableOwner      // of effects in a table
	made                        map[string]bool // kinds that actions make; other rows of a table are set aside
	told                        compareInput    // what reading a table of effects told
	notes                       []string        // and one of operations
	repeated                    map[uint64]bool // ids of effects that several lines tell of
}

// sieveBoth reads what a comparison needs of files that can be read again.
func sieveBoth(ctx context.Context, o CompareOptions, operations, effects rewindable) (compareInput, error) {
	seed := maphash.MakeSeed()
	s := &sieve{o: o, only: onlyAccounts(o.Policies), ours: newHashed(seed), theirs: newHashed(seed)}
	if whole, err := s.firstPass(ctx); err != nil {
		return compareInput{}, err
	} else if whole {
		return readAgain(ctx, o, operations, effects)
	}
	s.indexOperations()
	s.name()
	s.learn()
	s.pair()
	if err := s.lookalikes(ctx, effects); err != nil {
		return compareInput{}, err
	}
	s.close()
	in := compareInput{setAside: s.told.setAside, notes: append(s.notes, s.told.notes...)}
	if err := errors.Join(operations.rewind(), effects.rewind()); err != nil {
		return in, err
	}
	again := s.secondPass(ctx, &in)
	if err := errors.Join(operations.rewind(), effects.rewind()); err != nil {
		return in, err
	}
	if again != nil {
		return in, again
	}
	if s.learnAgain(&in) {
		return in, nil
	}
	return readAgain(ctx, o, operations, effects)
}

// firstPass reads and checks every line. It is true where too little is known of what the
// rows of a table are to sort them before all are read.
func (s *sieve) firstPass(ctx context.Context) (whole bool, err error) {
	operations := func(ctx context.Context) (err error) {
		s.notes, err = eachOperation(ctx, s.o, func(line int, op *recon.Operation) {
			s.operations.add(s.ours.operation(op, line), exactOperation(op))
		}, nil)
		return err
	}
	effects := func(ctx context.Context) (err error) {
		s.told, err = s.eachEffect(ctx, func(line int, e *recon.Effect) {
			s.effects.add(s.theirs.effect(e, line), exactEffect(e))
		}, nil)
		s.indexEffects() // while the operations may still be read
		return err
	}
	f := s.o.EffectsFormat
	if f == nil || f.Source != "" && len(f.Kinds) > 0 {
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return operations(ctx) })
		g.Go(func() error { return effects(ctx) })
		return false, g.Wait()
	}
	// What rows do not say is what the operations name.
	if err := operations(ctx); err != nil {
		return false, err
	}
	places := s.places()
	if s.whose, err = tableOwnerOf(s.o, places); err != nil {
		return false, err
	}
	if len(f.Kinds) == 0 {
		known := false
		if s.made, known = makes(f, places); !known {
			return true, nil
		}
	}
	return false, effects(ctx)
}

// eachEffect reads the effects, or those that are wanted, and gives what reading a table told.
func (s *sieve) eachEffect(ctx context.Context, take func(line int, e *recon.Effect), wanted files.Wanted) (told compareInput, err error) {
	if s.o.EffectsFormat != nil {
		err = told.readRows(ctx, s.o, func(line int, e *recon.Effect) {
			if len(s.made) > 0 && !s.made[e.Kind] {
				told.setAside++
			} else {
				s.whose.complete(e)
				take(line, e)
			}
		}, wanted)
		return told, err
	}
	systems := systemsOf(s.o.Policies)
	return told, eachLine(ctx, s.o.Effects, fileName(s.o.EffectsName, "effects"), func(n int, line []byte) error {
		if wanted != nil && wanted(n) != n {
			return nil
		}
		e, err := recon.ParseEffectIn(line, s.only)
		if err != nil {
			return err
		}
		e.Metadata = nil // takes no part in a comparison
		if name, ok := systems[e.Source]; ok {
			e.System = name
		}
		take(n, &e)
		return nil
	})
}

// learn collects the facts of both files.
func (s *sieve) learn() {
	f := compareFacts{places: s.places(), systems: map[string]bool{}, plain: s.plain}
	f.shown, f.made = s.shown(nil)
	for _, name := range s.theirs.systems.values[1:] {
		f.systems[name] = true
	}
	s.facts = f
	s.facts.kinds = s.countKinds(nil)
}

// places gives where the operations are said to be.
func (s *sieve) places() map[briefPlace]bool {
	places := map[briefPlace]bool{}
	type at struct{ brief, place uint32 }
	var seen met[at]
	for i := range int32(s.operations.n) {
		if r := s.operations.at(i); seen.first(at{r.brief, r.place}) {
			a := s.ours.accounts.values[r.place]
			places[briefPlace{s.ours.briefs.values[r.brief], a.Account, a.Mode}] = true
		}
	}
	return places
}

// shown gives the accounts and modes, and the kinds in them, of which there is an effect.
// Those of which several lines tell are taken as again has them.
func (s *sieve) shown(again []*recon.Effect) (map[recon.EffectIdentity]bool, map[placeKind]bool) {
	shown, made := map[recon.EffectIdentity]bool{}, map[placeKind]bool{}
	type at struct{ system, place, kind uint32 }
	var seen met[at]
	s.eachCounted(again, func(r *effectRow) {
		if seen.first(at{r.system, r.place, r.kind}) {
			a := s.theirs.accounts.values[r.place]
			shown[recon.EffectIdentity{System: s.theirs.systems.values[r.system], Account: a.Account, Mode: a.Mode}] = true
			seeKind(made, placeKind{s.theirs.systems.values[r.system], a.Account, a.Mode, s.theirs.kinds.values[r.kind]})
		}
	})
	return shown, made
}

// learnAgain completes the facts from what was read in full, where lines of one effect are
// one. It is false where that shows another kind of effect that an action makes: then what
// was taken for plain may not be.
func (s *sieve) learnAgain(in *compareInput) bool {
	for _, op := range in.operations {
		s.facts.span.see(op.CreatedAt)
	}
	var again []*recon.Effect
	for _, e := range in.effects {
		s.facts.span.see(e.CreatedAt)
		if s.repeated[s.theirs.text(e.ID)] {
			again = append(again, e)
		}
	}
	s.seePlain()
	guessed := s.facts.kinds
	if len(again) > 0 {
		s.facts.kinds = s.countKinds(again)
		s.facts.shown, s.facts.made = s.shown(again)
	}
	for _, b := range s.ours.briefs.values[1:] {
		if guessed.of(b) != s.facts.kinds.of(b) {
			return false
		}
	}
	in.facts = s.facts
	return true
}

// seePlain tells the span of time of what was not read again.
func (s *sieve) seePlain() {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	see := func(created int64) { first, last = min(first, created), max(last, created) }
	s.eachPlain(see, see)
	if first <= last {
		s.facts.span.see(time.Unix(0, first).UTC())
		s.facts.span.see(time.Unix(0, last).UTC())
	}
}

// plain counts what is plainly matched and was not read again, within a window.
func (s *sieve) plain(w recon.Window) (operations, effects int) {
	from, to := w.From.UnixNano(), w.To.UnixNano()
	count := func(n *int) func(int64) {
		return func(created int64) {
			if created >= from && created < to {
				*n++
			}
		}
	}
	s.eachPlain(count(&operations), count(&effects))
	return operations, effects
}

// eachPlain tells when the operations and the effects were made that were not read again.
func (s *sieve) eachPlain(operation, effect func(created int64)) {
	for i, exact := range s.operations.exact {
		if !exact {
			operation(s.operations.at(int32(i)).created)
		}
	}
	for i, exact := range s.effects.exact {
		if !exact {
			effect(s.effects.at(int32(i)).created)
		}
	}
}
