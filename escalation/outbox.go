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
	// nobody holds: those that call people before all others, then by due time. One that
	// changes a message is due only once that message (recon.Notice.Root) is delivered,
	// and one subject's steps come in their order.
	DueNotices(ctx context.Context, now time.Time, limit int) ([]recon.Notice, error)
	// ClaimNotice takes the right to send one notice until a time, by one atomic change
	// committed before the request is made; false when another has it or it is done, or
	// when its finding is no longer at the version that was read.
	ClaimNotice(ctx context.Context, id string, version int64, now, until time.Time) (bool, error)
	// SettleNotice records how the try of an edition went and gives the claim back. A
	// newer edition that was asked for meanwhile stays due.
	SettleNotice(ctx context.Context, id string, edition int, d recon.Delivery, now time.Time) error
}

// Stories reads what messages show, after it was read that they are due, so that no
// edition is delivered with less than it was asked for. The ledger implements it.
type Stories interface {
	// Told gives what is to be told of those of the findings that are there.
	Told(ctx context.Context, findings []string) (map[string]recon.Told, error)
	Incident(ctx context.Context, id string, now time.Time) (recon.Incident, error)
	Digest(ctx context.Context, from, now time.Time) (recon.Digest, error)
	DayReport(ctx context.Context, day string) (recon.DayReport, error)
}
