package slacktest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// request is one call's parameters and when it came.
type request struct {
	form url.Values
	at   time.Time
}

// reply is what a method answers.
type reply struct {
	err        string // ok:false
	body       map[string]any
	scopes     string
	retryAfter time.Duration // with a 429
}

func fail(word string) reply { return reply{err: word} }

// serve reads a request, applies the faults that are due, and answers.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, method string, do func(request) reply) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := parameters(r); err != nil {
		http.Error(w, "too large, or neither a form nor JSON", http.StatusRequestEntityTooLarge)
		return
	}
	s.mu.Lock()
	now := s.opts.Now()
	f := s.fault(method)
	var answer reply
	outcome := ""
	switch {
	case f != nil && f.LoseRequest:
		outcome = "request lost"
	case f != nil && f.Error != "":
		answer = fail(f.Error)
	case f != nil && f.Status != 0:
		outcome = "http_" + strconv.Itoa(f.Status)
	case !s.allowed(r):
		answer = fail("invalid_auth")
	default:
		answer = do(request{form: r.PostForm, at: now})
		if f != nil && f.LoseAnswer {
			outcome = "answer lost"
		}
	}
	if outcome == "" {
		outcome = "ok"
		if answer.err != "" {
			outcome = answer.err
		}
	}
	s.calls = append(s.calls, Call{Method: method, At: now, Outcome: outcome})
	s.mu.Unlock()
	switch {
	case f != nil && (f.LoseRequest || f.LoseAnswer):
		drop(w)
	case f != nil && f.Status != 0:
		spoiled(w, f)
	default:
		send(w, answer)
	}
}

// parameters reads a form, or an object whose texts are taken as they are and whose other
// members as JSON.
func parameters(r *http.Request) error {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") {
		return r.ParseForm()
	}
	var body map[string]json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return err
	}
	r.PostForm = url.Values{}
	for k, v := range body {
		var s string
		if json.Unmarshal(v, &s) != nil {
			s = string(v)
		}
		r.PostForm.Set(k, s)
	}
	return nil
}

// fault takes the next fault of a method; mu is held.
func (s *Server) fault(method string) *Fault {
	i := slices.IndexFunc(s.faults, func(f *Fault) bool { return f.Method == method })
	if i < 0 {
		return nil
	}
	if s.faults[i].After > 0 {
		s.faults[i].After--
		return nil
	}
	f := *s.faults[i]
	if s.faults[i].Times--; s.faults[i].Times == 0 {
		s.faults = slices.Delete(s.faults, i, i+1)
	}
	return &f
}

func (s *Server) allowed(r *http.Request) bool {
	token := r.PostForm.Get("token")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		token = bearer
	}
	return token != "" && (s.opts.Token == "" || token == s.opts.Token)
}

// drop closes the connection without an answer.
func drop(w http.ResponseWriter) {
	h, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler) // unreachable: we serve HTTP/1.1
	}
	conn, _, err := h.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // ends the connection as well
	}
	_ = conn.Close() // that it breaks is the purpose
}

func spoiled(w http.ResponseWriter, f *Fault) {
	if f.Status == http.StatusTooManyRequests {
		tooMany(w, f.RetryAfter)
		return
	}
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(f.Status)
	fmt.Fprint(w, "<!DOCTYPE html><title>Slack</title>")
}

// tooMany answers 429; Slack's Retry-After is whole seconds.
func tooMany(w http.ResponseWriter, after time.Duration) {
	if after > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusTooManyRequests)
	fmt.Fprint(w, `{"ok":false,"error":"ratelimited"}`)
}

func send(w http.ResponseWriter, r reply) {
	if r.retryAfter > 0 {
		tooMany(w, r.retryAfter)
		return
	}
	body := map[string]any{"ok": true}
	for k, v := range r.body {
		body[k] = v
	}
	if r.err != "" {
		body = map[string]any{"ok": false, "error": r.err}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if r.scopes != "" {
		w.Header().Set("X-OAuth-Scopes", r.scopes)
	}
	_ = json.NewEncoder(w).Encode(body) // the other side went away: nothing to tell
}
