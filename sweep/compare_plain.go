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
	s.linked = make([]int32, s.operations.n)
	for _, o := range s.owner {
		if o >= 0 {
			s.linked[o]++
		}
	}
	terms, exact := s.terms(), s.effects.exact
	inParts(s.effects.n, func(from, to int32) {
		for i := from; i < to; i++ {
			o := s.owner[i]
			exact[i] = exact[i] || o < 0 || s.operations.exact[o] || s.linked[o] != 1 || !s.agree(o, i, terms)
		}
	})
	for o, n := range s.linked {
		if n == 0 {
			s.operations.exact[o] = true
		}
	}
	s.spread()
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
func (s *sieve) agree(operation, effect int32, terms []termsRow) bool {
	o, e := s.operations.at(operation), s.effects.at(effect)
	t := &terms[o.brief]
	both := func(a, b uint64) bool { return a == 0 || b == 0 || a == b }
	switch {
	case !t.known || t.system != e.system || t.kind != anyKind && t.kind != e.kind:
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
	s.spread()
	s.families()
	s.relatives()
	s.spread()
}

// spread makes an operation and its effects exact together.
func (s *sieve) spread() {
	for i, o := range s.owner {
		if o >= 0 && s.effects.exact[i] {
			s.operations.exact[o] = true
		}
	}
	for i, o := range s.owner {
		if o >= 0 && s.operations.exact[o] {
			s.effects.exact[i] = true
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
	each := func(take func(f *family, e *effectRow, exact *bool)) {
		for i := range int32(s.effects.n) {
			e := s.effects.at(i)
			if e.parent == 0 || e.amount < 0 {
				continue
			}
			if f := totals[s.family(e)]; f != nil {
				take(f, e, &s.effects.exact[i])
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
	each(func(f *family, e *effectRow, exact *bool) {
		if f.unclear = f.unclear || *exact; e.live {
			f.sum += e.amount
		}
	})
	each(func(f *family, e *effectRow, _ *bool) { f.fits = f.fits || e.total == f.sum })
	each(func(f *family, _ *effectRow, exact *bool) { *exact = *exact || f.unclear || !f.fits })
}

// relatives keeps the effects that exact ones follow from, and those that follow from
// exact ones of an operation that has several.
func (s *sieve) relatives() {
	s.spread()
	ids := map[uint64]bool{}   // of effects that exact ones hang under or follow from
	heads := map[uint64]bool{} // of effects whose repayments matter
	for i, exact := range s.effects.exact {
		if !exact {
			continue
		}
		e := s.effects.at(int32(i))
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
			s.effects.exact[i] = true
		}
	}
}
