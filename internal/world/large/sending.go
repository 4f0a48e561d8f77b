package large

import (
	"context"
	"errors"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// maySend holds what the ledger shows to others at the moment of a request: the operation's
// row with its key, and a lease that lives. Who goes by a clock that is behind breaks that by
// itself.
func (w *World) maySend(ctx context.Context, i intent, key string) {
	o, err := w.ledger.Operation(ctx, i.id)
	var missing *ledger.NotFoundError
	switch {
	case errors.As(err, &missing):
		w.fault(rowFirst, "%s (%s) is sent, and has no row", i.id, i.fate.name)
	case err != nil:
		w.fault(liveLease, "%s (%s) is sent, and nobody can see its lease: %v", i.id, i.fate.name, err)
	case key != o.Key:
		w.fault(oneKey, "%s (%s) is sent under the key %q, and has %q", i.id, i.fate.name, key, o.Key)
	case i.fate.skew < 0:
	case o.State != recon.InProgress || !w.clock.Now().Before(o.LeaseUntil):
		w.fault(liveLease, "%s (%s) is sent at %s while it is %s, under a lease until %s", i.id, i.fate.name, w.clock.Now(), o.State, o.LeaseUntil)
	}
}
