package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// missing: the operation should have an effect, and a complete place has none. Either
// it was claimed to have succeeded, and one look that counts finds nothing; or it is
// absent, and may not be sent again.
var missing = rule{"missing", func(v *view) (conclusion, bool) {
	switch {
	case len(v.linked) > 0:
		return conclusion{}, false
	case v.state() == recon.Succeeded && v.counted != nil:
		f := v.missingFinding()
		if v.accepted(f) {
			return conclusion{}, false
		}
		return conclusion{to: recon.ManualReview, reason: f.Reason, findings: []recon.Finding{f}, looks: []string{v.counted.ID}}, true
	case v.absent():
		f := v.missingFinding()
		return conclusion{to: recon.ManualReview, reason: f.Reason, findings: []recon.Finding{f}, looks: v.absence.LookIDs}, true
	}
	return conclusion{}, false
}}

func (v *view) missingFinding() recon.Finding {
	reason := fmt.Sprintf("The %s is recorded as succeeded, and a complete look finds no effect%s.", v.what(), v.hint())
	if v.state() != recon.Succeeded {
		reason = fmt.Sprintf("The %s is not at the provider: %s.", v.what(), v.absenceText())
		if why := v.refusesRelease(); why != "" {
			reason += fmt.Sprintf(" It is not released, because %s.", why)
		}
	}
	return v.finding(recon.FindMissing, reason, nil)
}
