package rules

import (
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// countingFor is how long a count of absence keeps an operation from being given up, from
// its first look: what is that old is looked at once a day, so as many days as looks are
// asked for, and one more than they are to be spread over.
func (v *view) countingFor() time.Duration {
	p := v.c.Policy.Absence
	return max(time.Duration(p.Looks)*day, p.Over.Std()+day)
}

// giveUp: the operation is unknown for so long that only a person can find out. It is
// still looked at every day, and proof still closes it.
//
// Nothing is given up while the source is silent: an outage of three days would turn
// every unknown into work for people, and none of them could be released any more. Nor
// while looks that count find nothing: after such an outage, or an import of what is old,
// the first of them would stop the others, which could say that it is absent.
var giveUp = rule{"give_up", func(v *view) (conclusion, bool) {
	after := v.c.Policy.GiveUpAfter.Std()
	counting := v.absence.Looks > 0 && v.now.Sub(v.absence.First) < v.countingFor()
	if v.state() != recon.Unknown || len(v.equal) > 0 || !v.heard || counting || after <= 0 || v.age() < after {
		return conclusion{}, false
	}
	f := v.unresolvedFinding()
	return conclusion{to: recon.ManualReview, reason: f.Reason, findings: []recon.Finding{f}}, true
}}
