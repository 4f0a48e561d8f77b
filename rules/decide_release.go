package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// release: the operation is absent, and a repeat under the same key is safe. It is
// pending again and may be claimed once; the product itself sends nothing.
var release = rule{"release", func(v *view) (conclusion, bool) {
	if !v.absent() || v.refusesRelease() != "" {
		return conclusion{}, false
	}
	reason := fmt.Sprintf("The %s is not at the provider: %s. It may be sent once more under the same key until %s.",
		v.what(), v.absenceText(), recon.TimeText(v.keyExpires().Add(-v.c.Policy.KeyMargin.Std()), nil))
	return conclusion{to: recon.Pending, release: true, reason: reason, looks: v.absence.LookIDs}, true
}}

// absenceText says by what the operation counts as absent.
func (v *view) absenceText() string {
	if v.absence.Looks == 1 {
		return "a complete look found nothing"
	}
	return fmt.Sprintf("%d complete looks over %s found nothing", v.absence.Looks, recon.Duration(v.absence.Last.Sub(v.absence.First)).Text())
}
