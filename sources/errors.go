package sources

import (
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Kind says why a source could not look. A Kind is itself an error, so that
// errors.Is(err, sources.RateLimited) reads as it should. Kinds only grow.
type Kind string

const (
	RateLimited    Kind = "rate_limited"    // 429, or our own budget is used up
	Unavailable    Kind = "unavailable"     // 5xx, refused or broken connection
	Timeout        Kind = "timeout"         // no answer in time
	BadCredentials Kind = "bad_credentials" // 401, 403
	WrongAccount   Kind = "wrong_account"   // the account or mode is not one of the source's
	Truncated      Kind = "truncated"       // a list that broke off
	Malformed      Kind = "malformed"       // an answer that is not what the contract says
	OwnBug         Kind = "own_bug"         // the provider refuses our request as wrong: 400 on a page
	Unsupported    Kind = "unsupported"     // the source cannot observe this kind or method
)

func (k Kind) Error() string { return string(k) }

// Error is a fault of one request, ready for an operator: no secret, no personal
// data, no URL with parameters.
type Error struct {
	Source     recon.SourceName
	Op         string // what was being tried: "list refunds"
	Kind       Kind
	RetryAfter time.Duration // what the provider asked for, bounded; 0 when it did not say
	RequestID  string
	Err        error // the cause, for logs; its text is already cleaned
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("%s: %s: %s", e.Source, e.Op, e.Kind)
	}
	return fmt.Sprintf("%s: %s: %s: %v", e.Source, e.Op, e.Kind, e.Err)
}

// Unwrap gives both the kind and the cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error { return []error{e.Kind, e.Err} }
