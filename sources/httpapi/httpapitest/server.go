// Package httpapitest is a fake JSON API that keeps the rules of real ones: lists in pages
// of every usual style, with a size of its own that it does not exceed; a lag until what was
// made is seen; places apart, each opened by its own token; faults on demand; and a format
// that can change.
//
// Whatever a sender does is done by [Server.Make]; over HTTP nothing can be changed.
package httpapitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Object is an effect as the fake holds it.
type Object struct {
	ID        string
	Token     string // of the place that it is in
	Reference string
	Key       string
	Parent    string
	Amount    string // as it is written: "10.05"
	Currency  string
	State     string // done, undone…
	Created   time.Time
	Seen      time.Time // from when on it is shown
}

// Server is a running fake.
type Server struct {
	*httptest.Server
	way
	now func() time.Time

	mu       sync.Mutex // guards what follows
	style    string
	max      int // objects of a page at most
	oldest   bool
	lag      time.Duration
	objects  []*Object
	all      int
	writes   int
	heedless bool // ignores the window
	deaf     bool // ignores every filter
	change   func(map[string]any)
}

// Start runs a fake with pages of a style and at most max objects each. It is closed by its
// caller.
func Start(now func() time.Time, style string, max int) *Server {
	s := &Server{now: now, style: style, max: max}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// locked runs f alone.
func (s *Server) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// OldestFirst turns the order of lists.
func (s *Server) OldestFirst() { s.locked(func() { s.oldest = true }) }

// SetLag lets what is made from now on be seen only d later.
func (s *Server) SetLag(d time.Duration) { s.locked(func() { s.lag = d }) }

// IgnoreWindows lets every list show all that there is.
func (s *Server) IgnoreWindows() { s.locked(func() { s.heedless = true }) }

// IgnoreFilters lets every filter be taken for a name that means nothing.
func (s *Server) IgnoreFilters() { s.locked(func() { s.deaf = true }) }

// Change alters every object before it is shown, as a new version of an API would.
func (s *Server) Change(f func(map[string]any)) { s.locked(func() { s.change = f }) }

// Requests is how many requests came, and how many of them could change something.
func (s *Server) Requests() (all, writes int) {
	s.locked(func() { all, writes = s.all, s.writes })
	return all, writes
}

// Make makes an object now and gives its id.
func (s *Server) Make(o Object) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	o.ID = fmt.Sprintf("ef_%d", len(s.objects)+1)
	o.Created = s.now()
	o.Seen = o.Created.Add(s.lag)
	if o.State == "" {
		o.State = "done"
	}
	s.objects = append(s.objects, &o)
	return o.ID
}

// SetState changes an object's state.
func (s *Server) SetState(id, state string) {
	s.locked(func() {
		for _, o := range s.objects {
			if o.ID == id {
				o.State = state
			}
		}
	})
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.all++
	if r.Method != http.MethodGet {
		s.writes++
	}
	status, body, header := s.answer(r)
	s.mu.Unlock()
	s.pass(w, r, reply{status, header, body})
}

// answer gives the reply to a request in good times.
func (s *Server) answer(r *http.Request) (status int, body []byte, header map[string]string) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "" {
		return 401, []byte(`{"error":"no token"}`), nil
	}
	seen := s.visible(token, r)
	if id, ok := strings.CutPrefix(r.URL.Path, "/v1/effects/"); ok {
		for _, o := range seen {
			if o.ID == id {
				return 200, encode(s.show(o)), nil
			}
		}
		return 404, []byte(`{"error":"no_such_effect"}`), nil
	}
	if r.URL.Path != "/v1/effects" {
		return 404, []byte(`{"error":"no_such_path"}`), nil
	}
	page, where, header := s.page(seen, r)
	data := []any{}
	for _, o := range page {
		data = append(data, s.show(o))
	}
	return 200, encode(map[string]any{"data": data, "page": where}), header
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // unreachable: maps of texts and numbers
	}
	return b
}

func (s *Server) show(o *Object) map[string]any {
	m := map[string]any{
		"id": o.ID, "created": o.Created.Format(time.RFC3339), "state": o.State,
		"total": map[string]any{"value": o.Amount, "currency": o.Currency}, "order": o.Parent,
		"meta": map[string]any{"operation_id": o.Reference}, "idempotency_key": o.Key,
		"customer": "jane@example.com",
	}
	if s.change != nil {
		s.change(m)
	}
	return m
}

// visible gives the objects of a place that a request asks for, in the order of lists.
func (s *Server) visible(token string, r *http.Request) []*Object {
	q := r.URL.Query()
	var list []*Object
	for _, o := range s.objects {
		at := o.Created.Truncate(time.Second)
		switch {
		case o.Token != token, o.Seen.After(s.now()):
		case !s.deaf && (!equal(q.Get("external_id"), o.Reference) || !equal(q.Get("key"), o.Key) || !equal(q.Get("order"), o.Parent)):
		case !s.heedless && (!bounded(q.Get("since"), at, true) || !bounded(q.Get("until"), at, false)):
		default:
			list = append(list, o)
		}
	}
	if !s.oldest {
		slices.Reverse(list)
	}
	return list
}

func equal(filter, value string) bool { return filter == "" || filter == value }

// bounded reports whether a time lies within a bound, its own second included.
func bounded(bound string, at time.Time, since bool) bool {
	n, err := strconv.ParseInt(bound, 10, 64)
	return err != nil || since && at.Unix() >= n || !since && at.Unix() <= n
}

// page cuts a page out of a list and says where it goes on.
func (s *Server) page(list []*Object, r *http.Request) (page []*Object, where map[string]any, header map[string]string) {
	q := r.URL.Query()
	size, _ := strconv.Atoi(q.Get("limit")) // 0 where it is none: our own
	if size <= 0 || size > s.max {
		size = s.max
	}
	from := s.start(list, q, size)
	to := min(from+size, len(list))
	page, more := list[from:to], to < len(list)
	where = map[string]any{"next": nil, "more": more, "total": len(list)}
	if !more {
		return page, where, nil
	}
	next := page[len(page)-1].ID
	q.Set("after", next)
	address := s.URL + r.URL.Path + "?" + q.Encode()
	switch s.style {
	case "cursor":
		where["next"] = next
	case "url":
		where["next"] = address
	case "link":
		header = map[string]string{"Link": "<" + s.URL + r.URL.Path + ">; rel=\"first\", <" + address + ">; rel=\"next\""}
	}
	return page, where, header
}

// start is where a page begins.
func (s *Server) start(list []*Object, q url.Values, size int) int {
	n, _ := strconv.Atoi(q.Get("at")) // 0 where it is none: the beginning
	switch s.style {
	case "page":
		return min(max(n-1, 0)*size, len(list))
	case "offset":
		return min(n, len(list))
	}
	return 1 + slices.IndexFunc(list, func(o *Object) bool { return o.ID == q.Get("after") })
}
