package large

import (
	"context"
	"net/http"
	"sync"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// patience is a source's way to its provider on which no real time is waited: a request that
// the provider holds ends there as one does whose time is over.
type patience struct {
	next http.RoundTripper

	mu      sync.Mutex // requests of one batch may be under way together
	waiting map[*http.Request]context.CancelCauseFunc
}

func newPatience(next http.RoundTripper) *patience {
	return &patience{next: next, waiting: map[*http.Request]context.CancelCauseFunc{}}
}

// RoundTrip implements [http.RoundTripper].
func (p *patience) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, end := context.WithCancelCause(r.Context()) // it ends with the source's own at the latest
	r = r.WithContext(ctx)
	p.mu.Lock()
	p.waiting[r] = end
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.waiting, r)
	}()
	resp, err := p.next.RoundTrip(r)
	if err != nil && context.Cause(ctx) == context.DeadlineExceeded {
		err = context.DeadlineExceeded
	}
	return resp, err
}

// waits reports whether such a request is under way.
func (p *patience) waits(such func(*http.Request) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r := range p.waiting {
		if such(r) {
			return true
		}
	}
	return false
}

// end ends such requests: their time is over.
func (p *patience) end(such func(*http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r, end := range p.waiting {
		if such(r) {
			end(context.DeadlineExceeded)
		}
	}
}

// sameAs recognizes a request of ours in what the provider saw of it.
func sameAs(method, path, query string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == method && r.URL.Path == path && r.URL.Query().Encode() == query
	}
}

// giveUp ends a request that a plain provider holds.
func (p *patience) giveUp(seen *http.Request) {
	p.end(sameAs(seen.Method, seen.URL.Path, seen.URL.Query().Encode()))
}

// question is a request of a source in what the card provider saw of it.
func (w *World) question(c stripetest.Call) (*patience, func(*http.Request) bool) {
	same := sameAs(c.Method, c.Path, c.Query.Encode())
	return w.patience[sourceAt(c.Account)], func(r *http.Request) bool {
		return same(r) && (r.Header.Get("Stripe-Account") == shop) == (c.Account == shop)
	}
}

// hangs has a source's time be over where the card provider holds its questions. Who waits by
// the real clock, as the handler of clicks does, is not held.
func (w *World) hangs(f stripetest.Fault) stripetest.Fault {
	f.Match = func(c stripetest.Call) bool {
		p, such := w.question(c)
		return p.waits(such)
	}
	f.OnHold = func(c stripetest.Call) {
		p, such := w.question(c)
		p.end(such)
	}
	return f
}

// timedOut is what is counted of a look that got no answer in time.
func timedOut(name recon.SourceName) string { return "no answer in time from " + string(name) }
