package large

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// sleeper is the ledger as one process sees it: what that process could not write before it
// stopped it writes when it wakes, under the hold that it had.
type sleeper struct {
	*ledger.Ledger
	left map[recon.SourceName]ledger.Batch
}

var _ sweep.Ledger = &sleeper{}

// Record implements [sweep.Ledger].
func (s *sleeper) Record(ctx context.Context, b ledger.Batch) (ledger.Recorded, error) {
	done, err := s.Ledger.Record(ctx, b)
	if err != nil && b.Hold.Source != "" {
		s.left[b.Hold.Source] = b
	}
	return done, err
}

// wakes lets a process that was taken for dead write what it had in hand, when another one has
// swept the source since. Nothing of that may be written.
func (w *World) wakes(ctx context.Context, name recon.SourceName) error {
	b, slept := w.sleeper.left[name]
	if !slept {
		return nil
	}
	delete(w.sleeper.left, name)
	w.tally.fault("sweep woke with an old hold")
	before, err := w.ledger.Verify(ctx)
	if err != nil {
		return err
	}
	_, err = w.ledger.Record(ctx, b)
	var stale *ledger.StaleHoldError
	if !errors.As(err, &stale) {
		w.fault(staleToken, "%s: a sweep that had lost its hold (%d decisions) was answered: %v", name, len(b.Decisions), err)
	}
	after, err := w.ledger.Verify(ctx)
	if err == nil && fmt.Sprint(after) != fmt.Sprint(before) {
		w.fault(staleToken, "%s: a sweep that had lost its hold changed %+v to %+v", name, before, after)
	}
	return err
}
