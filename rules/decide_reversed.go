package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// reversed: it was done, and nothing of it is left. A refund comes back from a closed
// account weeks after everybody was told that it was paid.
var reversed = rule{"reversed", func(v *view) (conclusion, bool) {
	if !v.undone() || v.leased {
		return conclusion{}, false
	}
	// The effect that the operation knows may be live and simply not in what was read.
	if v.state() == recon.Succeeded && !v.knowsEffect() && v.counted == nil {
		return conclusion{}, false
	}
	f := v.reversedFinding()
	to := v.toReview()
	if v.state() == recon.Failed || v.state() == recon.Succeeded && v.accepted(f) {
		to = v.state()
	}
	return conclusion{to: to, reason: f.Reason, findings: []recon.Finding{f}}, true
}}

// undone reports whether nothing live is left of what was done.
func (v *view) undone() bool {
	if len(v.live) > 0 || len(v.linked) == 0 {
		return false
	}
	for _, p := range v.linked {
		if p.effect.Status == recon.Reversed {
			return true
		}
	}
	return v.state() == recon.Succeeded
}

func (v *view) reversedFinding() recon.Finding {
	last := v.linked[len(v.linked)-1].effect
	reason := fmt.Sprintf("The %s did not last: %s.", v.subject(v.linked), v.tell(v.linked))
	if last.FailureReason != "" {
		reason = fmt.Sprintf("The %s did not last: %s, because of %s.", v.subject(v.linked), v.tell(v.linked), recon.Noun(last.FailureReason))
	}
	f := v.finding(recon.FindReversed, reason, v.linked)
	for _, p := range v.linked {
		f.Observed = append(f.Observed, recon.Difference{Field: "status", Ours: string(recon.Completed), Theirs: string(p.effect.Status)})
	}
	return ofGroup(f, v.linked)
}
