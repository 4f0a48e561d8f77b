package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// found: one completed effect, and everything that both sides show agrees. The parts of
// a group are one effect when all of them are completed.
var found = rule{"found", func(v *view) (conclusion, bool) {
	done := v.closable(v.done)
	if v.copies != 1 || len(done) == 0 {
		return conclusion{}, false
	}
	agrees := "everything that both sides show agrees"
	if g := done[0].match.Group; g != nil {
		agrees = fmt.Sprintf("the sums of group %s agree", g.Name)
	}
	reason := fmt.Sprintf("The %s was found %s as %s, and %s.", v.what(), how(done[0].match), v.tell(done), agrees)
	return conclusion{to: recon.Succeeded, main: &done[0], reason: reason}, true
}}
