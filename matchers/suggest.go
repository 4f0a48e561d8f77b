package matchers

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// A suggester names operations that an effect without owner may belong to.
type suggester struct {
	basis recon.Basis
	// operations gives the words by which an operation is found; none leaves it out.
	operations func(*pairer, int) []string
	effects    func(*recon.Effect) []string
	// suits judges a pair that shares a word.
	suits func(*recon.Operation, *recon.Effect) bool
}

// suggesting lists what is told to people about effects without owner. A pair is
// suggested once, by the first that suits.
var suggesting = []suggester{lookalike, sharedNatural, candidate}

// maxSuggested bounds the suggestions of one operation and of one effect. Each has at
// least its first ones, so that an operation never loses the only hint it has.
const maxSuggested = 8

// suggestions pairs what is left without owner, for people. Its cost grows with the
// number of effects and operations, because both sides of a bucket are cut.
func (p *pairer) suggestions() []Link {
	loose := p.withoutOwner()
	list := p.losers()
	type pair struct{ o, e int32 }
	told := map[pair]bool{}
	for _, l := range list {
		told[pair{int32(l.Operation), int32(l.Effect)}] = true
	}
	for i := range suggesting {
		s := &suggesting[i]
		p.eachBucket(s, loose, func(o, e int32) {
			if told[pair{o, e}] || !p.mayBe(o, e) || !s.suits(p.operations[o], p.effects[e]) {
				return
			}
			told[pair{o, e}] = true
			list = append(list, p.suggestion(o, e, s.basis))
		})
	}
	return list
}

func (p *pairer) suggestion(o, e int32, basis recon.Basis) Link {
	l := Link{
		Operation: int(o), Effect: int(e), Basis: basis, Certainty: recon.Suggestion,
		Differences: differences(p.operations[o], p.effects[e], p.termsFor(int(o))),
	}
	if g := p.groupOf[e]; g != nil {
		ours, _ := p.sum(g.members)
		l.Group = p.group(g, g.members, ours)
		if d := p.rest(g, o, e); d != nil {
			l.Differences = append(l.Differences, *d)
		}
	}
	return l
}

// inGroup reports whether the operation is one of the group that has the effect.
func (p *pairer) inGroup(o, e int32) bool {
	g := p.groupOf[e]
	return g != nil && slices.Contains(g.members, o)
}

// mayBe holds the conditions that stand before all evidence.
func (p *pairer) mayBe(o, e int32) bool {
	op, effect, t := p.operations[o], p.effects[e], p.termsFor(int(o))
	return t.System == effect.System && op.Mode == effect.Mode && (t.Kind == "" || t.Kind == effect.Kind) &&
		(op.Account == "" || effect.Account == "" || op.Account == effect.Account)
}

// withoutOwner gives the effects that nobody owns, here or in the ledger, in an order
// that does not depend on that of the input.
func (p *pairer) withoutOwner() []int32 {
	var loose []int32
	for e, o := range p.owner {
		if o == nobody && p.effects[e].Owner == "" {
			loose = append(loose, int32(e))
		}
	}
	slices.SortFunc(loose, func(a, b int32) int {
		x, y := p.effects[a], p.effects[b]
		return cmp.Or(x.CreatedAt.Compare(y.CreatedAt), compareEffects(x, y))
	})
	return loose
}

// eachBucket calls pair for operations and effects that share a word. Of a bucket
// with many of both it takes, for each operation, the first effects, and for each
// effect the first operations.
func (p *pairer) eachBucket(s *suggester, loose []int32, pair func(o, e int32)) {
	effects := map[string][]int32{}
	for _, e := range loose {
		for _, w := range s.effects(p.effects[e]) {
			effects[w] = append(effects[w], e)
		}
	}
	if len(effects) == 0 {
		return
	}
	operations := map[string][]int32{}
	for o := range p.operations {
		for _, w := range s.operations(p, o) {
			if _, wanted := effects[w]; wanted {
				operations[w] = append(operations[w], int32(o))
			}
		}
	}
	for w, os := range operations {
		slices.SortFunc(os, func(a, b int32) int {
			x, y := p.operations[a], p.operations[b]
			return cmp.Or(x.CreatedAt.Compare(y.CreatedAt), cmp.Compare(x.ID, y.ID))
		})
		for i, o := range os {
			for j, e := range effects[w] {
				if i >= maxSuggested && j >= maxSuggested {
					break
				}
				pair(o, e)
			}
		}
	}
}

// losers tells operations that an effect names, by reference, id or key, and that did
// not get it: stronger evidence names another, or the ledger gave it away before. They
// are not absent; they are disputed.
func (p *pairer) losers() []Link {
	var list []Link
	for _, e := range p.contested {
		owner, effect := p.owner[e], p.effects[e]
		if owner == nobody && effect.Owner == "" {
			continue
		}
		first := len(list)
		at := p.placeOf(effect.System, effect.Mode)
		for i := range linking {
			m := &linking[i]
			v := m.ofEffect(effect)
			if v == "" || m.unique {
				continue
			}
			p.found = p.mayOwn(m, p.indexes[i].named(identity{at, v}, p.found), effect)
			for _, o := range p.found {
				if o != owner && p.mayBe(o, e) && !tells(list[first:], o) && !p.inGroup(o, e) {
					list = append(list, p.suggestion(o, e, m.basis))
				}
			}
		}
	}
	return list
}

func tells(list []Link, o int32) bool {
	return slices.ContainsFunc(list, func(l Link) bool { return l.Operation == int(o) })
}

// fold reduces a text to its letters and digits in lower case, which is what is left
// when people copy an id by hand. Invisible characters, which copying brings along,
// fall away too.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + ('a' - 'A')
		case r > 0x7f && !unicode.Is(unicode.Cf, r) && !unicode.IsSpace(r):
			return r
		}
		return -1
	}, s)
}
