package daemon

import (
	"context"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

const (
	runHousekeeping = "housekeeping"
	// maxCatchUp bounds the first fold, which counts all that happened while no process ran.
	maxCatchUp = time.Hour
	// tellAfter is when it is told what the start waits for.
	tellAfter = 5 * time.Second
)

// catchUp folds what happened while no process ran, before a snapshot would count it.
func (d *daemon) catchUp(ctx context.Context, l *ledger.Ledger) error {
	ctx, cancel := context.WithTimeout(ctx, maxCatchUp)
	defer cancel()
	slow := time.AfterFunc(tellAfter, func() { d.Log.Info("counting what happened while no process ran; ready after that") })
	defer slow.Stop()
	return l.FoldTallies(ctx)
}

// keepsHouse gives the housekeeping as a run of the schedule, once an hour however many
// replicas there are.
func (d *daemon) keepsHouse(l *ledger.Ledger) func(context.Context, sweep.Options) (told, error) {
	h := &sweep.Housekeeping{Ledger: l, Inbox: inbox.Open(l)}
	return func(ctx context.Context, o sweep.Options) (told, error) {
		var t sweep.Tidied
		start := ledger.RunStart{Name: runHousekeeping, Tick: o.Tick, Holder: d.Holder}
		err := inPlace(ctx, l, start, func(ctx context.Context) (counts any, err error) {
			t, err = h.Run(ctx, o.Now())
			return t, err
		})
		return told{changed: t.Any(), attrs: []any{"requests", t.Requests, "replies", t.Replies, "events", t.Events, "runs", t.Runs, "old_runs", t.OldRuns}}, err
	}
}
