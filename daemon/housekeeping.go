package daemon

import (
	"context"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

const (
	runHousekeeping = "housekeeping"
	// maxCatchUp bounds the first fold, which counts all that happened while no process ran.
	maxCatchUp = time.Hour
)

// catchUp folds what happened while no process ran, before a snapshot would count it.
func catchUp(ctx context.Context, l *ledger.Ledger) error {
	ctx, cancel := context.WithTimeout(ctx, maxCatchUp)
	defer cancel()
	return l.FoldTallies(ctx)
}

// keepsHouse gives the housekeeping as a run of the schedule, once an hour however many
// replicas there are.
func (d *daemon) keepsHouse(l *ledger.Ledger) func(context.Context, sweep.Options) (told, error) {
	return func(ctx context.Context, o sweep.Options) (told, error) {
		start := ledger.RunStart{Name: runHousekeeping, Tick: o.Tick, Holder: d.Holder}
		return told{}, inPlace(ctx, l, start, func(ctx context.Context) (any, error) { return nil, l.FoldTallies(ctx) })
	}
}
