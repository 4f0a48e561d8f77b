package escalation

import (
	"context"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Message is what a destination is asked to show. Its text is made by the
// destination, which knows its own limits and its own escaping.
type Message struct {
	Notice string // id of the notice that posts it; the mark by which Find knows it
	Step   string
	// About is the finding that the message was first posted for. It may have ended.
	About  recon.Finding
	Story  recon.Story
	Now    time.Time
	Repeat bool // an earlier try may already stand in the channel
}

// Notifier delivers to one destination. It never retries by itself: the error says
// what went wrong and whether to try again ([Error]).
type Notifier interface {
	// Send posts a new message.
	Send(ctx context.Context, m Message) (recon.Receipt, error)
	// Edit replaces the message at r. An edit notifies nobody.
	Edit(ctx context.Context, r recon.Receipt, m Message) error
	// Find looks for the message of a notice posted at or after a time; false when a
	// complete look did not find it. An error means that it could not look.
	Find(ctx context.Context, notice string, since time.Time) (recon.Receipt, bool, error)
}
