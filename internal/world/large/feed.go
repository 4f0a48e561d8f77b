package large

import (
	"context"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// rereading is when a reading of events that broke off goes on.
type rereading struct {
	again time.Time     // what is on the agenda, or was last
	pause time.Duration // before it; 0: the last reading came to its end
}

// recovery reads what a source lists of its events, and takes it in.
func (w *World) recovery(of *stripe.Source) func(context.Context, func() time.Time) (sweep.Recovered, error) {
	return func(ctx context.Context, now func() time.Time) (sweep.Recovered, error) {
		r := sweep.Recovery{Inbox: w.inbox, Source: of, Oldest: w.ledger.FirstOpened}
		read, err := r.Run(ctx, now)
		if err == nil {
			_, err = w.newIntake().Run(ctx, now)
		}
		return read, err
	}
}

// recoverTold reads the events of the source that is told, as the daemon does beside its audits:
// an audit asks nothing of a source at which every look is blind. The daemon reads them every
// hour. Here the hours are passed over unless a reading did not come to its end, since the next
// night may be past what the provider lists; and the longer it breaks off the more of them are.
func (w *World) recoverTold(ctx context.Context) error {
	read, err := w.recovery(w.told)(ctx, w.clock.Now)
	now := w.clock.Now()
	switch {
	case err != nil || !brokeOff(read):
		w.pause = 0
		return err
	case w.again.After(now):
		return nil
	}
	w.pause = min(max(time.Hour, 2*w.pause), day)
	if w.again = now.Add(w.pause); !w.again.After(w.over()) {
		w.agenda.Plan(w.again, func() error { return w.recoverTold(ctx) })
	}
	return nil
}

// brokeOff reports whether a window was not read to its end. What lies before the provider's
// list is unseen too, and is no window.
func brokeOff(read sweep.Recovered) bool {
	return slices.ContainsFunc(read.Unseen, func(u sweep.CompareUnseen) bool {
		return slices.ContainsFunc(read.Windows, func(of sweep.FeedWindow) bool {
			return of.Window == recon.Window{From: u.From, To: u.To}
		})
	})
}
