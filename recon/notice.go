package recon

import "time"

// Act is what a notice does in its destination.
type Act string

const (
	// ActTell calls people: it posts the message of its subject, or, where that stands
	// already, answers in its thread for everybody to see.
	ActTell Act = "tell"
	// ActEdit shows in the message of its subject what is so now, and calls nobody.
	ActEdit Act = "edit"
)

// Notice is one message, or one change of a message, that somebody must get. It is
// kept in the outbox until its destination has it. It is unique per (subject, opening,
// step, destination): a finding that opens again is told anew, because an edit of the
// old message would call nobody.
type Notice struct {
	ID string // given by the ledger; it marks the message, so that a lost answer can be looked up
	// What it is about: a finding, an incident, a digest or a report.
	Finding  string // the finding's id
	Incident string // the incident's id
	Digest   string // the digest's day, as DateOnly
	Report   string // the report's day, as DateOnly
	Opening  int    // which opening of the finding
	Act      Act
	Step     string // "after 15 min", "edit"…
	// Destination is where it goes. Refused names another one that would not take it, when
	// this notice stands in for that one's.
	Destination string
	Refused     string
	Mention     []string // whom it calls by name
	Reason      string   // why it is told now
	DueAt       time.Time

	// What follows is kept by the ledger and is zero when a notice is planned.

	// Edition counts how often it was asked for: of several changes of one message only
	// the newest is made.
	Edition int
	Tries   int // how often it was claimed before
	// Doubt says that an earlier try may have reached the destination: its answer was
	// lost, or it was claimed and nobody recorded how it went.
	Doubt    bool
	FirstTry time.Time // when it was first claimed; a look-back begins here
	// Root is where the message of its subject stands in this destination; zero while
	// there is none.
	Root Receipt
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
	Receipt Receipt // set: it is delivered
	// Root says that the receipt is that of a message of its own, which later notices of
	// the same subject edit and answer.
	Root bool
	// Done says that nothing had to be sent: the message that it would change is gone.
	Done bool
	// Next is when to try again; zero: never, and the notice stays undelivered.
	Next time.Time
	// Doubt says that the message may have been posted although no answer came.
	Doubt bool
	// Undelivered counts the notice as undelivered: the destination refuses it for good
	// until somebody mends it (channel archived, token revoked). It may still have a Next.
	Undelivered bool
	// Instead names the destination that gets it meanwhile; empty: none.
	Instead string
	Reason  string // why it was not delivered: a word of the destination, no secret
}
