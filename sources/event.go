package sources

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Receiver is a source whose provider delivers events. Both methods are pure and may
// be called by many goroutines at once.
type Receiver interface {
	// Verify checks one delivery against the source's secrets, by the time it came, and
	// reads its envelope. The event's account and mode are those that the delivery names,
	// also where they are none of the source's. An error is a *Refusal.
	Verify(header http.Header, body []byte, now time.Time) (recon.Event, error)
	// Decode says what an event shows. A type that is not known shows nothing and is no
	// error. An error means that the event is of a known type and could not be read; it
	// may be tried again by a later version of the program.
	Decode(e recon.Event) (Shown, error)
}

// Refusal says why a delivery is not taken, for the provider's log.
type Refusal struct {
	Why RefusalKind
	Err error
}

// RefusalKind tells refusals apart for metrics.
type RefusalKind string

const (
	BadSignature RefusalKind = "bad_signature" // none, or made with another secret
	TooOld       RefusalKind = "too_old"       // its signed time is too far from ours, either way
	NotReadable  RefusalKind = "not_readable"  // not the JSON of an event
)

func (r *Refusal) Error() string { return fmt.Sprintf("%s: %v", r.Why, r.Err) }

func (r *Refusal) Unwrap() error { return r.Err }

// Shown is what one event tells.
type Shown struct {
	Effects []recon.Effect // objects that the event carries whole
	Raw     []Raw
	// Hints name objects that the event is about without showing them whole: a field is
	// absent that we keep, or the event is of another object. They are to be read.
	Hints []Hint
}

// Hint names an object to be read. ID is set where the event names it; else Parent says
// under what it hangs.
type Hint struct {
	Kind    string
	Account string
	Mode    string
	ID      string
	Parent  string
	// Reference and Key are set where the event tells them, so that the operation is found
	// before the object is read.
	Reference string
	Key       string
}

// Feeder is a source whose provider lists its events.
type Feeder interface {
	// Feeds are the accounts and modes that have a list of events.
	Feeds() []recon.Account
	// Events reads one page of the events created in a window, newest first. cursor is
	// empty for the first page, else the Next of the page before. A fault of the provider
	// is a blind look, not an error.
	Events(ctx context.Context, feed recon.Account, w recon.Window, cursor string, now func() time.Time) (EventPage, error)
}

// EventPage is one page of a feed of events.
type EventPage struct {
	Events []recon.Event // Signed: they were read from the provider
	Next   string        // cursor of the next page; empty: the list is read to its end
	Look   recon.Look    // method changes, with the window that this page covers; blind where it was not read
}
