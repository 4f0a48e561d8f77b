package inbox

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

const (
	// writers is how many commits may be under way at once.
	writers = 2
	// overtake is after how long a commit that is under way is not waited for: the next is
	// filled as long as the disk is quick, and begins beside it where the disk is slow or a
	// row is locked.
	overtake = 20 * time.Millisecond
	// linger is how long a commit waits at most for as many deliveries as the one before
	// had: those whose answers were just sent are followed at once where much comes.
	linger = time.Millisecond
	// mostTogether bounds one commit.
	mostTogether = 100
)

// ErrStopped says that the writer has ended; the delivery was not stored.
var ErrStopped = errors.New("the inbox is closing")

// Writer stores deliveries that arrive at the same time in one commit: whatever has arrived
// while the one before was under way goes together. Where they come one by one nobody waits
// for others.
type Writer struct {
	store *Store
	queue chan *waiting
	turn  chan struct{} // of one place: held by the commit that others wait for
	last  atomic.Int64  // how many deliveries the last commit had
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
	return &Writer{store: s, queue: make(chan *waiting), turn: make(chan struct{}, 1), done: make(chan struct{})}
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
			w.inTurn(func() { w.write(context.WithoutCancel(ctx), w.gather(first)) })
		}
	}
}

// inTurn waits for the commit that is under way, but not for long: commits that are large
// cost less than twice as many.
func (w *Writer) inTurn(commit func()) {
	wait := time.NewTimer(overtake)
	defer wait.Stop()
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-wait.C:
	}
	commit()
}

// gather takes what else has arrived, or is about to.
func (w *Writer) gather(first *waiting) []*waiting {
	list, expected := []*waiting{first}, w.last.Load()
	end := time.NewTimer(linger)
	defer end.Stop()
	for len(list) < mostTogether {
		next := w.here()
		if next == nil && int64(len(list)) < expected {
			next = w.soon(end.C)
		}
		if next == nil {
			break
		}
		list = append(list, next)
	}
	w.last.Store(int64(len(list)))
	return list
}

// here gives a delivery that has arrived; nil: there is none.
func (w *Writer) here() *waiting {
	select {
	case one := <-w.queue:
		return one
	default:
		return nil
	}
}

// soon gives the next delivery; nil: none came before the end.
func (w *Writer) soon(end <-chan time.Time) *waiting {
	select {
	case one := <-w.queue:
		return one
	case <-end:
		return nil
	}
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
