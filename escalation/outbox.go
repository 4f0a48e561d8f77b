package escalation

import (
	"context"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Outbox keeps the notices. The ledger implements it.
//
// A notice that is claimed and never settled, because the process ended in between,
// is due again at until, and then has Doubt.
type Outbox interface {
	// DueNotices gives notices whose time has come, that are not delivered and that
	// nobody holds: steps "first" before all others, then by due time. A notice of
	// another step is due only once the first one that it edits (recon.Notice.Root) is
	// delivered, so that an edit never runs ahead of its message.
	DueNotices(ctx context.Context, now time.Time, limit int) ([]recon.Notice, error)
	// ClaimNotice takes the right to send one notice until a time, by one atomic change
	// committed before the request is made; false when another has it or it is done.
	ClaimNotice(ctx context.Context, id string, now, until time.Time) (bool, error)
	// SettleNotice records how the try went and gives the claim back.
	SettleNotice(ctx context.Context, id string, d recon.Delivery, now time.Time) error
}

// Stories reads what a message shows, at the time when it is sent. The ledger
// implements it, for reports as well.
type Stories interface {
	Story(ctx context.Context, id recon.OperationID) (recon.Story, error)
}
