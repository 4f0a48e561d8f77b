package rules

import (
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// staleRelease: an operation that was sent before is pending, because it was released
// for a repeat, and nobody repeats it. It is unknown again, so that it is asked for.
var staleRelease = rule{"stale_release", func(v *view) (conclusion, bool) {
	op := &v.c.Operation
	age := v.now.Sub(v.releasedAt())
	if op.State != recon.Pending || op.SentAt.IsZero() || age < v.c.Policy.StalePending.Std() {
		return conclusion{}, false
	}
	return conclusion{to: recon.Unknown, reason: fmt.Sprintf("The %s may be sent again for %s now, and nobody did; it is asked for again.",
		v.what(), recon.Duration(age).Text())}, true
}}

// releasedAt is when the operation became pending again, as well as the case tells: a
// release by a rule follows at once on its last look, any other one on the moment at
// which it had become unknown.
func (v *view) releasedAt() time.Time {
	at := v.since()
	if last := v.c.Check.Absence.Last; last.After(at) {
		at = last
	}
	return at
}
