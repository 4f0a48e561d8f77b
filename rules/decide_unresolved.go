package rules

import (
	"fmt"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// unresolved: the operation is unknown for longer than people should be left in the
// dark. It stays, and is asked for again; the escalation ladder runs on the finding.
var unresolved = rule{"unresolved", func(v *view) (conclusion, bool) {
	if v.state() != recon.Unknown || v.age() < v.c.Policy.UnresolvedAfter.Std() {
		return conclusion{}, false
	}
	f := v.unresolvedFinding()
	if v.blind {
		f.Reason = fmt.Sprintf("%s; %s could not be asked%s.", strings.TrimSuffix(f.Reason, "."), v.c.Operation.Source, v.whyBlind())
	}
	return conclusion{to: recon.Unknown, reason: f.Reason, findings: []recon.Finding{f}}, true
}}

// whyBlind says why the looks of this pass told nothing, for the end of a clause.
func (v *view) whyBlind() string {
	for _, l := range v.c.Looks {
		if l.Outcome == recon.Blind {
			return ": " + recon.FaultText(l.Fault)
		}
	}
	return ""
}

func (v *view) unresolvedFinding() recon.Finding {
	reason := fmt.Sprintf("Nobody knows for %s what came of the %s", recon.Duration(v.age()).Text(), v.what())
	switch {
	case len(v.linked) > 0:
		reason += fmt.Sprintf("; seen so far: %s", v.tell(v.linked))
	case v.c.Operation.Account == "":
		reason += "; its account is not known, so nothing can be shown to be absent"
	}
	return v.finding(recon.FindUnresolved, reason+v.hint()+".", nil)
}
