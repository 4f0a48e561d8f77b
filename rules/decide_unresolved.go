package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// unresolved: the operation is unknown for longer than people should be left in the
// dark. It stays, and is asked for again; the escalation ladder runs on the finding.
var unresolved = rule{"unresolved", func(v *view) (conclusion, bool) {
	if v.state() != recon.Unknown || v.age() < v.c.Policy.UnresolvedAfter.Std() {
		return conclusion{}, false
	}
	f := v.unresolvedFinding()
	return conclusion{to: recon.Unknown, reason: f.Reason, findings: []recon.Finding{f}}, true
}}

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
