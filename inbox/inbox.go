// Package inbox keeps what providers tell by themselves: each event once, with its
// bytes as they came, stored before it is acknowledged. It owns the tables events and
// feeds.
//
// It promises that an event whose storing was reported is on disk, that the same event
// is one row however often and at how many places it arrives at the same moment, and
// that an event that nobody signed never becomes evidence because a signed one bears
// the same id. What events mean is not its business.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// State is where an event stands.
type State string

const (
	New     State = "new"     // stored, and to be taken in
	Waiting State = "waiting" // taking it in failed; it is tried again
	Done    State = "done"    // taken in, also where it showed nothing
	Failed  State = "failed"  // given up after too many tries; a person must look
	Ignored State = "ignored" // of an account or mode that is none of the source's
)

// States lists every state, in the order of an event's life.
var States = []State{New, Waiting, Done, Failed, Ignored}

// Valid reports whether s is one of the states.
func (s State) Valid() bool {
	for _, known := range States {
		if s == known {
			return true
		}
	}
	return false
}

// Name is what makes two deliveries the same event.
type Name struct {
	System, Account, Mode, ID string
}

// NameOf gives an event's name.
func NameOf(e recon.Event) Name { return Name{e.System, e.Account, e.Mode, e.ID} }

// callTimeout bounds every call whose context has no end of its own.
const callTimeout = 30 * time.Second

// Database is the opened database that an inbox lives in. The ledger's is one.
type Database interface {
	Pool() *pgxpool.Pool
	Tenant() string
	// Fault makes of a driver's error one that is fit for people.
	Fault(op string, err error) error
}

// Store is the inbox. It may be used by many goroutines at once.
type Store struct {
	pool   *pgxpool.Pool
	tenant string
	fault  func(op string, err error) error
}

// Open gives the inbox of a database, which the caller keeps open for as long.
func Open(d Database) *Store {
	return &Store{pool: d.Pool(), tenant: d.Tenant(), fault: d.Fault}
}

// maxName bounds the texts that make an event's name and type; an index entry has no
// room for much longer ones.
const maxName = 255

// Check says why an event cannot be stored; nil: it can. Its body may hold anything but
// nothing.
func Check(e recon.Event) error {
	for _, f := range []struct {
		name, value string
		need        bool
	}{
		{"id", e.ID, true}, {"type", e.Type, true}, {"system", e.System, true}, {"source", string(e.Source), true},
		{"account", e.Account, false}, {"mode", e.Mode, false}, // one that it does not name is none of the source's
	} {
		switch {
		case f.value == "" && f.need:
			return fmt.Errorf("the event has no %s", f.name)
		case len(f.value) > maxName:
			return fmt.Errorf("the event's %s is longer than %d bytes", f.name, maxName)
		case strings.ContainsRune(f.value, 0) || !utf8.ValidString(f.value):
			return fmt.Errorf("the event's %s holds characters that are no text", f.name)
		}
	}
	if len(e.Body) == 0 {
		return errors.New("the event has no body")
	}
	if y := e.CreatedAt.UTC().Year(); y < 2000 || y >= 2100 {
		return fmt.Errorf("the event says that it was created in the year %d", y)
	}
	return nil
}

// bounded gives the context an end if it has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, callTimeout)
}

// stored cuts an instant to what PostgreSQL keeps.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
