package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// wait: nothing can be concluded. The operation stays as it is and is looked at again.
var wait = rule{"wait", func(v *view) (conclusion, bool) {
	said := conclusion{to: v.state()}
	switch {
	case v.leased:
		said.reason = fmt.Sprintf("The %s is being sent; its lease runs until %s.", v.what(), recon.TimeText(v.c.Operation.LeaseUntil, nil))
	case v.blind:
		said.reason = fmt.Sprintf("The source could not be asked about the %s; that says nothing about it.", v.what())
	case !v.state().Open():
		said.reason = fmt.Sprintf("Nothing seen says otherwise about the %s.", v.what())
	default:
		said.reason = fmt.Sprintf("Nothing is known yet of the %s%s.", v.what(), v.hint())
	}
	return said, true
}}
