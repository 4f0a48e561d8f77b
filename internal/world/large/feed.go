package large

import (
	"context"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

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
	if err != nil {
		return err
	}
	w.rereading.after(w, !brokeOff(read), func() error { return w.recoverTold(ctx) })
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
