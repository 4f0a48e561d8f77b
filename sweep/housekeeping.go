package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

const (
	// keepRequests is how long the request of a closed operation is kept.
	keepRequests = 7 * 24 * time.Hour
	// keepBytes is how long what providers sent is kept as it came.
	keepBytes = 30 * 24 * time.Hour
	// keepRuns is how long it is kept what each run did, but for audits and reports.
	keepRuns = 30 * 24 * time.Hour
	// tidyBatch bounds one transaction of the housekeeping.
	tidyBatch = 1000
)

// Housekeeping drops what is kept for a time only. Hashes, journal and looks stay for ever.
type Housekeeping struct {
	Ledger *ledger.Ledger
	Inbox  *inbox.Store
}

// Tidied is what a housekeeping did.
type Tidied struct {
	Requests int `json:"requests"` // erased from closed operations
	Replies  int `json:"replies"`  // bytes of effects that were dropped
	Events   int `json:"events"`   // bytes of events that were dropped
	Runs     int `json:"runs"`     // of dead processes, closed
	OldRuns  int `json:"old_runs"` // rows that were dropped
}

// Any reports whether anything was done.
func (t Tidied) Any() bool { return t != Tidied{} }

// Run does all that is due, in transactions of a bounded size. A part that fails keeps no
// other from its work; what it left is done by the next run. now is judged once.
func (h *Housekeeping) Run(ctx context.Context, now time.Time) (Tidied, error) {
	var t Tidied
	// While a repeat may still be answered by a key, nothing is dropped that could tell what
	// was sent.
	keys, err := h.Ledger.LongestKey(ctx)
	if err != nil {
		return t, err
	}
	before := func(keep time.Duration) time.Time { return now.Add(-max(keep, keys)) }
	parts := []struct {
		what string
		to   *int
		do   func() (int, error)
	}{
		{"requests", &t.Requests, func() (int, error) {
			return all(ctx, func() (int, error) { return h.Ledger.ForgetRequests(ctx, before(keepRequests), tidyBatch) })
		}},
		{"replies", &t.Replies, func() (int, error) {
			return all(ctx, func() (int, error) { return h.Ledger.DropReplies(ctx, before(keepBytes), now, tidyBatch) })
		}},
		{"bytes of events", &t.Events, func() (int, error) { return h.Inbox.DropBytes(ctx, before(keepBytes), now) }},
		{"dead runs", &t.Runs, func() (int, error) { return h.Ledger.CloseDeadRuns(ctx) }},
		{"tallies", new(int), func() (int, error) { return 0, h.Ledger.FoldTallies(ctx) }},
		{"old runs", &t.OldRuns, func() (int, error) { // after they were counted
			return all(ctx, func() (int, error) { return h.Ledger.DropRuns(ctx, now.Add(-keepRuns), tidyBatch) })
		}},
	}
	var failed error
	for _, p := range parts {
		n, err := p.do()
		*p.to = n
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("tidy the %s: %w", p.what, err))
		}
	}
	return t, failed
}

// all goes on batch by batch until one is not full.
func all(ctx context.Context, batch func() (int, error)) (int, error) {
	total := 0
	for {
		n, err := batch()
		total += n
		if err != nil || n < tidyBatch {
			return total, err
		}
		if ctx.Err() != nil {
			return total, ctx.Err()
		}
	}
}
