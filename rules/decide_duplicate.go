package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// duplicate: one operation has several live effects and at least one is equal. The
// earliest equal completed one stands for it; the others are surplus, and a person
// decides what is taken back. Where none is completed yet nobody knows which will be.
var duplicate = rule{"duplicate", func(v *view) (conclusion, bool) {
	if v.copies < 2 || len(v.equal) == 0 {
		return conclusion{}, false
	}
	if done := v.closable(v.done); len(done) > 0 {
		f := v.duplicateFinding(&done[0])
		return conclusion{to: recon.Succeeded, main: &done[0], reason: f.Reason, findings: []recon.Finding{f}}, true
	}
	if v.leased {
		return conclusion{}, false
	}
	main := v.kept()
	f := v.duplicateFinding(main)
	return conclusion{to: v.toUnknown(), main: main, reason: f.Reason, findings: []recon.Finding{f}}, true
}}

// kept is the effect that stands for an operation: the earliest equal completed one,
// else the earliest equal one; nil where none is equal.
func (v *view) kept() *pair {
	switch {
	case len(v.done) > 0:
		return &v.done[0]
	case len(v.equal) > 0:
		return &v.equal[0]
	}
	return nil
}

func (v *view) duplicateFinding(main *pair) recon.Finding {
	f := v.finding(recon.FindDuplicate, fmt.Sprintf("The %s was done %d times: %s. The one that counts is %s, found %s.",
		v.subject(v.live), v.copies, v.tell(v.live), main.effect.ID, how(main.match)), v.live)
	return ofGroup(f, v.live)
}
