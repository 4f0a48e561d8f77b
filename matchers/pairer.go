package matchers

import (
	"cmp"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// maxNamed bounds how many operations one identity may name. An identity shared by
// more is a constant (a column mapped wrongly), and searching it would take the
// square of the file's length.
const maxNamed = 64

const nobody = -1

// place narrows an identity to where it is unique: a system and a mode. It is a
// number instead of two texts, because it is part of every key of every index.
type place struct{ system, mode string }

type identity struct {
	place int32
	value string
}

// index finds operations by one identity. Nearly all identities name one operation,
// so the map holds one and the rest hang behind it as a chain.
type index struct {
	first map[identity]int32
	next  map[int32]int32
	size  map[identity]int32 // only of identities that name more than one
}

func (x *index) add(id identity, o int32) {
	was, taken := x.first[id]
	x.first[id] = o
	if taken {
		x.next[o] = was
		x.size[id] = max(x.size[id], 1) + 1
	}
}

// named gives the operations of an identity, nil where they are too many.
func (x *index) named(id identity, into []int32) []int32 {
	into = into[:0]
	o, ok := x.first[id]
	if !ok || x.size[id] > maxNamed {
		return into
	}
	for ; ok; o, ok = x.next[o] {
		into = append(into, o)
	}
	return into
}

type pairer struct {
	operations []*recon.Operation
	effects    []*recon.Effect
	terms      []Terms // by termsOf
	termsOf    []int32
	places     map[place]int32
	lastPlace  place // asked for last: files hold long runs of one place
	lastNumber int32
	indexes    []index // one a linking matcher
	owner      []int32 // by effect
	basis      []int8  // place in linking; -1: the ledger's owner
	disputes   map[int32][]recon.Difference
	contested  []int32              // effects that evidence may give to others than their owner
	live       []bool               // by operation, made when first asked for
	declared   map[identity][]int32 // operations by the group that they declare; nil: none does
	groups     map[groupID]*grouping
	groupOf    map[int32]*grouping // by effect
	recorded   []bool              // by operation: the effect that it knows by id is its own
	found      []int32             // scratch
}

func newPairer(operations []*recon.Operation, effects []*recon.Effect, terms TermsFunc) *pairer {
	p := &pairer{
		operations: operations, effects: effects,
		termsOf:  make([]int32, len(operations)),
		places:   map[place]int32{},
		indexes:  make([]index, len(linking)),
		owner:    make([]int32, len(effects)),
		basis:    make([]int8, len(effects)),
		disputes: map[int32][]recon.Difference{},
	}
	p.collectTerms(terms)
	for i := range linking {
		p.indexes[i] = p.index(&linking[i])
	}
	p.declareGroups()
	return p
}

// index makes the index of one matcher. It is counted first: a map that grows to a
// million takes twice the time of one that is made for them.
func (p *pairer) index(m *matcher) index {
	n := 0
	for _, o := range p.operations {
		if m.ofOperation(o) != "" {
			n++
		}
	}
	x := index{first: make(map[identity]int32, n), next: map[int32]int32{}, size: map[identity]int32{}}
	if n == 0 {
		return x
	}
	for o, op := range p.operations {
		if v := m.ofOperation(op); v != "" {
			x.add(identity{p.placeOf(p.termsFor(o).System, op.Mode), v}, int32(o))
		}
	}
	return x
}

// collectTerms keeps equal terms once: a file of a million operations has a handful.
func (p *pairer) collectTerms(terms TermsFunc) {
	type brief struct {
		source recon.SourceName
		action string
	}
	known := map[brief]int32{}
	for o := range p.operations {
		b := brief{p.operations[o].Source, p.operations[o].Action}
		n, ok := known[b]
		if !ok {
			n = int32(len(p.terms))
			p.terms = append(p.terms, terms(p.operations[o]))
			known[b] = n
		}
		p.termsOf[o] = n
	}
}

func (p *pairer) termsFor(o int) *Terms { return &p.terms[p.termsOf[o]] }

func (p *pairer) placeOf(system, mode string) int32 {
	at := place{system, mode}
	if at == p.lastPlace && len(p.places) > 0 {
		return p.lastNumber
	}
	n, ok := p.places[at]
	if !ok {
		n = int32(len(p.places))
		p.places[at] = n
	}
	p.lastPlace, p.lastNumber = at, n
	return n
}

// own decides who owns an effect: the operation named by the strongest evidence.
func (p *pairer) own(e int) {
	p.owner[e], p.basis[e] = nobody, -1
	effect := p.effects[e]
	at, contested := p.placeOf(effect.System, effect.Mode), false
	if p.joinGroup(e, at) {
		return
	}
	if effect.Owner != "" && !p.keepOwner(e) {
		p.contested = append(p.contested, int32(e)) // whom it names here must hear of it
		return
	}
	for i := range linking {
		m := &linking[i]
		v := m.ofEffect(effect)
		if v == "" {
			continue
		}
		p.found = p.mayOwn(m, p.indexes[i].named(identity{at, v}, p.found), effect)
		contested = contested || len(p.found) > 1
		switch {
		case len(p.found) == 0, m.unique && len(p.found) > 1:
		case p.owner[e] == nobody:
			p.owner[e], p.basis[e] = p.best(p.found, effect), int8(i)
		case !slices.Contains(p.found, p.owner[e]) && m.certainty == recon.Proof:
			contested = true
			p.dispute(e, i)
		}
		if p.basis[e] == -1 && slices.Contains(p.found, p.owner[e]) {
			p.basis[e] = int8(i)
		}
	}
	if contested {
		p.contested = append(p.contested, int32(e))
	}
}

// keepOwner takes the owner that the ledger gave the effect and reports whether it is
// among the operations. One that belongs to somebody else is nobody's here.
func (p *pairer) keepOwner(e int) bool {
	for i := range linking {
		if linking[i].basis != recon.OnReference {
			continue
		}
		// The index of references is the index of operation ids.
		at := p.placeOf(p.effects[e].System, p.effects[e].Mode)
		p.found = p.indexes[i].named(identity{at, p.effects[e].Owner}, p.found)
		if len(p.found) > 0 {
			p.owner[e] = p.found[0]
			return true
		}
	}
	return false
}

// mayOwn keeps those of the named operations that make effects of this kind.
func (p *pairer) mayOwn(m *matcher, named []int32, e *recon.Effect) []int32 {
	kept := named[:0]
	for _, o := range named {
		kind := p.termsFor(int(o)).Kind
		if (kind == "" || kind == e.Kind) && (m.names == nil || m.names(p.operations[o], e)) {
			kept = append(kept, o)
		}
	}
	return kept
}

// best chooses among operations that share an identity: one without differences,
// then the earliest. The choice does not depend on their order.
func (p *pairer) best(named []int32, e *recon.Effect) int32 {
	best := named[0]
	if len(named) == 1 {
		return best
	}
	fewest := len(differences(p.operations[best], e, p.termsFor(int(best))))
	for _, o := range named[1:] {
		n := len(differences(p.operations[o], e, p.termsFor(int(o))))
		a, b := p.operations[o], p.operations[best]
		if cmp.Or(cmp.Compare(n, fewest), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID)) < 0 {
			best, fewest = o, n
		}
	}
	return best
}

// dispute notes that weaker evidence names another operation than the owner. A key
// of another account is another key.
func (p *pairer) dispute(e, matcher int) {
	p.found = slices.DeleteFunc(p.found, func(o int32) bool { return !p.mayBe(o, int32(e)) })
	if len(p.found) == 0 {
		return
	}
	owner, other := p.operations[p.owner[e]], p.operations[p.best(p.found, p.effects[e])]
	p.disputes[int32(e)] = append(p.disputes[int32(e)], recon.Difference{
		Field:  string(linking[matcher].basis),
		Ours:   linking[matcher].ofOperation(owner),
		Theirs: "claimed by " + string(other.ID),
	})
}

// links makes the pairs of all owned effects, with their differences. They are put in
// their places by counting, since sorting a million takes longer than pairing them.
func (p *pairer) links() []Link {
	next := make([]int32, len(p.operations)+1) // where the operation's next link goes
	for _, o := range p.owner {
		if o >= 0 {
			next[o+1]++
		}
	}
	for o := range p.operations {
		next[o+1] += next[o]
	}
	links := make([]Link, next[len(p.operations)])
	if p.recorded == nil {
		p.recorded = p.recordedSeen()
	}
	for e, o := range p.owner {
		if o >= 0 {
			links[next[o]] = p.link(o, e, p.recorded[o])
			next[o]++
		}
	}
	return links
}

func (p *pairer) link(o int32, e int, recorded bool) Link {
	op, effect := p.operations[o], p.effects[e]
	l := Link{Operation: int(o), Effect: e, Basis: recon.OnPerson, Certainty: recon.Proof}
	if b := p.basis[e]; b >= 0 {
		l.Basis, l.Certainty = linking[b].basis, linking[b].certainty
	}
	l.Differences = differences(op, effect, p.termsFor(int(o)))
	if op.EffectID != "" && !recorded {
		l.Differences = append(l.Differences, recon.Difference{Field: "effect_id", Ours: op.EffectID, Theirs: effect.ID})
	}
	for _, d := range p.disputes[int32(e)] {
		if !hasField(l.Differences, d.Field) {
			l.Differences = append(l.Differences, d)
		}
	}
	return l
}

// recordedSeen tells of which operations the effect that they know by id is theirs.
// Of the others the ledger and the provider name different effects.
func (p *pairer) recordedSeen() []bool {
	seen := make([]bool, len(p.operations))
	for e, o := range p.owner {
		if o >= 0 && p.operations[o].EffectID == p.effects[e].ID {
			seen[o] = true
		}
	}
	return seen
}

func hasField(list []recon.Difference, field string) bool {
	return slices.ContainsFunc(list, func(d recon.Difference) bool { return d.Field == field })
}
