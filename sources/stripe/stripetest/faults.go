package stripetest

import (
	"path"
	"slices"
	"time"
)

// FaultKind is what goes wrong.
type FaultKind int

// The kinds of faults. Where Executed is named, the fault comes before the endpoint
// did anything, or, with Executed, after it did all its work.
const (
	// Slow answers truly, after Wait or Hold. It is the zero kind.
	Slow FaultKind = iota
	// Closed closes the connection without an answer. Not executed: the request was
	// lost. Executed: done and stored under the key, and the answer was lost.
	Closed
	// ServerError is a 500 with the provider's own body, stored under the key. Executed:
	// the work was done all the same. With Delay the provider does it by itself later:
	// its events then name no request.
	ServerError
	// ProxyPage is an HTML page of a proxy with Status, or 502. Executed: as Closed.
	ProxyPage
	// NotJSON answers Status, or 200, with plain text. Executed: as Closed.
	NotJSON
	// EmptyBody answers Status, or 200, with no body. Executed: as Closed.
	EmptyBody
	// EmptyObject answers 200 with {}. Executed: as Closed.
	EmptyObject
	// Truncated sends the first half of the true answer and closes. Always executed.
	Truncated
	// RateLimited is 429 rate_limit, with Retry-After if RetryAfter is set. The limiter
	// runs before the idempotency layer: nothing is executed or stored.
	RateLimited
	// LockTimeout is 429 lock_timeout: nothing is executed or stored.
	LockTimeout
	// Unauthorized is 401, as for a key that was rolled.
	Unauthorized
	// Forbidden is 403, as for a restricted key without this permission.
	Forbidden
	// KeyInUse is 409 idempotency_key_in_use, as if another copy of the request ran;
	// Until gives it a duration. Delay makes a copy that really runs.
	KeyInUse
	// BadRequest is a 400 that blames Param, as on page N of a list.
	BadRequest
)

// Always as Fault.Times lets a fault happen at every request that fits.
const Always = -1

// Fault is one scripted fault: which requests it hits, and what it does to them.
// Empty conditions fit everything; all that are given must fit.
type Fault struct {
	Kind FaultKind

	Method  string          // POST or GET
	Path    string          // as path.Match: "/v1/refunds", "/v1/refunds/*"
	Account string          // acct_…
	Key     string          // the Idempotency-Key
	Page    int             // the page of a list, from 1
	Match   func(Call) bool // anything else; must not call the server
	// From and Until are a window on the simulated clock, such as an outage; Until is
	// exclusive.
	From, Until time.Time
	// Nth skips what fits until the n-th; 0 and 1 mean the first.
	Nth int
	// Times is how often it happens: 0 means once, or without end if Chance or Until
	// is set; Always means without end.
	Times int
	// Chance is the probability, by the seed, that it happens to a request that fits;
	// 0 means certainly.
	Chance float64

	Executed   bool          // see the kinds
	Status     int           // for ProxyPage, NotJSON and EmptyBody
	RetryAfter time.Duration // for RateLimited, in whole seconds; 0: no such header
	Param      string        // for BadRequest
	// Delay lets the work land so much later on the simulated clock; until then the key
	// is in use, and the work counts as executed. For Closed, ProxyPage and ServerError
	// of a POST.
	Delay time.Duration
	// Wait holds the request for a real time before it is executed; the key is in use
	// meanwhile. Hold does so until the channel is closed. OnHold is called when it begins to,
	// and must not call the server.
	Wait   time.Duration
	Hold   <-chan struct{}
	OnHold func(Call)
}

// script is a fault with its state.
type script struct {
	Fault
	name string
	fits int
	done int
}

// Script adds faults. Each request suffers the first that fits, in order of scripting.
func (s *Server) Script(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range faults {
		s.faults = append(s.faults, &script{Fault: f, name: s.ids.next("fault_", "")})
	}
}

// ClearFaults ends all scripted faults.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// pick gives the fault that hits this call, or nil, and counts it.
func (s *Server) pick(c *Call) *Fault {
	for i, sc := range s.faults {
		if !sc.fit(c) {
			continue
		}
		sc.fits++
		if sc.fits < sc.Nth || !s.befalls(sc, c) {
			continue
		}
		sc.done++
		if limit := sc.limit(); limit > 0 && sc.done >= limit {
			s.faults = slices.Delete(slices.Clone(s.faults), i, i+1)
		}
		return &sc.Fault
	}
	return nil
}

func (sc *script) fit(c *Call) bool {
	if sc.Path != "" {
		if ok, err := path.Match(sc.Path, c.Path); err != nil || !ok {
			return false
		}
	}
	switch {
	case sc.Method != "" && sc.Method != c.Method,
		sc.Account != "" && sc.Account != c.Account,
		sc.Key != "" && sc.Key != c.Key,
		sc.Page != 0 && sc.Page != c.Page,
		!sc.From.IsZero() && c.At.Before(sc.From),
		!sc.Until.IsZero() && !c.At.Before(sc.Until):
		return false
	}
	return sc.Match == nil || sc.Match(*c)
}

// limit is the number of times that the fault happens; 0 means without end.
func (sc *script) limit() int {
	switch {
	case sc.Times < 0:
		return 0
	case sc.Times == 0 && (sc.Chance > 0 || !sc.Until.IsZero()):
		return 0
	}
	return max(sc.Times, 1)
}

// befalls draws by the key, where there is one, so that the order in which concurrent
// requests arrive does not change which of them are hit.
func (s *Server) befalls(sc *script, c *Call) bool {
	if sc.Chance <= 0 {
		return true
	}
	label := sc.name + c.Account + c.Mode + c.Key
	if c.Key == "" {
		return s.ids.chance(sc.Chance, label, sc.fits)
	}
	s.ids.made[label]++
	return s.ids.chance(sc.Chance, label, s.ids.made[label])
}
