package rules

import (
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	// patience is how many passes in a row may fail to ask for one effect at a source that
	// answers, some hours of them. A source that will never say must not keep what is seen
	// from people.
	patience = 24
	// unsupported is the fault of a source that was there and cannot be asked this.
	unsupported = "unsupported"
)

// replies are the faults of a source that answered when it was asked for one effect, and not so
// that it can be known whether that is there.
var replies = []string{"malformed", "own_bug", "wrong_account"}

// unsought reports whether nothing that is seen is what was asked for, while the operation
// knows another effect that its source could be asked for and has not answered for yet. It
// may be there, and what is seen a second one. Nobody can be asked for what only export
// files tell of.
func (v *view) unsought() bool {
	if len(v.live) == 0 || len(v.equal) > 0 || v.knowsEffect() || v.sought() || v.toldMismatch() {
		return false
	}
	kind := v.c.Policy.Effect
	return slices.ContainsFunc(v.c.Sheet.Abilities, func(a recon.Ability) bool { return a.Method != recon.ByFile && a.Finds(kind) })
}

// sought reports whether this pass would have shown the effect that the operation knows. A
// blind look at where it may be leaves it open, whatever the others answered.
func (v *view) sought() bool {
	shown, blind, answers := false, false, v.heard
	for i := range v.c.Looks {
		l := &v.c.Looks[i]
		shown = shown || v.wouldShow(l)
		blind = blind || v.leavesOpen(l)
		answers = answers || l.Fault == unsupported || l.EffectID != "" && slices.Contains(replies, l.Fault)
	}
	return shown && !blind || answers && v.c.Check.Blinds >= patience
}

// leavesOpen reports whether a look could not ask for the effect that the operation knows: one
// for that very effect, or, where its account is not known, one for all that was to be asked
// in an account in which nothing else answered for it.
func (v *view) leavesOpen(l *recon.Look) bool {
	op := &v.c.Operation
	switch {
	case l.Outcome != recon.Blind:
		return false
	case l.EffectID != "" || op.Account != "":
		return l.EffectID == op.EffectID
	}
	return !slices.ContainsFunc(v.c.Looks, func(o recon.Look) bool { return o.Account == l.Account && o.Mode == l.Mode && v.wouldShow(&o) })
}

// wouldShow reports whether a look would have shown the effect that the operation knows:
// one for its id, or a complete list of where it would be. What does not read ids, as a
// filter on our reference, answers for it only where the source cannot be asked by id; and
// any answer does where, besides, nothing covers the operation because its account is not
// known.
func (v *view) wouldShow(l *recon.Look) bool {
	op := &v.c.Operation
	a, known := v.c.Sheet.Ability(l.Method)
	if !known || !asks(l.Method) || l.Outcome == recon.Blind || !l.At.After(v.lastPossible().Add(a.Lag.Std())) {
		return false
	}
	covers := l.Covers(*op, v.c.Policy.Effect)
	id, can := v.c.Sheet.Ability(recon.ByID)
	switch {
	case l.EffectID != "":
		return l.EffectID == op.EffectID
	case !can || !id.Finds(v.c.Policy.Effect):
		return op.Account == "" || covers && l.Complete && v.covered(l, a)
	case l.Key != "" || l.Reference != "" || a.Consistency != recon.Strong:
		return false
	}
	return covers && l.Complete && v.covered(l, a)
}

// toldMismatch reports whether people know of the mismatch that would be told: what was told
// is not taken back because a later pass could not ask.
func (v *view) toldMismatch() bool {
	print := v.mismatchFinding().Fingerprint()
	return slices.ContainsFunc(slices.Concat(v.c.Findings, v.c.Settled), func(f recon.Finding) bool { return f.Fingerprint() == print })
}
