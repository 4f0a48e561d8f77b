package daemon

import (
	"context"
	"errors"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

const (
	runHousekeeping   = "housekeeping"
	housekeepingEvery = time.Hour
	housekeepingTTL   = 5 * time.Minute
	// tickEvery is how often it is looked whether an hour has begun. The tick is a row, so
	// that looking often costs nothing but the look.
	tickEvery = time.Minute
	// maxCatchUp bounds the first fold, which counts all that happened while no process ran.
	maxCatchUp = time.Hour
)

// catchUp folds what happened while no process ran, before a snapshot would count it.
func catchUp(ctx context.Context, l *ledger.Ledger) error {
	ctx, cancel := context.WithTimeout(ctx, maxCatchUp)
	defer cancel()
	return l.FoldTallies(ctx)
}

// housekeeping folds the tallies, once an hour however many replicas there are.
func (d *daemon) housekeeping(ctx context.Context, l *ledger.Ledger) {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		began := time.Now()
		switch ran, err := d.keepHouse(ctx, l); {
		case err != nil && ctx.Err() == nil:
			d.Log.Error("run failed", "run", runHousekeeping, "error", err.Error())
		case ran:
			d.metrics.ran(runHousekeeping, time.Since(began))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// keepHouse does what is due of this hour, and reports whether this process did it.
func (d *daemon) keepHouse(ctx context.Context, l *ledger.Ledger) (bool, error) {
	now, err := l.Now(ctx)
	if err != nil {
		return false, err
	}
	run, err := l.BeginRun(ctx, ledger.RunStart{
		Name: runHousekeeping, Tick: now.Truncate(housekeepingEvery).Format("2006-01-02T15:04 UTC"), Holder: d.Holder, TTL: housekeepingTTL,
	})
	var running *ledger.RunningError
	var tick *ledger.TickError
	if errors.As(err, &running) || errors.As(err, &tick) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	end := ledger.RunEnd{Outcome: ledger.RunDone}
	err = l.FoldTallies(ctx)
	if err != nil {
		end.Outcome, end.Error = ledger.RunFailed, err.Error()
	}
	return true, errors.Join(err, l.FinishRun(context.WithoutCancel(ctx), run, end))
}
