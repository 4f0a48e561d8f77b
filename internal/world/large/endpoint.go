package large

import (
	"context"
	"hash/fnv"
	"io"
	"net/http"
	"sync"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
)

// diesAt is where the process that takes a delivery dies.
type diesAt int

const (
	nowhere diesAt = iota
	beforeStoring
	beforeAnswering // the event is stored, and the provider does not know
)

// handlerDeath draws from an event's id where the process dies that takes its first
// delivery, so that it needs no shared dice: one in 25 dies.
func handlerDeath(event string) diesAt {
	h := fnv.New32a()
	_, _ = h.Write([]byte(event)) // it never fails
	switch h.Sum32() % 50 {
	case 0:
		return beforeStoring
	case 1:
		return beforeAnswering
	}
	return nowhere
}

// endpoint is what the world noted down where events are taken.
type endpoint struct {
	mu   sync.Mutex // events come while requests are under way
	died map[string]diesAt
	lost []string // events that were stored before their handler died, and were new again
}

func newEndpoint() endpoint { return endpoint{died: map[string]diesAt{}} }

// dies says where the handler of a delivery dies: none dies over one event twice.
func (e *endpoint) dies(event string) diesAt {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, before := e.died[event]; before {
		return nowhere
	}
	at := handlerDeath(event)
	if at != nowhere {
		e.died[event] = at
	}
	return at
}

// came notes down what the inbox said of a delivery that did not end in a death.
func (e *endpoint) came(event string, r inbox.Receipt) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.died[event] == beforeAnswering && r == inbox.Stored {
		e.lost = append(e.lost, event)
	}
}

// receives gives the handler of the deliveries to a source as it is configured now. It does
// what the daemon's does, by the world's clock.
func (w *World) receives(source func() *stripe.Source) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) { w.receive(source(), rw, r) }
}

func (w *World) receive(source *stripe.Source, rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || w.deaf {
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	e, err := source.Verify(r.Header, body, w.clock.Now())
	if err != nil {
		w.tally.fault("forged or outdated delivery")
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	at := w.endpoint.dies(e.ID)
	if at == beforeStoring {
		w.handlerDied("before it stored the event")
	}
	receipts, err := w.inbox.Receive(r.Context(), inbox.Delivery{Event: e, At: w.clock.Now(), Foreign: !source.Sheet().Has(e.Account, e.Mode)})
	if err != nil {
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if at == beforeAnswering {
		w.handlerDied("before it answered")
	}
	w.endpoint.came(e.ID, receipts[0])
}

// handlerDied ends the handler as its process's death does: the connection is gone.
func (w *World) handlerDied(where string) {
	w.tally.fault("endpoint died " + where)
	panic(http.ErrAbortHandler)
}

// eventsStored holds what the card provider was told is taken against the inbox: an event
// that is acknowledged is stored, and one that a stranger signed is not. One whose handler
// died after storing it is known when it comes again.
func (w *World) eventsStored(ctx context.Context) error {
	rows, err := w.inbox.List(ctx, inbox.Filter{Limit: 10_000})
	if err != nil {
		return err
	}
	stored := map[string]bool{}
	for _, r := range rows {
		stored[r.ID] = true
	}
	for _, d := range w.at.cards.Deliveries() {
		switch {
		case d.Forged && d.Taken():
			w.fault("a forged event is refused", "%s was taken", d.Event)
		case d.Taken() && !stored[d.Event]:
			w.fault("an event acknowledged is an event stored", "%s is not in the inbox", d.Event)
		}
	}
	for _, event := range w.endpoint.lost {
		w.fault("a death takes no stored event away", "%s was stored before its handler died, and was new when it came again", event)
	}
	return nil
}
