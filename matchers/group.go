package matchers

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Operations that declare the same group are settled together: one transfer pays
// several, or one charge is captured in several parts. An effect belongs to the group
// that its reference names, and the amounts of both sides must add up exactly; a
// tolerance is for one amount and would hide a lost one here.
//
//	one live effect has the sum of the operations   it stands for all of them
//	several have it                                 each does, so it was done more than once
//	the live effects have it together               each is a part
//	else                                            the sum is off, which is a difference
//
// Operations that are known to have failed are left out first; they count only where
// the sum needs them.

// grouped is the owner of an effect that stands for a group.
const grouped = -2

// maxGroupEffects bounds the effects that each operation of a group is linked to, so
// that a constant in the field of the group does not take the product of both files.
const maxGroupEffects = 64

// grouping is a declared group with the effects that name it.
type grouping struct {
	name    string
	members []int32 // operations
	effects []int32
	ids     map[string]bool // of effects, as operations know them
}

// groupID tells groups of one name apart: another kind of effect or another account is
// another group.
type groupID struct {
	identity
	kind, account string
}

// declareGroups notes which operations declare a group.
func (p *pairer) declareGroups() {
	for o, op := range p.operations {
		if op.Group == "" {
			continue
		}
		if p.declared == nil {
			p.declared, p.groups, p.groupOf = map[identity][]int32{}, map[groupID]*grouping{}, map[int32]*grouping{}
		}
		id := identity{p.placeOf(p.termsFor(o).System, op.Mode), op.Group}
		p.declared[id] = append(p.declared[id], int32(o))
	}
}

// joinGroup gives the effect to the group that its reference names and reports whether
// there is one. A reference that is an operation's own id means that operation, unless
// it gave its id to the group.
func (p *pairer) joinGroup(e int, at int32) bool {
	if p.declared == nil {
		return false
	}
	effect := p.effects[e]
	name := byReference.ofEffect(effect)
	if name == "" || effect.Owner != "" && effect.Owner != name {
		return false
	}
	id := groupID{identity{at, name}, effect.Kind, effect.Account}
	if p.groups[id] == nil && !p.openGroup(id, int32(e)) {
		return false
	}
	g := p.groups[id]
	g.effects = append(g.effects, int32(e))
	p.groupOf[int32(e)] = g
	p.owner[e] = grouped
	p.contested = append(p.contested, int32(e)) // whom else it names must hear of it
	return true
}

func (p *pairer) openGroup(id groupID, e int32) bool {
	for i := range linking {
		if linking[i].basis != recon.OnReference {
			continue
		}
		for _, o := range p.indexes[i].named(id.identity, nil) {
			if p.operations[o].Group != id.value {
				return false
			}
		}
	}
	g := &grouping{name: id.value}
	for _, o := range p.declared[id.identity] {
		if p.mayBe(o, e) {
			g.members = append(g.members, o)
		}
	}
	if len(g.members) == 0 {
		return false
	}
	slices.SortFunc(g.members, func(a, b int32) int { return cmp.Compare(p.operations[a].ID, p.operations[b].ID) })
	p.groups[id] = g
	return true
}

// groupLinks pairs the operations of every group with its effects, in the order of
// their names.
func (p *pairer) groupLinks() []Link {
	if len(p.groups) == 0 {
		return nil
	}
	var links []Link
	p.recorded = p.recordedSeen()
	for _, g := range p.groups {
		g.ids = make(map[string]bool, len(g.effects))
		for _, e := range g.effects {
			g.ids[p.effects[e].ID] = true
		}
		slices.SortFunc(g.effects, func(a, b int32) int {
			x, y := p.effects[a], p.effects[b]
			return cmp.Or(x.CreatedAt.Compare(y.CreatedAt), compareEffects(x, y))
		})
		links = append(links, p.settle(g)...)
	}
	slices.SortFunc(links, byNames(p.operations, p.effects))
	return links
}

// settle holds the amounts of a group against each other.
func (p *pairer) settle(g *grouping) []Link {
	live := slices.DeleteFunc(slices.Clone(g.effects), func(e int32) bool { return !p.effects[e].Status.Live() })
	standing := slices.DeleteFunc(slices.Clone(g.members), func(o int32) bool { return p.operations[o].State == recon.Failed })
	readings := [][]int32{standing, g.members}
	if len(standing) == 0 {
		readings = readings[1:]
	}
	for _, members := range readings {
		ours, known := p.sum(members)
		if !known && ours.text != "" {
			continue
		}
		whole := slices.DeleteFunc(slices.Clone(live), func(e int32) bool { return !standsAlone(p.effects[e].Money, ours) })
		switch {
		case len(whole) > 0, len(live) == 0:
			return p.wholes(g, members, ours)
		case ours.equals(p.total(live)):
			return p.parts(g, members, live, ours)
		}
	}
	ours, _ := p.sum(readings[0])
	return p.off(g, readings[0], ours, p.total(live))
}

// wholes links every operation with every effect: each that has the sum stands for all.
func (p *pairer) wholes(g *grouping, members []int32, ours sum) []Link {
	return p.each(g, members, func(e *recon.Effect, in *recon.Group) []recon.Difference {
		switch {
		case !e.Status.Live():
		case !standsAlone(e.Money, ours):
			return []recon.Difference{{Field: "group", Ours: p.tell(ours, "operation"), Theirs: e.Money.Text(p.exponents(members))}}
		case !e.Money.IsZero() && ours.count > 0:
			for _, o := range members {
				in.Shares = append(in.Shares, p.operations[o].Money.Minor)
			}
		}
		return nil
	})
}

// off links them with the difference of the sums.
func (p *pairer) off(g *grouping, members []int32, ours, theirs sum) []Link {
	d := recon.Difference{Field: "group", Ours: p.tell(ours, "operation"), Theirs: p.tell(theirs, "effect")}
	return p.each(g, members, func(e *recon.Effect, _ *recon.Group) []recon.Difference {
		if !e.Status.Live() {
			return nil
		}
		return []recon.Difference{d}
	})
}

// each links operations with effects, as far as the bound allows.
func (p *pairer) each(g *grouping, members []int32, judge func(*recon.Effect, *recon.Group) []recon.Difference) []Link {
	ours, _ := p.sum(members)
	effects := g.effects
	if len(members) > 1 && len(effects) > maxGroupEffects {
		effects = effects[:maxGroupEffects]
	}
	var links []Link
	for _, e := range effects {
		in := p.group(g, members, ours)
		more := judge(p.effects[e], in)
		for _, o := range members {
			l := p.groupLink(g, o, e, in)
			l.Differences = slices.Concat(more, l.Differences)
			links = append(links, l)
		}
	}
	return links
}

// parts shares out the effects, earliest first, among the operations in the order of
// their ids: each amount is used up exactly.
func (p *pairer) parts(g *grouping, members, live []int32, ours sum) []Link {
	var links []Link
	next, left := 0, p.operations[members[0]].Money.Minor
	for _, e := range live {
		in := p.group(g, members, ours)
		in.Shares = make([]int64, len(members))
		for rest := p.effects[e].Money.Minor; rest > 0; {
			share := min(rest, left)
			in.Shares[next] += share
			part := p.groupLink(g, members[next], e, in)
			part.Part = true
			links = append(links, part)
			rest, left = rest-share, left-share
			if left == 0 && next+1 < len(members) {
				next++
				left = p.operations[members[next]].Money.Minor
			}
		}
	}
	for _, e := range g.effects {
		if !p.effects[e].Status.Live() && len(links) < len(members)*maxGroupEffects {
			in := p.group(g, members, ours)
			for _, o := range members {
				links = append(links, p.groupLink(g, o, e, in))
			}
		}
	}
	return links
}

func (p *pairer) group(g *grouping, members []int32, ours sum) *recon.Group {
	in := &recon.Group{Name: g.name, Operations: make([]recon.OperationID, len(members))}
	for i, o := range members {
		in.Operations[i] = p.operations[o].ID
	}
	if ours.text == "" && ours.count > 0 {
		in.Money = ours.money
	}
	return in
}

// groupLink is one pair of a group. Amounts are compared as sums, and a target or a key
// of one operation says nothing of an effect that stands for several.
func (p *pairer) groupLink(g *grouping, o, e int32, in *recon.Group) Link {
	l := Link{
		Operation: int(o), Effect: int(e), Basis: recon.OnReference, Certainty: recon.Proof, Group: in,
	}
	for _, d := range differences(p.operations[o], p.effects[e], p.termsFor(int(o))) {
		switch d.Field {
		case "amount", "currency", "reference":
		case "target", "key":
			if len(in.Operations) == 1 {
				l.Differences = append(l.Differences, d)
			}
		default:
			l.Differences = append(l.Differences, d)
		}
	}
	if id := p.operations[o].EffectID; id != "" && !g.ids[id] && !p.recorded[o] {
		l.Differences = append(l.Differences, recon.Difference{Field: "effect_id", Ours: id, Theirs: p.effects[e].ID})
	}
	return l
}

// sum is what amounts add up to.
type sum struct {
	money recon.Money
	count int    // how many have an amount
	of    int    // how many there are
	text  string // why they do not add up; empty: they do
}

// sum adds up the operations and reports whether every one has an amount. None having
// one is not compared, as with single operations.
func (p *pairer) sum(members []int32) (sum, bool) {
	s := sum{of: len(members)}
	for _, o := range members {
		s.add(p.operations[o].Money)
	}
	s.complete(func() string {
		o := slices.IndexFunc(members, func(o int32) bool { return p.operations[o].Money.IsZero() })
		return fmt.Sprintf("not known, since %s has no amount", p.operations[members[o]].ID)
	})
	return s, s.text == "" && s.count > 0
}

// total adds up effects.
func (p *pairer) total(effects []int32) sum {
	s := sum{of: len(effects)}
	for _, e := range effects {
		s.add(p.effects[e].Money)
	}
	s.complete(func() string {
		e := slices.IndexFunc(effects, func(e int32) bool { return p.effects[e].Money.IsZero() })
		return fmt.Sprintf("not known, since %s has no amount", p.effects[effects[e]].ID)
	})
	return s
}

func (s *sum) add(m recon.Money) {
	switch {
	case m.IsZero() || s.text != "":
	case s.count > 0 && m.Currency != s.money.Currency:
		s.text = fmt.Sprintf("not one amount: %s and %s", s.money.Currency, m.Currency)
	default:
		minor, carry := bits.Add64(uint64(s.money.Minor), uint64(m.Minor), 0)
		if carry != 0 || int64(minor) < 0 {
			s.text = "more than can be counted"
			return
		}
		s.money = recon.Money{Minor: int64(minor), Currency: m.Currency}
		s.count++
	}
}

// complete says so where some have an amount and others have none.
func (s *sum) complete(missing func() string) {
	if s.text == "" && s.count > 0 && s.count < s.of {
		s.text = missing()
	}
}

// equals reports whether both add up to the same; what does not add up equals nothing.
func (s sum) equals(o sum) bool {
	return s.text == "" && o.text == "" && s.count > 0 && o.count > 1 && s.money == o.money
}

// standsAlone reports whether one amount is the sum, or one of them is not known at all.
func standsAlone(m recon.Money, s sum) bool {
	return s.text == "" && (s.count == 0 || m.IsZero() || m == s.money)
}

func (p *pairer) tell(s sum, noun string) string {
	if s.of != 1 {
		noun += "s"
	}
	if s.text != "" {
		return fmt.Sprintf("%s (%d %s)", s.text, s.of, noun)
	}
	return fmt.Sprintf("%s in %d %s", s.money.Text(p.exponents(nil)), s.of, noun)
}

// exponents are the decimals of the source's currencies, for texts.
func (p *pairer) exponents(members []int32) map[string]int {
	if len(members) > 0 {
		return p.termsFor(int(members[0])).Exponents
	}
	for i := range p.terms {
		if len(p.terms[i].Exponents) > 0 {
			return p.terms[i].Exponents
		}
	}
	return nil
}

// rest says what a further link to an effect that a group uses up would leave.
func (p *pairer) rest(g *grouping, o, e int32) *recon.Difference {
	effect := p.effects[e].Money
	if effect.IsZero() || p.operations[o].Money.Currency != effect.Currency {
		return nil
	}
	ours, known := p.sum(g.members)
	if !known || ours.money != effect {
		return nil
	}
	left := recon.Money{Minor: -p.operations[o].Money.Minor, Currency: effect.Currency}
	return &recon.Difference{Field: "rest", Ours: left.Text(p.exponents(g.members)), Theirs: "used up by group " + g.name}
}
