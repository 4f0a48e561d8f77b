package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// leaseOver: the time to send is over and nobody reported. The ledger sees to it
// before a sweep; this is for what was imported or judged without it.
var leaseOver = rule{"lease_over", func(v *view) (conclusion, bool) {
	if !v.over {
		return conclusion{}, false
	}
	return conclusion{to: recon.Unknown, reason: fmt.Sprintf("The time to send the %s is over and nobody reported what came of it.", v.what())}, true
}}
