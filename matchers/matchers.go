package matchers

import (
	"cmp"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// A matcher finds operations by one identity. Both functions give "" where there is
// nothing to compare.
type matcher struct {
	basis       recon.Basis
	certainty   recon.Certainty
	ofOperation func(*recon.Operation) string
	ofEffect    func(*recon.Effect) string
	// names reports whether an operation found by its identity may be the owner; nil
	// means always.
	names func(*recon.Operation, *recon.Effect) bool
	// unique says that the identity proves nothing where two operations share it.
	unique bool
}

// linking lists the matchers that may make an owner, strongest first.
var linking = []matcher{byReference, byEffectID, byKey, byNaturalReference}

// Terms is what the policy of an operation says about pairing.
type Terms struct {
	System    string         // of the source; effects of other systems are other things
	Kind      string         // of effect that the action makes; empty: any
	Tolerance int64          // of amounts, in minor units
	Exponents map[string]int // of currencies, for texts
}

// TermsOf gives the terms of a policy for operations of a source.
func TermsOf(p recon.Policy, source recon.SourceName) Terms {
	t := Terms{System: p.System, Kind: p.Effect, Tolerance: p.Tolerance, Exponents: p.Exponents}
	if t.System == "" {
		t.System = string(source)
	}
	return t
}

// TermsFunc gives the terms of an operation.
type TermsFunc func(*recon.Operation) Terms

// Link is one pair, by its places in the two slices that were paired.
type Link struct {
	Operation, Effect int
	Basis             recon.Basis
	Certainty         recon.Certainty
	Differences       []recon.Difference
	Group             *recon.Group // as in recon.Match
	Part              bool
}

// Match names what a link pairs by place.
func (l Link) Match(operation recon.OperationID, effect recon.EffectIdentity) recon.Match {
	return recon.Match{
		Operation: operation, Effect: effect, Basis: l.Basis, Certainty: l.Certainty,
		Differences: l.Differences, Group: l.Group, Part: l.Part,
	}
}

// Pairing is everything that is known of who belongs to whom.
type Pairing struct {
	// Links have one entry for an effect that one operation owns, in the order of the two
	// slices: those of one operation stand together.
	Links []Link
	// Grouped pair the operations of declared groups with the effects of the group, in
	// the order of the operations' ids, then the effects' identities.
	Grouped []Link
	// Suggestions are for people, in the order of the operations' ids, then the
	// effects' identities.
	Suggestions []Link
}

// Pair pairs operations with effects: links first, then suggestions. The ids of the
// operations and the identities of the effects must be unique. It takes one
// operation with three effects as well as a million with a million; the time grows
// with their number and never with its square.
//
// The matches' roles stay empty: which effect is the main one is for rules to say.
func Pair(operations []recon.Operation, effects []recon.Effect, terms TermsFunc) []recon.Match {
	os, es := pointers(operations), pointers(effects)
	p := Index(os, es, terms)
	p.Links = append(p.Links, p.Grouped...)
	slices.SortFunc(p.Links, byNames(os, es))
	matches := make([]recon.Match, 0, len(p.Links)+len(p.Suggestions))
	for _, l := range slices.Concat(p.Links, p.Suggestions) {
		matches = append(matches, l.Match(operations[l.Operation].ID, effects[l.Effect].Identity()))
	}
	return matches
}

func pointers[T any](values []T) []*T {
	list := make([]*T, len(values))
	for i := range values {
		list[i] = &values[i]
	}
	return list
}

// Index is Pair for callers that hold whole files: it answers with places instead of
// names, and takes pointers, so that nobody has to bring a million large values into
// one piece of memory.
func Index(operations []*recon.Operation, effects []*recon.Effect, terms TermsFunc) Pairing {
	p := newPairer(operations, effects, terms)
	for e := range effects {
		p.own(e)
	}
	groups := p.groupLinks()
	suggestions := p.suggestions()
	slices.SortFunc(suggestions, byNames(operations, effects))
	return Pairing{Links: p.links(), Grouped: groups, Suggestions: suggestions}
}

// byNames orders links by what they name, so that the result does not depend on the
// order of the input.
func byNames(operations []*recon.Operation, effects []*recon.Effect) func(a, b Link) int {
	return func(a, b Link) int {
		return cmp.Or(
			cmp.Compare(operations[a.Operation].ID, operations[b.Operation].ID),
			compareEffects(effects[a.Effect], effects[b.Effect]),
			cmp.Compare(a.Basis, b.Basis),
		)
	}
}

func compareEffects(a, b *recon.Effect) int {
	return cmp.Or(
		cmp.Compare(a.System, b.System), cmp.Compare(a.Account, b.Account),
		cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.ID, b.ID),
	)
}
