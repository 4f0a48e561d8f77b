package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

// placeTTL is how long a run that shows no sign of life keeps its place. One is shown
// every third of it.
const placeTTL = time.Minute

// inPlace does f under the place of a run, and keeps what f counted in the run's row. f is
// told to stop when the place is lost.
func inPlace(ctx context.Context, l *ledger.Ledger, s ledger.RunStart, f func(context.Context) (counts any, err error)) error {
	s.TTL = placeTTL
	run, err := l.BeginRun(ctx, s)
	if err != nil {
		return err
	}
	alive, stop := context.WithCancelCause(ctx)
	var beats sync.WaitGroup
	beats.Go(func() { beat(alive, l, run, stop) })
	counts, err := f(alive)
	if lost := context.Cause(alive); err != nil && ctx.Err() == nil && lost != nil {
		err = lost
	}
	stop(nil)
	beats.Wait()
	end := ledger.RunEnd{Outcome: ledger.RunDone}
	if err != nil {
		end.Outcome, end.Error = ledger.RunFailed, err.Error()
		if errors.Is(ctx.Err(), context.Canceled) { // told to stop: whoever comes next does its tick
			end.Outcome = ledger.RunAbandoned
		}
	}
	if counts != nil {
		body, encoding := json.Marshal(counts)
		end.Counts, err = body, errors.Join(err, encoding)
	}
	return errors.Join(err, l.FinishRun(context.WithoutCancel(ctx), run, end))
}

// beat shows signs of life until alive ends. A beat that fails otherwise is followed by
// the next one; that the place is lost ends the run.
func beat(alive context.Context, l *ledger.Ledger, run ledger.Run, stop context.CancelCauseFunc) {
	tick := time.NewTicker(placeTTL / 3)
	defer tick.Stop()
	for {
		select {
		case <-alive.Done():
			return
		case <-tick.C:
		}
		var abandoned *ledger.AbandonedError
		if _, err := l.HeartbeatRun(alive, run, placeTTL); errors.As(err, &abandoned) {
			stop(err)
			return
		}
	}
}
