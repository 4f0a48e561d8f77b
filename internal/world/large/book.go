package large

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// deed is one thing that truly exists at a provider.
type deed struct {
	op     recon.OperationID // whose reference it bears; empty: nobody's
	source recon.SourceName
	// account is where it is; empty where a provider has only one.
	account string
	id      string
	minor   int64
	parent  string
	at      time.Time // by our clock
	hand    bool      // somebody made it by hand, no agent of ours
	turns   []turn    // what became of it, in order
}

// turn is a change of what a deed is.
type turn struct {
	at     time.Time
	status recon.EffectStatus
	word   string // the card provider's own, where that says more than the status
}

// now is the turn that the deed has taken last at a time.
func (d *deed) now(at time.Time) turn {
	last := turn{status: recon.Completed}
	for _, t := range d.turns {
		if !t.at.After(at) {
			last = t
		}
	}
	return last
}

// status is what the deed is at a time.
func (d *deed) status(at time.Time) recon.EffectStatus { return d.now(at).status }

// equals reports whether it is what the intent meant, where it was meant.
func (d *deed) equals(i intent) bool {
	return d.minor == i.money.Minor && (i.unnamed || d.account == i.account)
}

// live reports whether it exists, or may still come to exist, at a time.
func (d *deed) live(at time.Time) bool { return d.status(at).Live() }

// book is the truth, written by the providers' side alone.
type book struct {
	mu    sync.Mutex // servers write from their own goroutines
	deeds []*deed
	of    map[recon.OperationID][]*deed
}

func newBook() *book { return &book{of: map[recon.OperationID][]*deed{}} }

func (b *book) write(d *deed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deeds = append(b.deeds, d)
	if d.op != "" {
		b.of[d.op] = append(b.of[d.op], d)
	}
}

// by gives what bears an operation's reference, earliest first.
func (b *book) by(op recon.OperationID) []*deed {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := slices.Clone(b.of[op])
	slices.SortStableFunc(list, func(x, y *deed) int { return cmp.Or(x.at.Compare(y.at), cmp.Compare(x.id, y.id)) })
	return list
}

// all gives everything.
func (b *book) all() []*deed {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.deeds)
}

// turns gives the turns of a life that begins at a time, and how long after the beginning
// each comes. How long is drawn from the deed's number, so that it needs no shared dice.
func (l life) turns(at time.Time, n int) []turn {
	hours := time.Duration(1+n%7) * time.Hour
	switch l {
	case pendsThenOK:
		return []turn{{at: at, status: recon.InFlight}, {at: at.Add(hours), status: recon.Completed}}
	case pendsThenBad:
		return []turn{{at: at, status: recon.InFlight}, {at: at.Add(hours), status: recon.EffectFailed}}
	case waitsThenCancelled:
		return []turn{{at, recon.InFlight, "requires_action"}, {at.Add(hours), recon.EffectFailed, "canceled"}}
	case failsLate:
		return []turn{{at: at.Add(day + time.Duration(n%26)*day), status: recon.EffectFailed}}
	}
	return nil
}
