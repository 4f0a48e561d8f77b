package escalation

import (
	"context"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Message is what a destination is asked to show. Its text is made by the
// destination, which knows its own limits and its own escaping. It is about a finding,
// or an incident, or the digest or the report of a day.
type Message struct {
	Notice  string // id of the notice that posts it; the mark by which Find knows it
	Edition int    // which of the notice's changes it is
	Act     recon.Act
	Step    string
	Reason  Reason
	Mention []string // whom it calls by name
	// Refused names the destination that would not take it, for which this one stands in.
	Refused string
	Now     time.Time
	Repeat  bool // an earlier try may already stand in the channel

	// About is the finding. It may have ended.
	About recon.Finding
	// Story is that of its first operation. A finding without one has only the effects
	// that it names.
	Story       recon.Story
	Assignee    string
	PausedUntil time.Time // the end of an acknowledgement or a snooze; zero: none
	Proposal    *recon.Proposal
	// Next is who is told next if nobody acts; nil: nobody is, or not before it changes.
	Next *Upcoming

	Incident *recon.Incident
	Digest   *recon.Digest
	Report   *recon.DayReport
}

// Upcoming is a step of a ladder that has not come due.
type Upcoming struct {
	At      time.Time
	To      string // the destination
	Mention string // whom it calls by name; empty: nobody
}

// Notifier delivers to one destination. It never retries by itself: the error says
// what went wrong and whether to try again ([Error]).
type Notifier interface {
	// Send posts a new message.
	Send(ctx context.Context, m Message) (recon.Receipt, error)
	// Reply answers in the thread of the message at root, for the whole channel to see.
	Reply(ctx context.Context, root recon.Receipt, m Message) (recon.Receipt, error)
	// Edit replaces the message at r. An edit notifies nobody.
	Edit(ctx context.Context, r recon.Receipt, m Message) error
	// Find looks for the message of a notice posted at or after a time, in the thread of
	// root where there is one; false when a complete look did not find it. An error means
	// that it could not look.
	Find(ctx context.Context, m Message, root recon.Receipt, since time.Time) (recon.Receipt, bool, error)
}

// Placed is a notifier that tells where it posts. Destinations of one place share one pace.
type Placed interface {
	Place() string
}
