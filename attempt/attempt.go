// Package attempt sends the one HTTP request of one attempt, at most once, and keeps what
// came of it.
//
// A client library hides what the sender must know: how often it really sent, whether a
// byte left this machine, status and headers of an answer that it could not read. And
// net/http itself sends a request with an Idempotency-Key again when a kept connection
// dies. [Transport] stands under the library and ends all of that: one attempt is one
// request, a second one is refused, and [Exchange.Reply] tells how the first one went.
//
// It decides nothing about what an answer means; that differs by provider.
package attempt

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

var (
	// ErrOutside is why a request that may change something was not sent.
	ErrOutside = errors.New("this client sends writes within an attempt only: begin one, and give its context to the call")
	// ErrSecond is why the second request of an attempt was not sent.
	ErrSecond = errors.New("this attempt has sent its request: another one needs a claim of its own")
	// ErrCut says that an answer broke off.
	ErrCut = errors.New("the answer was cut off")
	// ErrTooLarge says that an answer was longer than anybody needs.
	ErrTooLarge = errors.New("the answer is too large")
)

// Check looks at a request before it is sent. Its error keeps the request from being
// sent, and names the next step.
type Check func(r *http.Request, body []byte) error

// Reply is what is known about the request of an attempt.
type Reply struct {
	// Seen is false when no request came to the transport. That does not mean that
	// nothing was sent: the client may not have the transport.
	Seen bool
	// Refused is why the request was not handed to the network. It certainly did nothing.
	Refused error
	// Unwritten says that no byte of the request was written: no connection was made.
	Unwritten bool
	Status    int // 0: no answer
	Header    http.Header
	Body      []byte // as far as it came
	// Err is why there is no answer, or no whole one.
	Err error
}

// Answered reports whether a whole answer came.
func (r Reply) Answered() bool { return r.Status != 0 && r.Err == nil }

// Exchange is the one request of an attempt. It may be used by several goroutines.
type Exchange struct {
	check Check

	mu    sync.Mutex // guards reply
	reply Reply
}

type exchangeKey struct{}

// Begin gives the context under which the request of one attempt is sent. check may be
// nil.
func Begin(ctx context.Context, check Check) (context.Context, *Exchange) {
	x := &Exchange{check: check}
	return context.WithValue(ctx, exchangeKey{}, x), x
}

// Reply tells how the request went so far.
func (x *Exchange) Reply() Reply {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.reply
}

// change notes something about the request.
func (x *Exchange) change(f func(*Reply)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f(&x.reply)
}

// take lets the first request of the attempt through.
func (x *Exchange) take() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	first := !x.reply.Seen
	x.reply.Seen = true
	return first
}
