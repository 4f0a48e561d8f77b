package daemon

import (
	"context"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
)

// inboxConns is how many connections the inbox has for itself: a long sweep must never
// keep a delivery waiting.
const inboxConns = 8

// openInbox gives deliveries a place to go, where any can come.
func (d *daemon) openInbox(ctx context.Context, life *lifecycle) error {
	if len(d.receivers) == 0 {
		return nil
	}
	l, err := d.openLedger(ctx, inboxConns)
	if err != nil {
		return err
	}
	life.started("inbox", func(context.Context) error { l.Close(); return nil })
	box := inbox.Open(l)
	d.inbox.Store(box)
	life.started("notifications", service(context.WithoutCancel(ctx), func(ctx context.Context) { d.bell.notify(ctx, box, d.Log) }))
	return nil
}
