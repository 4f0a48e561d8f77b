package stripetest

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// exchange is one request on its way through the server.
type exchange struct {
	call   *Call
	place  *place
	params *params
	target string // the {id} in the path
	read   reader
	fault  Fault
	key    *storedKey // what this request holds, if it has a key
}

// A reader reads and checks a request's parameters and gives the work that they ask
// for. What params refuses is validation: the work never begins and nothing is stored
// under the key. Whatever the work answers is stored.
type reader func(x *exchange) work

// work runs under the server's lock.
type work func(m moment) answer

// moment is when something happens at the provider, and because of which request;
// key and requestID are empty for what the provider does by itself.
type moment struct {
	at             time.Time
	key, requestID string
}

// asked is the moment of a request's own work.
func (x *exchange) asked(at time.Time) moment {
	return moment{at: at, key: x.call.Key, requestID: x.call.RequestID}
}

// serve takes a request through the provider's layers: authentication, limiter and
// proxies (scripted), idempotency keys, validation, work.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, endpoint string, read reader) {
	if !s.begin() {
		panic(http.ErrAbortHandler)
	}
	defer s.running.Done()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		panic(http.ErrAbortHandler) // the client went away or sent more than anyone needs
	}
	x, told := s.enter(r, body, endpoint, read)
	if !s.wait(r.Context(), x) {
		s.leave(x)
		panic(http.ErrAbortHandler)
	}
	said := s.run(x, told)
	s.postEarly(r.Context(), x.call.RequestID)
	s.say(w, r, x, said)
}

// enter logs the call and asks the layers before the work; an answer ends the request.
func (s *Server) enter(r *http.Request, body []byte, endpoint string, read reader) (*exchange, *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opt.Now()
	s.advance(now)
	query, queryErr := url.ParseQuery(r.URL.RawQuery)
	form, formErr := url.ParseQuery(string(body))
	x := &exchange{read: read, target: r.PathValue("id"), call: &Call{
		At: now, Method: r.Method, Path: r.URL.Path, Endpoint: endpoint, Query: query, Form: form,
		Key: r.Header.Get("Idempotency-Key"), RequestID: s.requestID(),
	}}
	place, refused := s.authenticate(r)
	if x.place = place; place != nil {
		x.call.Account, x.call.Mode = place.account, place.mode
	}
	s.record(x.call)
	if refused != nil {
		return x, refuse(refused)
	}
	if queryErr != nil || formErr != nil {
		return x, refuse(invalid("", "The parameters cannot be read: they are not form encoded."))
	}
	x.params = newParams(query)
	if x.call.Write() {
		x.params = newParams(form)
	}
	if f := s.pick(x.call); f != nil {
		x.fault, x.call.Faulted = *f, true
		if told := f.before(); told != nil {
			return x, told
		}
	}
	return x, s.takeKey(x)
}

// record logs a call.
func (s *Server) record(c *Call) {
	if c.listed() {
		c.Page = cmp.Or(s.pages[c.run(c.cursor())], 1)
	}
	if len(s.calls) < maxCalls {
		s.calls = append(s.calls, c)
	}
	s.counts[c.Endpoint]++
	if c.Write() {
		s.writes++
	}
}

// wait holds a request as its fault says; false means that the server is closing.
func (s *Server) wait(ctx context.Context, x *exchange) bool {
	f := x.fault
	if f.Wait <= 0 && f.Hold == nil {
		return true
	}
	if f.OnHold != nil {
		f.OnHold(*x.call)
	}
	var over <-chan time.Time
	if f.Wait > 0 {
		timer := time.NewTimer(f.Wait)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-f.Hold:
	case <-s.closing:
		return false
	case <-ctx.Done():
		// The client is gone; the provider does the work all the same.
	}
	return true
}

// leave gives up a request that will not be executed.
func (s *Server) leave(x *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x.dropKey()
}

// run executes a request that no layer has answered yet, and lets the fault change
// what is told.
func (s *Server) run(x *exchange, told *answer) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if told == nil {
		now := s.opt.Now()
		s.advance(now)
		done := s.execute(x, now)
		told = &done
	}
	said := x.fault.after(*told, x.call)
	x.call.Status = said.status
	return said
}

// execute validates and does the work, now or later on the simulated clock.
func (s *Server) execute(x *exchange, now time.Time) answer {
	do := x.read(x)
	if e := x.params.done(); e != nil {
		x.dropKey()
		return e.answer()
	}
	later := x.fault.Delay > 0 && x.call.Write()
	if x.fault.Kind == ServerError && x.call.Write() {
		return s.executeBadly(x, do, now, later)
	}
	x.call.Ran = true
	if later {
		s.later(now.Add(x.fault.Delay), func(at time.Time) { x.keepAnswer(do(x.asked(at))) })
		return answer{status: http.StatusGatewayTimeout}
	}
	done := do(x.asked(now))
	x.keepAnswer(done)
	return done
}

// executeBadly stores a 500 under the key, whether or not the work is done.
func (s *Server) executeBadly(x *exchange, do work, now time.Time, later bool) answer {
	failed := serverError().answer()
	x.keepAnswer(failed)
	switch {
	case later:
		// The provider rolls forward by itself: what it makes then names no request.
		s.later(now.Add(x.fault.Delay), func(at time.Time) { do(moment{at: at}) })
	case x.fault.Executed:
		x.call.Ran = true
		do(x.asked(now))
	}
	return failed
}

// say writes the answer, or what the fault leaves of it.
func (s *Server) say(w http.ResponseWriter, r *http.Request, x *exchange, a answer) {
	if a.status == 0 {
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Request-Id", x.call.RequestID)
	header.Set("Stripe-Version", cmp.Or(r.Header.Get("Stripe-Version"), s.opt.APIVersion))
	if x.call.Key != "" {
		header.Set("Idempotency-Key", x.call.Key)
	}
	for name, values := range a.header {
		header[name] = values
	}
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	w.WriteHeader(a.status)
	if x.fault.Kind != Truncated {
		_, _ = w.Write(a.body) // the client may be gone, which is its own affair
		return
	}
	_, _ = w.Write(a.body[:len(a.body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
