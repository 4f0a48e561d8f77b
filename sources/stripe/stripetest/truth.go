package stripetest

import (
	"maps"
	"net/url"
	"time"
)

// maxCalls bounds the log of calls; the counts go on.
const maxCalls = 200_000

// Call is one request as the server saw it.
type Call struct {
	At        time.Time // simulated
	Method    string
	Path      string
	Endpoint  string // method and path pattern: "GET /v1/refunds/{id}"; empty when unknown
	Query     url.Values
	Form      url.Values
	Account   string // empty when the key was not accepted
	Mode      string
	Key       string // Idempotency-Key as sent, empty when none was
	RequestID string
	Page      int  // 1 for the first page of a list, 0 for anything else
	Status    int  // as answered; 0 when the connection was closed without an answer
	Replayed  bool // a stored answer was given
	Ran       bool // this request made the endpoint do its work, at once or after a Delay
	Faulted   bool // a scripted fault changed how it went
}

// Write reports whether the request could change something.
func (c Call) Write() bool { return c.Method != "GET" && c.Method != "HEAD" }

// Calls gives all requests in order of arrival, at most the first 200,000.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	calls := make([]Call, len(s.calls))
	for i, c := range s.calls {
		calls[i] = *c
		calls[i].Query, calls[i].Form = maps.Clone(c.Query), maps.Clone(c.Form)
	}
	return calls
}

// Counts gives the number of requests by endpoint, such as "GET /v1/refunds/{id}".
func (s *Server) Counts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts)
}

// Writes is the number of requests that could change something, refused ones
// included. It is 0 as long as only a source has asked.
func (s *Server) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// ResetCalls forgets the calls and counts so far.
func (s *Server) ResetCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.counts, s.writes = nil, map[string]int{}, 0
}

// Refunds gives the true state of all refunds now, in order of creation, whatever
// the lag hides.
func (s *Server) Refunds() []Refund { return truth[Refund](s, refundKind) }

// Charges gives the true state of all charges now, in order of creation.
func (s *Server) Charges() []Charge { return truth[Charge](s, chargeKind) }

// PaymentIntents gives the true state of all payment intents now, in order of creation.
func (s *Server) PaymentIntents() []PaymentIntent { return truth[PaymentIntent](s, intentKind) }

// Events gives all events so far, in order of time, those out of the history included.
func (s *Server) Events() []Event { return truth[Event](s, eventKind) }

// truth copies the objects of one kind from all accounts, oldest first.
func truth[T any, P interface {
	*T
	object
}](s *Server, k kind) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.opt.Now())
	merged := ordered{}
	for _, p := range s.inOrder {
		for _, r := range p.shelf(k).all.sorted() {
			merged.add(r)
		}
	}
	objects := make([]T, 0, len(merged.rows))
	for _, r := range merged.sorted() {
		objects = append(objects, copyOf[T](r.object.(P)))
	}
	return objects
}

// copyOf gives an object that its receiver may change.
func copyOf[T any, P interface {
	*T
	object
}](o P) T {
	copied := *o
	P(&copied).own()
	return copied
}
