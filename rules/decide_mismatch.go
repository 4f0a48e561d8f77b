package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// mismatch: there are live effects of the operation, and each differs from what was
// asked. Something happened; only a person can say whether it is good enough.
//
// None is told while the record names another effect that nobody has looked for: it may be
// there, and what is seen a second one, however it differs. Until then nobody may send again
// what was released for a repeat: something of it is there.
var mismatch = rule{"mismatch", func(v *view) (conclusion, bool) {
	if v.state() == recon.Pending && v.unsought() {
		return conclusion{to: recon.Unknown, reason: fmt.Sprintf("The %s was found %s as %s, and its record names %s, which is looked for first; until then it is not sent again.",
			v.what(), how(v.live[0].match), v.tell(v.live), v.c.Operation.EffectID)}, true
	}
	if len(v.live) == 0 || len(v.equal) > 0 || v.leased || v.unsought() {
		return conclusion{}, false
	}
	f := v.mismatchFinding()
	if !v.state().Open() && v.accepted(f) {
		return conclusion{}, false
	}
	return conclusion{to: v.toReview(), reason: f.Reason, findings: []recon.Finding{f}}, true
}}

func (v *view) mismatchFinding() recon.Finding {
	var texts []string
	var observed []recon.Difference
	for _, p := range v.live {
		for _, d := range p.match.Differences {
			if slices.Contains(observed, d) {
				continue // the sums of a group, which each of its effects tells
			}
			observed = append(observed, d)
			ours := d.Ours
			if ours == "" {
				ours = "nothing"
			}
			what := recon.Noun(d.Field)
			if d.Field == "group" {
				what = "the sum"
			}
			texts = append(texts, fmt.Sprintf("%s is %s in the record and %s at the provider", what, ours, d.Theirs))
		}
	}
	what, sumsDiffer := v.what(), slices.ContainsFunc(observed, func(d recon.Difference) bool { return d.Field == "group" })
	if sumsDiffer {
		what = v.subject(v.live)
	}
	reason := fmt.Sprintf("The %s was found %s as %s, and differs: %s.", what, how(v.live[0].match), v.tell(v.live), strings.Join(texts, "; "))
	f := v.finding(recon.FindMismatch, reason, v.live)
	f.Observed = observed
	if sumsDiffer {
		f = ofGroup(f, v.live)
	}
	return f
}
