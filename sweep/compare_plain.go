package sweep

import (
	"github.com/seed-1c4f4dc2/reconciler/matchers"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// termsRow is what a policy says about pairing, in the numbers of rows.
type termsRow struct {
	system    uint32
	kind      uint32 // of the effect that the action makes; anyKind: any
	tolerance int64
	known     bool // effects of this system and kind were read
}

const anyKind = ^uint32(0)

// pair finds the operations that are plainly matched: done, and named by one effect alone,
// which names nobody else, is done and agrees in everything that both sides show. All
// others are exact.
func (s *sieve) pair() {
	s.owner, s.linked = make([]int32, s.effects.n), make([]int32, s.operations.n)
	for i := range int32(s.effects.n) {
		s.owner[i] = s.name(i)
		if o := s.owner[i]; o >= 0 {
			s.linked[o]++
		} else {
			s.effects.at(i).exact = true
		}
	}
	terms := s.terms()
	for i := range int32(s.effects.n) {
		o := s.owner[i]
		if o < 0 {
			continue
		}
		op, e := s.operations.at(o), s.effects.at(i)
		if s.linked[o] != 1 || !s.agree(op, e, &terms[op.brief]) {
			op.exact, e.exact = true, true
		}
	}
	for o := range int32(s.operations.n) {
		if s.linked[o] == 0 {
			s.operations.at(o).exact = true
		}
	}
}

// name gives the operation that an effect names by reference, key or id, or -1. Where it
// names several all of them are exact, and it belongs to the first.
func (s *sieve) name(i int32) int32 {
	e := s.effects.at(i)
	owner := s.byID.find(e.reference)
	also := func(found int32) {
		switch {
		case found < 0:
		case owner < 0:
			owner = found
		case found != owner:
			e.exact, s.operations.at(found).exact, s.operations.at(owner).exact = true, true, true
		}
	}
	// What the owner bears itself need not be looked up: where it is another's as well, both
	// are exact already.
	if owner < 0 || s.operations.at(owner).key != e.key {
		also(s.byKey.find(e.key))
	}
	if owner < 0 || s.operations.at(owner).effectID != e.id {
		also(s.byEffectID.find(e.id))
	}
	return owner
}

// terms gives what each action's policy says, by the numbers of briefs.
func (s *sieve) terms() []termsRow {
	list := make([]termsRow, len(s.ours.briefs.values))
	for n, b := range s.ours.briefs.values {
		p, configured := s.o.Policies[b.action]
		if !configured || p.Source != b.source {
			p = recon.DefaultPolicy()
		}
		if p.Effect == "" {
			p.Effect = s.facts.kinds.of(b)
		}
		t := matchers.TermsOf(p, b.source)
		system, read := s.theirs.systems.numbers[t.System]
		list[n] = termsRow{system: system, kind: anyKind, tolerance: t.Tolerance, known: read}
		if t.Kind != "" {
			kind, seen := s.theirs.kinds.numbers[t.Kind]
			list[n].kind, list[n].known = kind, read && seen
		}
	}
	return list
}

// agree reports whether an effect is plainly that of an operation.
func (s *sieve) agree(o *operationRow, e *effectRow, t *termsRow) bool {
	both := func(a, b uint64) bool { return a == 0 || b == 0 || a == b }
	switch {
	case o.exact || e.exact || !t.known || t.system != e.system || t.kind != anyKind && t.kind != e.kind:
		return false
	case s.ours.accounts.values[o.place] != s.theirs.accounts.values[e.place]:
		return false
	case e.reference != 0 && e.reference != o.id, !both(o.key, e.key), o.effectID != 0 && o.effectID != e.id:
		return false
	case !both(o.target, e.target):
		return false
	case o.parent != 0 && e.parent != 0 && o.parent != e.parent && o.parent != e.parent2:
		return false
	case o.amount < 0 || e.amount < 0:
		return true
	}
	apart := o.amount - e.amount
	return s.ours.currencies.values[o.currency] == s.theirs.currencies.values[e.currency] && apart <= t.tolerance && -apart <= t.tolerance
}

// close keeps what the rules may ask of what is exact: causes, captured payments, what
// gave something back, and all children of a parent whose total is judged. What belongs to
// something exact is exact too.
func (s *sieve) close() {
	if s.naturals {
		s.spread()
	}
	s.families()
	s.relatives()
	s.spread()
}

// spread makes an operation and its effects exact together.
func (s *sieve) spread() {
	for i, o := range s.owner {
		if o >= 0 && s.effects.at(int32(i)).exact {
			s.operations.at(o).exact = true
		}
	}
	for i, o := range s.owner {
		if o >= 0 && s.operations.at(o).exact {
			s.effects.at(int32(i)).exact = true
		}
	}
}

// family is the children of one parent that a total adds up.
func (s *sieve) family(e *effectRow) uint64 {
	return mix(mix(e.parent, uint64(e.kind)<<32|uint64(e.currency)), uint64(e.place)<<32|uint64(e.source))
}

// families keeps the children of parents of which no total fits, or of which one is exact.
func (s *sieve) families() {
	type family struct {
		sum           int64
		fits, unclear bool
	}
	totals := map[uint64]*family{}
	each := func(take func(f *family, e *effectRow)) {
		for i := range int32(s.effects.n) {
			e := s.effects.at(i)
			if e.parent == 0 || e.amount < 0 {
				continue
			}
			if f := totals[s.family(e)]; f != nil {
				take(f, e)
			}
		}
	}
	for i := range int32(s.effects.n) {
		if e := s.effects.at(i); e.total >= 0 && e.parent != 0 && e.amount >= 0 {
			if k := s.family(e); totals[k] == nil {
				totals[k] = &family{}
			}
		}
	}
	if len(totals) == 0 {
		return
	}
	each(func(f *family, e *effectRow) {
		if f.unclear = f.unclear || e.exact; e.live {
			f.sum += e.amount
		}
	})
	each(func(f *family, e *effectRow) { f.fits = f.fits || e.total == f.sum })
	each(func(f *family, e *effectRow) { e.exact = e.exact || f.unclear || !f.fits })
}

// relatives keeps the effects that exact ones follow from, and those that follow from
// exact ones of an operation that has several.
func (s *sieve) relatives() {
	s.spread()
	ids := map[uint64]bool{}   // of effects that exact ones hang under or follow from
	heads := map[uint64]bool{} // of effects whose repayments matter
	for i := range int32(s.effects.n) {
		e := s.effects.at(i)
		if !e.exact {
			continue
		}
		for _, h := range [...]uint64{e.parent, e.parent2, e.cause} {
			if h != 0 && s.owner[i] < 0 {
				ids[h] = true
			}
		}
		if o := s.owner[i]; o >= 0 && s.linked[o] > 1 {
			heads[e.id] = true
		}
	}
	if len(ids)+len(heads) == 0 {
		return
	}
	for i := range int32(s.effects.n) {
		if e := s.effects.at(i); ids[e.id] || heads[e.parent] || e.parent2 != 0 && heads[e.parent2] {
			e.exact = true
		}
	}
}
