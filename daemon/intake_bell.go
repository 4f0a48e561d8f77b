package daemon

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
)

const (
	// notifyEvery is the least time between two notifications of this process: a burst of
	// deliveries is one.
	notifyEvery = 100 * time.Millisecond
	// notifyWithin bounds one. It is only a hint: what it says is found by polling too.
	notifyWithin = 2 * time.Second
)

// bell tells of new events: this process's intake at once, the others' through the
// database.
type bell struct {
	here  chan struct{}
	there chan struct{}
	rings atomic.Int64
}

func newBell() *bell { return &bell{here: make(chan struct{}, 1), there: make(chan struct{}, 1)} }

// ring never waits. Rings that nobody has heard yet are one.
func (b *bell) ring() {
	b.rings.Add(1)
	poke(b.here)
	poke(b.there)
}

// poke leaves a mark in a channel of one place.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// notify carries rings to the other processes, after the commits that they are about and
// outside of any transaction.
func (b *bell) notify(ctx context.Context, box *inbox.Store, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.there:
		}
		bounded, cancel := context.WithTimeout(ctx, notifyWithin)
		err := box.Notify(bounded)
		cancel()
		if err != nil && ctx.Err() == nil {
			log.Debug("other processes were not told of new events", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(notifyEvery):
		}
	}
}
