package rules

import (
	"fmt"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// failedEffects: there are only effects that came to nothing. That closes the
// operation at once where its key holds the provider to one effect; elsewhere only
// when a complete look shows that there is no other one.
var failedEffects = rule{"failed_effects", func(v *view) (conclusion, bool) {
	s := v.state()
	if len(v.linked) == 0 || len(v.live) > 0 || v.leased || s == recon.ManualReview || !s.Open() {
		return conclusion{}, false
	}
	for _, p := range v.linked {
		if p.effect.Status != recon.EffectFailed {
			return conclusion{}, false
		}
	}
	said := conclusion{to: recon.Failed, main: &v.linked[len(v.linked)-1], code: "effect_failed"}
	if r := said.main.effect.FailureReason; r != "" {
		said.code = r
	}
	switch {
	case v.keyHolds():
		said.reason = fmt.Sprintf("The %s came to nothing: %s, found %s. The key holds the provider to this one effect.", v.what(), v.tell(v.linked), how(said.main.match))
	case v.counted != nil:
		said.reason = fmt.Sprintf("The %s came to nothing: %s, and a complete look shows no other effect.", v.what(), v.tell(v.linked))
		said.looks = []string{v.counted.ID}
	default:
		return conclusion{}, false
	}
	return said, true
}}

// keyHolds reports whether the provider can have made one effect only: the source
// promises it, and the key was really sent.
func (v *view) keyHolds() bool {
	op := &v.c.Operation
	if !v.c.Sheet.KeyHoldsOne || op.Key == "" || v.keyLifetime() == 0 {
		return false
	}
	return slices.Contains(op.Marks, recon.MarkKey) ||
		slices.ContainsFunc(v.linked, func(p pair) bool { return p.effect.Key == op.Key })
}
