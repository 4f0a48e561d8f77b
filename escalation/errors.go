package escalation

import (
	"fmt"
	"time"
)

// Kind says why a destination did not take a message, and with that whether to try
// again. A Kind is itself an error, so that errors.Is(err, escalation.Refused) reads
// as it should.
type Kind string

const (
	// RateLimited: certainly not taken; try again after RetryAfter.
	RateLimited Kind = "rate_limited"
	// Unavailable: certainly not taken, and the fault is not ours: try again.
	Unavailable Kind = "unavailable"
	// Lost: it may have been taken; look before sending again.
	Lost Kind = "lost_answer"
	// Refused: the destination refuses until somebody mends it: archived, unknown
	// channel, revoked token.
	Refused Kind = "refused"
	// Rejected: this message is refused, whatever its form; others may pass.
	Rejected Kind = "rejected"
	// Gone: the message that should be edited is no longer there.
	Gone Kind = "gone"
)

func (k Kind) Error() string { return string(k) }

// Error is one failed request to a destination, ready for an operator: no token, no
// URL, no text of the message.
type Error struct {
	Destination string
	Op          string // what was being tried: "post message"
	Kind        Kind
	Code        string        // the destination's own word, such as is_archived
	RetryAfter  time.Duration // as the destination asked; 0 when it did not say
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s: %s", e.Destination, e.Op, e.Kind)
	if e.Code != "" {
		s += ": " + e.Code
	}
	return s
}

// Unwrap gives the kind to errors.Is.
func (e *Error) Unwrap() error { return e.Kind }
