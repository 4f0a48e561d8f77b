package sweep

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-1c4f4dc2/reconciler/matchers"
	"github.com/seed-1c4f4dc2/reconciler/recon"
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
	owner      []int32 // by effect: the operation that it names, or -1
	linked     []int32 // by operation: how many effects name it
	facts      compareFacts
	naturals   bool            // some effect has a natural reference
	whose      tableOwner      // of effects in a table
	made       map[string]bool // kinds that actions make; other rows of a table are set aside
	told       compareInput    // what reading a table told
	repeated   map[uint64]bool // ids of effects that several lines tell of
}

// errChanged says that a file is no longer what it was a moment ago.
var errChanged = errors.New("it changed while it was read; compare a copy that nobody writes")

// rewindable gives both files as something that can be read again, and false for pipes.
func rewindable(o CompareOptions) (operations, effects io.ReadSeeker, ok bool) {
	operations, a := o.Operations.(io.ReadSeeker)
	effects, b := o.Effects.(io.ReadSeeker)
	if !a || !b {
		return nil, nil, false
	}
	for _, f := range []io.ReadSeeker{operations, effects} {
		if at, err := f.Seek(0, io.SeekCurrent); err != nil || at != 0 {
			return nil, nil, false
		}
	}
	return operations, effects, true
}

// sieveBoth reads what a comparison needs of files that can be read again.
func sieveBoth(ctx context.Context, o CompareOptions, operations, effects io.ReadSeeker) (compareInput, error) {
	seed := maphash.MakeSeed()
	s := &sieve{o: o, only: onlyAccounts(o.Policies), ours: newHashed(seed), theirs: newHashed(seed)}
	if whole, err := s.firstPass(ctx); err != nil {
		return compareInput{}, err
	} else if whole {
		return again(ctx, o, operations, effects)
	}
	s.learn()
	s.pair()
	if err := s.lookalikes(ctx, effects); err != nil {
		return compareInput{}, err
	}
	s.close()
	in := compareInput{setAside: s.told.setAside, notes: s.told.notes}
	if err := rewind(operations, effects); err != nil {
		return in, err
	}
	if err := s.secondPass(ctx, &in); err != nil {
		return in, err
	}
	if s.learnAgain(&in) {
		return in, nil
	}
	return again(ctx, o, operations, effects)
}

// again reads both files from their start and keeps all of them.
func again(ctx context.Context, o CompareOptions, operations, effects io.Seeker) (compareInput, error) {
	if err := rewind(operations, effects); err != nil {
		return compareInput{}, err
	}
	return readWhole(ctx, o)
}

func rewind(files ...io.Seeker) error {
	for _, f := range files {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	return nil
}

// firstPass reads and checks every line. It is true where too little is known of what the
// rows of a table are to sort them before all are read.
func (s *sieve) firstPass(ctx context.Context) (whole bool, err error) {
	operations := func(ctx context.Context) error {
		return eachLine(ctx, s.o.Operations, fileName(s.o.OperationsName, "operations"), func(_ int, line []byte) error {
			op, err := recon.ParseOperationIn(line, s.only)
			if err != nil {
				return err
			}
			s.operations.add(s.ours.operation(&op))
			return nil
		})
	}
	effects := func(ctx context.Context) error {
		return s.eachEffect(ctx, func(_ int, e *recon.Effect) {
			s.naturals = s.naturals || e.NaturalReference != ""
			s.effects.add(s.theirs.effect(e))
		}, nil)
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

// eachEffect reads the effects, or those of the rows that are wanted, with their lines.
func (s *sieve) eachEffect(ctx context.Context, take func(line int, e *recon.Effect), wanted func(row int32) bool) error {
	systems, row := systemsOf(s.o.Policies), int32(0)
	skip := func() bool {
		row++
		return wanted != nil && !wanted(row-1)
	}
	if s.o.EffectsFormat != nil {
		var told compareInput
		err := told.readRows(ctx, s.o, func(e recon.Effect, line int) {
			if len(s.made) > 0 && !s.made[e.Kind] {
				told.setAside++
			} else if !skip() {
				s.whose.complete(&e)
				take(line, &e)
			}
		})
		s.told = told
		return err
	}
	return eachLine(ctx, s.o.Effects, fileName(s.o.EffectsName, "effects"), func(n int, line []byte) error {
		if skip() {
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
	f := compareFacts{places: s.places(), systems: map[string]bool{}, shown: s.shown(), plain: s.plain}
	for _, name := range s.theirs.systems.texts[1:] {
		f.systems[name] = true
	}
	s.facts = f
	s.repeatedEffects()
	s.facts.kinds = s.countKinds(nil)
}

// places gives where the operations are said to be.
func (s *sieve) places() map[briefPlace]bool {
	places := map[briefPlace]bool{}
	type at struct{ brief, place uint32 }
	seen := map[at]bool{}
	for i := range int32(s.operations.n) {
		r := s.operations.at(i)
		if k := (at{r.brief, r.place}); !seen[k] {
			seen[k] = true
			account, mode, _ := strings.Cut(s.ours.accounts.texts[r.place], "\x00")
			places[briefPlace{s.ours.briefOf[r.brief], account, mode}] = true
		}
	}
	return places
}

// shown gives the accounts and modes of which there is an effect.
func (s *sieve) shown() map[recon.EffectIdentity]bool {
	shown := map[recon.EffectIdentity]bool{}
	type at struct{ system, place uint32 }
	seen := map[at]bool{}
	for i := range int32(s.effects.n) {
		r := s.effects.at(i)
		if k := (at{r.system, r.place}); !seen[k] {
			seen[k] = true
			account, mode, _ := strings.Cut(s.theirs.accounts.texts[r.place], "\x00")
			shown[recon.EffectIdentity{System: s.theirs.systems.texts[r.system], Account: account, Mode: mode}] = true
		}
	}
	return shown
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
	see := func(exact bool, created int64) {
		if !exact {
			s.facts.span.see(time.Unix(0, created).UTC())
		}
	}
	for i := range int32(s.operations.n) {
		see(s.operations.at(i).exact, s.operations.at(i).created)
	}
	for i := range int32(s.effects.n) {
		see(s.effects.at(i).exact, s.effects.at(i).created)
	}
	guessed := s.facts.kinds
	if len(again) > 0 {
		s.facts.kinds = s.countKinds(again)
	}
	for _, b := range s.ours.briefOf[1:] {
		if guessed.of(b) != s.facts.kinds.of(b) {
			return false
		}
	}
	in.facts = s.facts
	return true
}

// finders finds operations by id and by key.
func (s *sieve) finders() (byID, byKey *finder) {
	byID = newFinder(s.operations.n, func(i int32) uint64 { return s.operations.at(i).id })
	byKey = newFinder(s.operations.n, func(i int32) uint64 { return s.operations.at(i).key })
	for i := range int32(s.operations.n) {
		byID.put(i)
		if s.operations.at(i).key != 0 {
			byKey.put(i)
		}
	}
	return byID, byKey
}

// lookalikes keeps the operations that an effect without owner may look like. Only those
// effects are read for it.
func (s *sieve) lookalikes(ctx context.Context, effects io.Seeker) error {
	loose := func(e int32) bool { return s.owner[e] < 0 && s.effects.at(e).reference != 0 }
	some := false
	for e := range int32(s.effects.n) {
		some = some || loose(e)
	}
	if !some {
		return nil
	}
	if _, err := effects.Seek(0, io.SeekStart); err != nil {
		return err
	}
	alike := map[uint64]bool{}
	err := s.eachEffect(ctx, func(_ int, e *recon.Effect) {
		for _, r := range matchers.Readings(e.Reference) {
			alike[s.ours.text(r)] = true
		}
	}, func(row int32) bool { return row < int32(s.effects.n) && loose(row) })
	if err != nil {
		return err
	}
	for i := range int32(s.operations.n) {
		if o := s.operations.at(i); alike[o.folded] {
			o.exact = true
		}
	}
	return nil
}

// secondPass reads again what must be compared in full.
func (s *sieve) secondPass(ctx context.Context, in *compareInput) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.operationsAgain(ctx, in) })
	g.Go(func() error { return s.effectsAgain(ctx, in) })
	return g.Wait()
}

func (s *sieve) operationsAgain(ctx context.Context, in *compareInput) error {
	name, row := fileName(s.o.OperationsName, "operations"), 0
	var read records[recon.Operation]
	err := eachLine(ctx, s.o.Operations, name, func(n int, line []byte) error {
		at := row
		row++
		if at >= s.operations.n || !s.operations.at(int32(at)).exact {
			return nil
		}
		op, err := recon.ParseOperationIn(line, s.only)
		if err != nil {
			return err
		}
		op.Metadata = nil // takes no part in a comparison
		read.add(op, n)
		return nil
	})
	if err == nil && row != s.operations.n {
		err = fmt.Errorf("%s: %w", name, errChanged)
	}
	if err != nil {
		return err
	}
	in.operations, err = checkOperations(name, read)
	return err
}

func (s *sieve) effectsAgain(ctx context.Context, in *compareInput) error {
	var read records[recon.Effect]
	rows := 0
	err := s.eachEffect(ctx, func(line int, e *recon.Effect) { read.add(*e, line) }, func(row int32) bool {
		rows++
		return int(row) < s.effects.n && s.effects.at(row).exact
	})
	if err == nil && rows != s.effects.n {
		err = fmt.Errorf("%s: %w", fileName(s.o.EffectsName, "effects"), errChanged)
	}
	if err != nil {
		return err
	}
	return in.foldLines(s.o, read)
}

// plain counts what is plainly matched and was not read again, within a window.
func (s *sieve) plain(w recon.Window) (operations, effects int) {
	from, to := w.From.UnixNano(), w.To.UnixNano()
	for i := range int32(s.operations.n) {
		if o := s.operations.at(i); !o.exact && o.created >= from && o.created < to {
			operations++
		}
	}
	for i := range int32(s.effects.n) {
		if e := s.effects.at(i); !e.exact && e.created >= from && e.created < to {
			effects++
		}
	}
	return operations, effects
}
