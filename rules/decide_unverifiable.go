package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// unverifiable: the source can neither be asked nor tells by itself, and the policy
// accepts that. Waiting would bring nothing, so a person is asked at once.
var unverifiable = rule{"unverifiable", func(v *view) (conclusion, bool) {
	known := v.c.Operation.EffectID != "" && len(v.c.Sheet.Abilities) > 0
	if v.state() != recon.Unknown || v.c.Policy.Unverifiable != "accepted" || known || v.c.Sheet.Finds(v.c.Policy) || v.c.Sheet.Webhooks {
		return conclusion{}, false
	}
	f := v.finding(recon.FindUnresolved, fmt.Sprintf("Nobody can say what came of the %s: the source cannot be asked and tells nothing.", v.what()), nil)
	return conclusion{to: recon.ManualReview, reason: f.Reason, findings: []recon.Finding{f}}, true
}}
