package sweep

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/matchers"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// shelf holds the effects that a run has seen and not recorded yet. One list answers for
// many batches; each of its effects is recorded with the batch whose operation it names,
// once and with its owner, and what nobody took at the end of the run.
type shelf struct {
	effects map[recon.EffectIdentity]*shelved
	words   map[uint64][]*shelved // by the hash of a word: whoever shares one by chance is only looked at
	owners  map[recon.EffectIdentity]string
	seed    maphash.Seed
	gone    int // effects that were taken and still stand under words
}

// shelved is one effect with what the provider sent and the looks that saw it.
type shelved struct {
	effect recon.Effect
	raw    []byte
	looks  []*recon.Look // without what else they found: they are kept for as long as this is
	listed bool          // one of them was a list, which stays known until the run ends
	taken  bool
}

func newShelf() *shelf {
	return &shelf{
		effects: map[recon.EffectIdentity]*shelved{}, words: map[uint64][]*shelved{},
		owners: map[recon.EffectIdentity]string{}, seed: maphash.MakeSeed(),
	}
}

func (s *shelf) word(w string) uint64 { return maphash.String(s.seed, w) }

// put takes an answer, and whose its effects are. An effect that is seen again is as it
// is now.
func (s *shelf) put(a sources.Answer, owners map[recon.EffectIdentity]string) {
	for _, e := range a.Effects {
		id := e.Identity()
		on := s.effects[id]
		if on == nil {
			on = &shelved{}
			s.effects[id] = on
		}
		on.effect = e
		s.index(on)
	}
	for _, r := range a.Raw {
		if on := s.effects[r.Effect]; on != nil {
			on.raw = r.Bytes
		}
	}
	for _, l := range a.Looks {
		found := l.Found
		l.Found = nil
		for _, id := range found {
			if on := s.effects[id]; on != nil {
				on.looks = append(on.looks, &l)
				on.listed = on.listed || isList(l)
			}
		}
	}
	maps.Copy(s.owners, owners)
}

// has reports whether something may have to do with the case.
func (s *shelf) has(c recon.Case) bool {
	return slices.ContainsFunc(s.wordsOf(c), func(w uint64) bool {
		return slices.ContainsFunc(s.words[w], func(on *shelved) bool { return !on.taken })
	})
}

// shows reports whether a list of this run showed an effect that bears the operation's
// reference, at its own place.
func (s *shelf) shows(c recon.Case) bool {
	o := &c.Operation
	return slices.ContainsFunc(s.wordsOf(c), func(w uint64) bool {
		return slices.ContainsFunc(s.words[w], func(on *shelved) bool {
			e := &on.effect
			return on.listed && !on.taken && e.Reference == string(o.ID) && e.Kind == c.Policy.Effect && e.Account == o.Account && e.Mode == o.Mode
		})
	})
}

// take gives everything that may have to do with the cases, and keeps the rest.
func (s *shelf) take(cases []recon.Case) seen {
	var list []*shelved
	for _, c := range cases {
		for _, w := range s.wordsOf(c) {
			for _, on := range s.words[w] {
				if !on.taken {
					on.taken = true
					list = append(list, on)
				}
			}
			delete(s.words, w)
		}
	}
	return s.hand(list)
}

// wordsOf are the words of a case: those of its operation and its group, and the effects
// that it has, which may have been seen again.
func (s *shelf) wordsOf(c recon.Case) []uint64 {
	if len(s.words) == 0 {
		return nil
	}
	words := matchers.OperationWords(&c.Operation)
	for i := range c.Group {
		words = append(words, matchers.OperationWords(&c.Group[i].Operation)...)
	}
	for i := range c.Effects {
		words = append(words, matchers.EffectWords(&c.Effects[i])...)
	}
	hashed := make([]uint64, len(words))
	for i, w := range words {
		hashed[i] = s.word(w)
	}
	return hashed
}

// rest gives what nobody took, in pieces.
func (s *shelf) rest(size int) []seen {
	list := make([]*shelved, 0, len(s.effects))
	for _, on := range s.effects {
		on.taken = true
		list = append(list, on)
	}
	clear(s.words)
	slices.SortFunc(list, func(a, b *shelved) int {
		return cmp.Or(a.effect.CreatedAt.Compare(b.effect.CreatedAt), cmp.Compare(a.effect.ID, b.effect.ID))
	})
	var pieces []seen
	for piece := range slices.Chunk(list, size) {
		pieces = append(pieces, s.hand(piece))
	}
	return pieces
}

// back takes back what was handed out and could not be recorded, so that whoever comes next is
// shown it still.
func (s *shelf) back(from seen, refused []recon.EffectIdentity) {
	for _, on := range from.taken {
		id := on.effect.Identity()
		if !slices.Contains(refused, id) {
			continue
		}
		on.taken, s.effects[id] = false, on
		s.index(on)
		if owner := from.owners[id]; owner != "" {
			s.owners[id] = owner
		}
	}
}

// empty reports whether everything that was seen was taken.
func (s *shelf) empty() bool { return len(s.effects) == 0 }

// seen is what was taken from the shelf.
type seen struct {
	effects []recon.Effect
	raw     []ledger.Raw
	owners  map[recon.EffectIdentity]string
	by      []recon.Look // of the whole run, the newest first: what saw some of them, and which
	taken   []*shelved
}

func (s *shelf) hand(list []*shelved) seen {
	out := seen{owners: map[recon.EffectIdentity]string{}, taken: list}
	at := map[string]int{}
	for _, on := range list {
		id := on.effect.Identity()
		delete(s.effects, id)
		out.effects = append(out.effects, on.effect)
		if on.raw != nil {
			out.raw = append(out.raw, ledger.Raw{Effect: id, Bytes: on.raw})
		}
		if owner := s.owners[id]; owner != "" {
			out.owners[id] = owner
		}
		delete(s.owners, id)
		for _, l := range on.looks {
			n, known := at[l.ID]
			if !known {
				n, at[l.ID] = len(out.by), len(out.by)
				out.by = append(out.by, *l)
			}
			out.by[n].Found = append(out.by[n].Found, id)
		}
	}
	slices.SortFunc(out.by, func(a, b recon.Look) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.ID, a.ID)) })
	s.gone += len(list)
	s.compact()
	return out
}

// compact lets go of effects that were taken: under words that no operation has they would
// be kept until the run ends.
func (s *shelf) compact() {
	if s.gone <= len(s.effects)+defaultBatch {
		return
	}
	s.words, s.gone = make(map[uint64][]*shelved, len(s.effects)), 0
	for _, on := range s.effects {
		s.index(on)
	}
}

func (s *shelf) index(on *shelved) {
	for _, w := range matchers.EffectWords(&on.effect) {
		k := s.word(w)
		s.words[k] = append(s.words[k], on)
	}
}

// narrow gives the looks with what they saw of this only, so that nobody has to search
// a list of a hundred thousand for each of its operations.
func (s seen) narrow(looks []recon.Look) []recon.Look {
	found := make(map[string][]recon.EffectIdentity, len(s.by))
	for _, l := range s.by {
		found[l.ID] = l.Found
	}
	out := slices.Clone(looks)
	for i := range out {
		out[i].Found = found[out[i].ID]
	}
	return out
}

// seers gives the looks that saw each effect.
func (s seen) seers() map[recon.EffectIdentity][]recon.Look {
	of := make(map[recon.EffectIdentity][]recon.Look, len(s.effects))
	for _, l := range s.by {
		for _, id := range l.Found {
			of[id] = append(of[id], l)
		}
	}
	return of
}
