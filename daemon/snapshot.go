package daemon

import (
	"context"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

// snapshotEvery is how often the ledger is read for the gauges.
const snapshotEvery = 15 * time.Second

// foldAt is how much a snapshot may count that is not in the tallies. More is folded at
// once, so that snapshots stay short also in a busy hour.
const foldAt = 2000

// snapshots keeps the gauges up to date. While the database is away they keep their
// last values, and ledger_snapshot_timestamp_seconds tells how old those are.
func (d *daemon) snapshots(ctx context.Context, l *ledger.Ledger) {
	tick := time.NewTicker(snapshotEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := d.snapshot(ctx, l); err != nil && ctx.Err() == nil {
			d.Log.Error("the gauges could not be read", "error", err.Error())
		}
	}
}

func (d *daemon) snapshot(ctx context.Context, l *ledger.Ledger) error {
	now, err := l.Now(ctx)
	if err != nil {
		return err
	}
	s, err := l.Snapshot(ctx, now)
	if err != nil {
		return err
	}
	d.metrics.gauges.set(s)
	if s.NotFolded <= foldAt {
		return nil
	}
	// A fold may wait for somebody's lock, and the next snapshot must not.
	ctx, cancel := context.WithTimeout(ctx, snapshotEvery)
	defer cancel()
	return l.FoldTallies(ctx)
}
