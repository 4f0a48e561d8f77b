package sweep

import (
	"runtime"
	"slices"
	"sync"
)

// indexEffects finds the effects of which several lines tell: they are exact.
func (s *sieve) indexEffects() {
	s.repeated = map[uint64]bool{}
	for _, row := range sharing(s.effects.n, func(row int32) uint64 { return s.effects.at(row).id }) {
		s.effects.exact[row] = true
		s.repeated[s.effects.at(row).id] = true
	}
}

// indexOperations finds the operations that share an identity, and those of one intent, which
// are suspected of being one: all of them are exact.
func (s *sieve) indexOperations() {
	var sharedIDs, sharedKeys, sharedEffectIDs, intents []int32
	ours := func(hash func(*operationRow) uint64) []int32 { return sharing(s.operations.n, s.hashOf(hash)) }
	var all sync.WaitGroup
	all.Go(func() {
		s.byID = newFinder(s.operations.n, s.hashOf(func(o *operationRow) uint64 { return o.id }))
		for i := range int32(s.operations.n) {
			if was := s.byID.put(i); was >= 0 {
				sharedIDs = append(sharedIDs, was, i)
			}
		}
	})
	all.Go(func() { sharedKeys = ours(func(o *operationRow) uint64 { return o.key }) })
	all.Go(func() { sharedEffectIDs = ours(func(o *operationRow) uint64 { return o.effectID }) })
	all.Go(func() { intents = ours(func(o *operationRow) uint64 { return o.intent }) })
	all.Wait()
	s.sharedKeys, s.sharedEffectIDs = map[uint64]bool{}, map[uint64]bool{}
	for _, row := range slices.Concat(sharedIDs, sharedKeys, sharedEffectIDs, intents) {
		s.operations.exact[row] = true
	}
	for _, row := range sharedKeys {
		s.sharedKeys[s.operations.at(row).key] = true
	}
	for _, row := range sharedEffectIDs {
		s.sharedEffectIDs[s.operations.at(row).effectID] = true
	}
}

func (s *sieve) hashOf(hash func(*operationRow) uint64) func(row int32) uint64 {
	return func(row int32) uint64 { return hash(s.operations.at(row)) }
}

// name finds the operation that each effect names, by reference, key or id. Nearly all name
// one whose key and effect id are theirs. Only what others ask for is indexed by these.
func (s *sieve) name() {
	s.owner = make([]int32, s.effects.n)
	var unclear []int32
	var lock sync.Mutex
	inParts(s.effects.n, func(from, to int32) {
		var mine []int32
		for i := from; i < to; i++ {
			e := s.effects.at(i)
			o := s.byID.find(e.reference)
			// What the owner bears itself need not be looked up: where it is another's as well,
			// both are exact already. Exact effects ask for all: lines of one effect may say
			// together what none says alone.
			if s.owner[i] = o; o < 0 || s.effects.exact[i] || e.key != 0 && e.key != s.operations.at(o).key || e.id != s.operations.at(o).effectID {
				mine = append(mine, i)
			}
		}
		lock.Lock()
		defer lock.Unlock()
		unclear = append(unclear, mine...)
	})
	keys, ids := newHashes(len(unclear)), newHashes(len(unclear))
	for _, i := range unclear {
		keys.add(s.effects.at(i).key)
		ids.add(s.effects.at(i).id)
	}
	var both sync.WaitGroup
	both.Go(func() { s.byKey = s.findOnly(keys, func(o *operationRow) uint64 { return o.key }) })
	both.Go(func() { s.byEffectID = s.findOnly(ids, func(o *operationRow) uint64 { return o.effectID }) })
	both.Wait()
	for _, i := range unclear {
		e := s.effects.at(i)
		s.nameBy(i, s.byKey.find(e.key))
		s.nameBy(i, s.byEffectID.find(e.id))
	}
}

// findOnly makes a finder of the operations whose hash is asked for.
func (s *sieve) findOnly(asked hashes, hash func(*operationRow) uint64) *finder {
	rows := having(asked, s.operations.n, s.hashOf(hash))
	f := newFinder(len(rows), s.hashOf(hash))
	for _, row := range rows {
		f.put(row)
	}
	return f
}

// nameBy notes that an effect names another operation, too. Where it names several all of
// them are exact, and it belongs to the first.
func (s *sieve) nameBy(i, found int32) {
	switch owner := s.owner[i]; {
	case found < 0:
	case owner < 0:
		s.owner[i] = found
	case found != owner:
		s.effects.exact[i], s.operations.exact[found], s.operations.exact[owner] = true, true, true
	}
}

// inParts does what is to be done for n rows, one part by each processor, at the same time.
func inParts(n int, do func(from, to int32)) {
	var all sync.WaitGroup
	parts := runtime.GOMAXPROCS(0)
	for part := range parts {
		all.Go(func() { do(int32(n*part/parts), int32(n*(part+1)/parts)) })
	}
	all.Wait()
}
