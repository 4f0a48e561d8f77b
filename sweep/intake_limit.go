package sweep

import (
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// intakeSpan is how long the intake counts as one run: its passes follow each other without
// end, and the sweeps that are limited alike come every minute.
const intakeSpan = time.Minute

// HeldBackError says that what events tell was not concluded from, since that would change
// more operations than one run may.
type HeldBackError struct {
	Source  recon.SourceName
	Limit   int
	Changed int // since the minute began
}

func (e *HeldBackError) Error() string {
	return fmt.Sprintf("%s: events of the last minute set %d operations to failed, pending or manual_review, and more would pass the limit of %d a run: "+
		"they are tried again; look at them with reconciler inbox list, and if they are right, raise limits.changes_per_run", e.Source, e.Changed, e.Limit)
}

// renew begins to count anew when the run's time is over, by the clock of the passes.
func (i *Intake) renew(now time.Time) {
	if since := now.Sub(i.counted); since >= intakeSpan || since < 0 {
		i.changed, i.counted = 0, now
	}
}

// limit refuses what would pass what one run may change.
func (i *Intake) limit(v verdicts) error {
	next, limit := v.capped(), changesOf(i.Changes)
	if next == 0 || i.changed+next <= limit {
		return nil
	}
	i.held = &HeldBackError{Source: v.judged[0].Case.Operation.Source, Limit: limit, Changed: i.changed}
	return i.held
}

// told counts what was concluded.
func (i *Intake) told(c recon.Case, d recon.Decision) {
	if capped(d) {
		i.changed++
	}
	if i.Watch.Judged != nil {
		i.Watch.Judged(c, d)
	}
}
