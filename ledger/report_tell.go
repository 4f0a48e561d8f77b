package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// toldReport is before the day in the name under which is kept what was told of its report.
const toldReport = "told/"

// TellReport keeps what is told of the report of a day and plans that it is told, once for
// each destination: of two that tell the same day, the first stands. A process that ends in
// between loses nothing, since whoever does it again goes on.
func (l *Ledger) TellReport(ctx context.Context, r recon.DayReport, holder string, destinations []string, now time.Time) error {
	if len(destinations) == 0 {
		return nil
	}
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write what is told of the report of %s: %w", r.Day, err)
	}
	if _, err := l.KeepReport(ctx, toldReport+r.Day, holder, body); err != nil {
		return err
	}
	return l.fault("plan who is told of the report", l.planSubject(ctx, reportSubject+r.Day, destinations, "report", now))
}

// DayReport gives what is told of the report of a day (*NotFoundError).
func (l *Ledger) DayReport(ctx context.Context, day string) (recon.DayReport, error) {
	var r recon.DayReport
	kept, err := l.KeptReport(ctx, toldReport+day)
	switch {
	case err != nil:
		return r, err
	case kept == nil:
		return r, &NotFoundError{What: "report of", ID: day}
	}
	if err := json.Unmarshal(kept, &r); err != nil {
		return r, fmt.Errorf("what is told of the report of %s cannot be read: %w", day, err)
	}
	return r, nil
}
