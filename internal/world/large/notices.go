package large

import (
	"context"
	"sync"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// outbox is the ledger's, which notes down how the last try of each notice went that was
// recorded.
type outbox struct {
	*ledger.Ledger
	mu   sync.Mutex // destinations are told side by side
	last map[string]recon.Delivery
}

// SettleNotice implements [escalation.Outbox].
func (o *outbox) SettleNotice(ctx context.Context, id string, edition int, d recon.Delivery, now time.Time) error {
	err := o.Ledger.SettleNotice(ctx, id, edition, d, now)
	if err == nil {
		o.mu.Lock()
		o.last[id] = d
		o.mu.Unlock()
	}
	return err
}
