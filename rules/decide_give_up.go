package rules

import "github.com/seed-1c4f4dc2/reconciler/recon"

// giveUp: the operation is unknown for so long that only a person can find out. It is
// still looked at every day, and proof still closes it.
//
// Nothing is given up while the source is silent: an outage of three days would turn
// every unknown into work for people, and none of them could be released any more.
var giveUp = rule{"give_up", func(v *view) (conclusion, bool) {
	after := v.c.Policy.GiveUpAfter.Std()
	if v.state() != recon.Unknown || len(v.equal) > 0 || !v.heard || after <= 0 || v.age() < after {
		return conclusion{}, false
	}
	f := v.unresolvedFinding()
	return conclusion{to: recon.ManualReview, reason: f.Reason, findings: []recon.Finding{f}}, true
}}
