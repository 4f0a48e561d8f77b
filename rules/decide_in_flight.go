package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// inFlight: an equal effect has begun and is not done. The operation stays open with
// its id: pending at the provider is neither done nor failed.
var inFlight = rule{"in_flight", func(v *view) (conclusion, bool) {
	if v.copies != 1 || len(v.equal) == 0 || len(v.done) != 0 || v.leased {
		return conclusion{}, false
	}
	said := conclusion{to: v.toUnknown(), main: &v.equal[0]}
	said.reason = fmt.Sprintf("The %s was found %s as %s; it has begun and is not done.", v.what(), how(said.main.match), v.tell(v.equal))
	if f, late := v.lateFinding(); late && v.state().Open() {
		said.reason, said.findings = f.Reason, []recon.Finding{f}
	}
	return said, true
}}

// lateFinding tells of an effect that has been in flight for too long.
func (v *view) lateFinding() (recon.Finding, bool) {
	after := v.c.Policy.InFlightAfter.Std()
	age := v.now.Sub(v.equal[0].effect.CreatedAt)
	if after <= 0 || age < after {
		return recon.Finding{}, false
	}
	f := v.finding(recon.FindUnresolved, fmt.Sprintf("The %s has been pending at the provider for %s: %s.",
		v.subject(v.equal), recon.Duration(age).Text(), v.tell(v.equal)), v.equal)
	return ofGroup(f, v.equal), true
}
