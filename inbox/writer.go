package inbox

import (
	"context"
	"errors"
)

const (
	// writers is how many commits are under way at once: while one waits for the disk the
	// next is filled.
	writers = 2
	// mostTogether bounds one commit.
	mostTogether = 100
)

// ErrStopped says that the writer has ended; the delivery was not stored.
var ErrStopped = errors.New("the inbox is closing")

// Writer stores deliveries that arrive at the same time in one commit. Nobody waits for
// others to come: whatever has arrived while the commits before were under way goes
// together, so it is a single one as long as few come.
type Writer struct {
	store *Store
	queue chan *waiting
	done  chan struct{} // closed when Run ends
}

// waiting is one delivery and where its answer goes.
type waiting struct {
	delivery Delivery
	answer   chan answered // of one place: whoever waited may be gone
}

type answered struct {
	receipt Receipt
	err     error
}

// NewWriter makes a writer, which stores nothing until it runs.
func NewWriter(s *Store) *Writer {
	return &Writer{store: s, queue: make(chan *waiting), done: make(chan struct{})}
}

// Run stores what is received until ctx ends. What was taken up by then is stored.
func (w *Writer) Run(ctx context.Context) {
	ended := make(chan struct{})
	for range writers {
		go func() {
			w.serve(ctx)
			ended <- struct{}{}
		}()
	}
	for range writers {
		<-ended
	}
	close(w.done)
}

func (w *Writer) serve(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case first := <-w.queue:
			w.write(context.WithoutCancel(ctx), w.gather(first))
		}
	}
}

// gather takes what else has arrived.
func (w *Writer) gather(first *waiting) []*waiting {
	list := []*waiting{first}
	for len(list) < mostTogether {
		select {
		case next := <-w.queue:
			list = append(list, next)
		default:
			return list
		}
	}
	return list
}

// write stores deliveries together, and one by one where that fails, so that nobody's
// delivery is refused for another's.
func (w *Writer) write(ctx context.Context, list []*waiting) {
	all := make([]Delivery, 0, len(list))
	for _, one := range list {
		all = append(all, one.delivery)
	}
	receipts, err := w.store.Receive(ctx, all...)
	for i, one := range list {
		switch {
		case err == nil:
			one.answer <- answered{receipt: receipts[i]}
		case len(list) == 1:
			one.answer <- answered{err: err}
		default:
			w.write(ctx, list[i:i+1])
		}
	}
}

// Receive stores one delivery; see [Store.Receive]. Where ctx ends first it may have been
// stored all the same.
func (w *Writer) Receive(ctx context.Context, d Delivery) (Receipt, error) {
	one := &waiting{delivery: d, answer: make(chan answered, 1)}
	select {
	case w.queue <- one:
	case <-ctx.Done():
		return "", ctx.Err()
	case <-w.done:
		return "", ErrStopped
	}
	select {
	case a := <-one.answer:
		return a.receipt, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
