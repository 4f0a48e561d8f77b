package rules

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// releaseWithin is how soon after a capture its provider releases what was held and not
// captured: in the same second, as providers count.
const releaseWithin = time.Second

// Releases reports whether an effect without operation is the provider's own release of
// what a capture left of a hold: a refund under the captured payment, made in the same
// second, that nobody put a mark on. The capture must be one that an operation explains.
func Releases(e, capture recon.Effect) bool {
	apart := e.CreatedAt.Sub(capture.CreatedAt)
	return repays(e, capture) && max(apart, -apart) <= releaseWithin && e.CausedBy == "" &&
		strings.TrimSpace(e.Reference) == "" && e.Key == "" && e.NaturalReference == "" && e.CreatedBy == ""
}

// repays reports whether an effect gives back something of another one.
func repays(e, of recon.Effect) bool {
	back := e.Kind == "refund" || strings.HasSuffix(e.Kind, "reversal")
	return back && e.Kind != of.Kind && e.Status == recon.Completed && e.Under(of.ID) &&
		e.System == of.System && e.Account == of.Account && e.Mode == of.Mode
}

// dropRepaid takes out what was done twice and given back: once only one is left, the
// duplicate has ended. The latest is taken out first, and one always stays: what becomes of
// a single effect is not ours to say.
func (v *view) dropRepaid() {
	for i := len(v.live) - 1; i >= 0 && len(v.live) > 1; i-- {
		p := v.live[i]
		by := v.repayments(p.effect)
		if by == nil {
			continue
		}
		v.repaid = append(v.repaid, by...)
		gone := func(q pair) bool { return q.effect.Identity() == p.effect.Identity() }
		v.live = slices.DeleteFunc(v.live, gone)
		v.equal = slices.DeleteFunc(v.equal, gone)
		v.done = slices.DeleteFunc(v.done, gone)
	}
}

// repayments gives the effects that gave back all of an effect, nil where less was.
func (v *view) repayments(of recon.Effect) []recon.EffectIdentity {
	if of.Money.IsZero() || of.Status != recon.Completed {
		return nil
	}
	var by []recon.EffectIdentity
	left := of.Money.Minor
	for _, e := range v.c.Effects {
		if repays(e, of) && e.Money.Currency == of.Money.Currency {
			by = append(by, e.Identity())
			left -= e.Money.Minor
		}
	}
	if left > 0 {
		return nil
	}
	return by
}
