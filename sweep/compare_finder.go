package sweep

import (
	"slices"
	"sync"
)

// finder finds rows by a hash of 64 bits, of which 0 is none. A place holds half of the
// hash, so that nearly every wrong row is passed over without being looked at.
type finder struct {
	places []place
	hash   func(row int32) uint64
}

type place struct {
	half uint32
	row  int32 // + 1
}

// findRows makes a finder of n rows, and tells which rows share a hash.
func findRows(n int, hash func(row int32) uint64) (f *finder, shared []int32) {
	size := 16
	for size < n*2 {
		size *= 2
	}
	f = &finder{places: make([]place, size), hash: hash}
	for i := range int32(n) {
		if h := hash(i); h != 0 {
			if was := f.put(h, i); was >= 0 {
				shared = append(shared, was, i)
			}
		}
	}
	return f, shared
}

// put adds a row unless there is one with its hash, and gives that one, else -1.
func (f *finder) put(h uint64, row int32) int32 {
	at, was := f.seek(h)
	if was < 0 {
		f.places[at] = place{uint32(h >> 32), row + 1}
	}
	return was
}

// find gives the first row with a hash, or -1.
func (f *finder) find(h uint64) int32 {
	if h == 0 {
		return -1
	}
	_, row := f.seek(h)
	return row
}

// seek gives the row with a hash, or -1 and the place where it belongs.
func (f *finder) seek(h uint64) (at uint64, row int32) {
	mask, half := uint64(len(f.places)-1), uint32(h>>32)
	for at = h >> 1 & mask; ; at = (at + 1) & mask {
		switch p := f.places[at]; {
		case p.row == 0:
			return at, -1
		case p.half == half && f.hash(p.row-1) == h:
			return at, p.row - 1
		}
	}
}

// index makes what finds operations by their identities. Rows that share an identity are
// exact, and so are operations of one intent: they are suspected of being one.
func (s *sieve) index() {
	var sharedIDs, sharedKeys, sharedEffectIDs, intents, effects []int32
	ours := func(hash func(*operationRow) uint64) (*finder, []int32) {
		return findRows(s.operations.n, func(row int32) uint64 { return hash(s.operations.at(row)) })
	}
	var all sync.WaitGroup
	all.Go(func() { s.byID, sharedIDs = ours(func(o *operationRow) uint64 { return o.id }) })
	all.Go(func() { s.byKey, sharedKeys = ours(func(o *operationRow) uint64 { return o.key }) })
	all.Go(func() { s.byEffectID, sharedEffectIDs = ours(func(o *operationRow) uint64 { return o.effectID }) })
	all.Go(func() { _, intents = ours(func(o *operationRow) uint64 { return o.intent }) })
	all.Go(func() {
		_, effects = findRows(s.effects.n, func(row int32) uint64 { return s.effects.at(row).id })
	})
	all.Wait()
	s.sharedKeys, s.sharedEffectIDs = map[uint64]bool{}, map[uint64]bool{}
	for _, row := range slices.Concat(sharedIDs, sharedKeys, sharedEffectIDs, intents) {
		s.operations.at(row).exact = true
	}
	for _, row := range sharedKeys {
		s.sharedKeys[s.operations.at(row).key] = true
	}
	for _, row := range sharedEffectIDs {
		s.sharedEffectIDs[s.operations.at(row).effectID] = true
	}
	s.repeated = map[uint64]bool{}
	for _, row := range effects {
		e := s.effects.at(row)
		e.exact = true
		s.repeated[e.id] = true
	}
}
