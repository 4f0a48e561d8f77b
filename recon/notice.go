package recon

import "time"

// Notice is one message, or one change of a message, that somebody must get. It is
// planned together with the finding, stored in the same transaction, and delivered
// later from the outbox. It is unique per (finding, step, destination) while the
// finding is open: when a finding re-opens in place, its notices are planned anew,
// because an edit of the old message would call nobody.
type Notice struct {
	ID          string // given by the ledger; it marks the message, so that a lost answer can be looked up
	Finding     string // fingerprint
	Operation   OperationID
	Step        string // "first", "ended"…
	Destination string
	Reason      string // why it is told now
	DueAt       time.Time

	// What follows is kept by the ledger and is zero when a notice is planned.

	Tries int // how often it was claimed before
	// Doubt says that an earlier try may have reached the destination: its answer was
	// lost, or it was claimed and nobody recorded how it went.
	Doubt    bool
	FirstTry time.Time // when it was first claimed; a look-back begins here
	// Message is the fingerprint of the finding whose first notice posted the message
	// that this notice edits, and Root where that message stands. For the notice of a
	// finding that was never told by itself (a graver one of the same pass named it),
	// that is the newest first notice on the same operation to the same destination.
	// Both are empty for a first notice and while the message is not delivered.
	Message string
	Root    Receipt
}

// Receipt is where a delivered message stands.
type Receipt struct {
	Channel string // the channel's id as the destination names it
	TS      string // the message's id in the channel
}

// IsZero reports whether there is no message.
func (r Receipt) IsZero() bool { return r == Receipt{} }

// Delivery is how one try of a notice went.
type Delivery struct {
	Receipt Receipt // set: it is delivered, and all else is empty
	// Next is when to try again; zero: never, and the notice stays undelivered.
	Next time.Time
	// Doubt says that the message may have been posted although no answer came.
	Doubt bool
	// Undelivered counts the notice as undelivered: the destination refuses it for good
	// until somebody mends it (channel archived, token revoked). It may still have a Next.
	Undelivered bool
	Reason      string // why it was not delivered: a word of the destination, no secret
}
