package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// lateAnswer: a sender says, after its lease was over, that it was done, and names the
// effect. That is no proof, but it is what to look for: the operation takes the id, and
// one that waits to be sent again is unknown instead.
var lateAnswer = rule{"late_answer", func(v *view) (conclusion, bool) {
	late, ok := v.lateSuccess()
	if !ok || len(v.linked) > 0 || !v.state().Open() || v.leased || v.c.Operation.EffectID != "" {
		return conclusion{}, false
	}
	return conclusion{to: v.toUnknown(), effectID: late.EffectID, reason: fmt.Sprintf(
		"The sender of the %s says, after its time was over, that it made %s; that is looked for.", v.what(), late.EffectID)}, true
}}

// lateSuccess gives the last late answer that tells of an effect.
func (v *view) lateSuccess() (recon.AttemptReport, bool) {
	for i := len(v.c.Late) - 1; i >= 0; i-- {
		if a := v.c.Late[i]; a.EffectID != "" && (a.Class == recon.ClassSucceeded || a.Class == recon.ClassAccepted) {
			return a, true
		}
	}
	return recon.AttemptReport{}, false
}

// disagreements tells of a late answer that says otherwise than the ledger: done where it
// says failed or not sent, refused or another effect where it says done.
func (v *view) disagreements() []recon.Finding {
	op := &v.c.Operation
	for i := len(v.c.Late) - 1; i >= 0; i-- {
		a := v.c.Late[i]
		done := a.Class == recon.ClassSucceeded || a.Class == recon.ClassAccepted
		var said string
		switch {
		case done && a.EffectID != "" && (op.State == recon.Failed || op.State == recon.Pending) && !v.sees(a.EffectID):
			said = "made " + a.EffectID
		case op.State == recon.Succeeded && done && a.EffectID != "" && a.EffectID != op.EffectID && !v.sees(a.EffectID):
			said = "made " + a.EffectID
		case op.State == recon.Succeeded && a.Class == recon.ClassRefused:
			said = "was refused"
			if a.ErrorCode != "" {
				said += " (" + a.ErrorCode + ")"
			}
		default:
			continue
		}
		f := v.finding(recon.FindConflict, fmt.Sprintf("The record says that the %s is %s, and its sender says, after its time was over, that it %s.",
			v.what(), op.State.Text(), said), nil)
		f.Observed = []recon.Difference{{Field: "late answer", Ours: string(op.State), Theirs: said}}
		return []recon.Finding{f}
	}
	return nil
}

// sees reports whether the effect with the id is linked, so that the other rules judge it.
func (v *view) sees(id string) bool {
	for _, p := range v.linked {
		if p.effect.ID == id {
			return true
		}
	}
	return false
}
