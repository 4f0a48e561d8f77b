package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// neverSent: the operation waits to be sent for too long, and no attempt has sent
// anything. The source is asked once, for a sender may have died between sending and
// saying so; then the policy decides.
var neverSent = rule{"never_sent", func(v *view) (conclusion, bool) {
	if !v.unsent() || !v.heard && v.c.Check.Looks == 0 && len(v.c.Sheet.Abilities) > 0 {
		return conclusion{}, false
	}
	f := v.neverSentFinding()
	if v.c.Policy.OnNeverSent == recon.NeverSentFail && v.counted != nil {
		reason := fmt.Sprintf("The %s was never sent, and a complete look finds no effect.", v.what())
		return conclusion{to: recon.Failed, code: "never_sent", reason: reason, looks: []string{v.counted.ID}}, true
	}
	return conclusion{to: recon.Pending, reason: f.Reason, findings: []recon.Finding{f}}, true
}}

// unsent reports whether the operation is stale and certainly nothing was sent.
func (v *view) unsent() bool {
	op := &v.c.Operation
	return op.State == recon.Pending && op.SentAt.IsZero() && len(v.linked) == 0 &&
		v.now.Sub(op.CreatedAt) >= v.c.Policy.StalePending.Std()
}

func (v *view) neverSentFinding() recon.Finding {
	op := &v.c.Operation
	reason := fmt.Sprintf("The %s was recorded %s ago and no call was made", v.what(), recon.Duration(v.now.Sub(op.CreatedAt)).Text())
	if op.Attempts > 0 {
		reason = fmt.Sprintf("The %s was recorded %s ago and none of its %d attempts sent anything", v.what(), recon.Duration(v.now.Sub(op.CreatedAt)).Text(), op.Attempts)
	}
	return v.finding(recon.FindNeverSent, reason+v.hint()+".", nil)
}
