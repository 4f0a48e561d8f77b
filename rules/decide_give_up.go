package rules

import "github.com/seed-1c4f4dc2/reconciler/recon"

// counting reports whether a count of absence goes on: this pass brought a look that counts
// anew, or the last one is not a day old yet, and what is that old is looked at once a day.
// Each look that counts brings the end of the count nearer, so it keeps no operation from
// being given up for ever; standing coverage that counted before counts no more.
func (v *view) counting() bool {
	a := v.absence
	return a.Looks > 0 && (a.Last.After(v.c.Check.Absence.Last) || v.now.Sub(a.Last) < day)
}

// giveUp: the operation is unknown for so long that only a person can find out. It is
// still looked at every day, and proof still closes it.
//
// Nothing is given up while the source is silent: an outage of three days would turn
// every unknown into work for people, and none of them could be released any more. Nor
// while looks that count find nothing: after such an outage, or an import of what is old,
// the first of them would stop the others, which could say that it is absent. Nor before the
// effect that it knows was asked for, where another one was seen: that says more, and soon.
var giveUp = rule{"give_up", func(v *view) (conclusion, bool) {
	after := v.c.Policy.GiveUpAfter.Std()
	if v.state() != recon.Unknown || len(v.equal) > 0 || !v.heard || v.counting() || v.unsought() || after <= 0 || v.age() < after {
		return conclusion{}, false
	}
	f := v.unresolvedFinding()
	return conclusion{to: recon.ManualReview, reason: f.Reason, findings: []recon.Finding{f}}, true
}}
