package rules

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// refused: this call moved nothing, and an effect that nobody owns did. "Already
// refunded" is the usual case: somebody refunded by hand, and our call was refused.
// The operation stays failed; the effect is an orphan that a person may adopt.
var refused = rule{"refused", func(v *view) (conclusion, bool) {
	if v.state() != recon.Failed || len(v.hints) == 0 || len(v.linked) > 0 {
		return conclusion{}, false
	}
	return conclusion{to: recon.Failed, reason: fmt.Sprintf("This call did nothing, and the %s seems to have been done otherwise%s. It can be adopted.", v.what(), v.hint())}, true
}}
