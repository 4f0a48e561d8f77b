package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// found: one completed effect, and everything that both sides show agrees.
var found = rule{"found", func(v *view) (conclusion, bool) {
	done := v.closable(v.done)
	if len(v.live) != 1 || len(done) != 1 {
		return conclusion{}, false
	}
	reason := fmt.Sprintf("The %s was found %s as %s, and everything that both sides show agrees.",
		v.what(), how(done[0].match), v.tell(done))
	return conclusion{to: recon.Succeeded, main: &done[0], reason: reason}, true
}}
