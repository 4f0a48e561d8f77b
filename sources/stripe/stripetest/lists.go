package stripetest

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// farSecond is beyond every object and far from overflow.
const farSecond = 1 << 40

// listing is a list endpoint: what it lists, its address, its filters besides
// created and paging.
type listing struct {
	kind    kind
	url     string
	filters []string
}

// query is what a list request asks for.
type query struct {
	limit         int
	after, before string // ids: starting_after, ending_before
	created       span
	refs          map[string]string
	types         []string          // events only; nil is every one
	delivered     string            // events only: true, or false for those that some endpoint has not taken
	leaves        func(object) bool // leaves an object out; nil leaves none
	expand        []string
	at            time.Time
	lag           time.Duration
}

// span is a condition on created, in whole seconds; both ends inclusive, nil is open.
type span struct{ from, to *int64 }

func (sp span) holds(t time.Time) bool {
	second := t.Unix()
	return (sp.from == nil || second >= *sp.from) && (sp.to == nil || second <= *sp.to)
}

// list serves a top-level list.
func (s *Server) list(l listing) reader {
	return func(x *exchange) work {
		q := x.params.query(l)
		return func(m moment) answer {
			q.at, q.lag = m.at, s.lag.List
			return s.answerPage(x, l, q)
		}
	}
}

// query reads the parameters that all lists share, and the list's own filters.
func (p *params) query(l listing) query {
	q := query{limit: p.limit(), after: p.text("starting_after"), before: p.text("ending_before"),
		created: p.created(), refs: map[string]string{}, expand: p.expand(true)}
	if q.after != "" && q.before != "" {
		p.fail(invalid("starting_after", "You may only provide one of these parameters: starting_after, ending_before."))
	}
	for _, name := range l.filters {
		if value := p.text(name); value != "" {
			q.refs[name] = value
		}
	}
	return q
}

func (p *params) limit() int {
	n := p.number("limit")
	if n == nil {
		return defaultPage
	}
	if *n < 1 || *n > maxPage {
		e := invalid("limit", "This value must be between 1 and %d.", maxPage)
		e.Code = "parameter_invalid_integer"
		p.fail(e)
	}
	return int(*n)
}

func (p *params) created() span {
	var sp span
	from := func(n int64) {
		if sp.from == nil || n > *sp.from {
			sp.from = &n
		}
	}
	to := func(n int64) {
		if sp.to == nil || n < *sp.to {
			sp.to = &n
		}
	}
	for _, condition := range []struct {
		name  string
		bound func(int64)
	}{
		{"created", func(n int64) { from(n); to(n) }},
		{"created[gte]", from},
		{"created[gt]", func(n int64) { from(n + 1) }},
		{"created[lte]", to},
		{"created[lt]", func(n int64) { to(n - 1) }},
	} {
		if n := p.number(condition.name); n != nil {
			condition.bound(min(max(*n, -farSecond), farSecond))
		}
	}
	return sp
}

// answerPage answers one page of a list, newest first.
func (s *Server) answerPage(x *exchange, l listing, q query) answer {
	rows, more, e := s.pageOf(x.place.shelf(l.kind), l.kind, q)
	if e != nil {
		return e.answer()
	}
	if more {
		s.number(x.call, rows)
	}
	return ok(map[string]any{"object": "list", "url": l.url, "has_more": more, "data": s.views(x.place, rows, q.expand)})
}

// pageOf gives the rows of one page, newest first, and whether there are more in the
// direction of paging.
func (s *Server) pageOf(sh *shelf, k kind, q query) ([]*row, bool, *apiError) {
	cursor, backwards := q.after, false
	if q.before != "" {
		cursor, backwards = q.before, true
	}
	var low, high *row
	if cursor != "" {
		r := sh.byID[cursor]
		switch {
		case r == nil && backwards:
			return nil, false, badCursor(k, cursor, "ending_before")
		case r == nil:
			return nil, false, badCursor(k, cursor, "starting_after")
		case backwards:
			low = r
		default:
			high = r
		}
	}
	low, high = q.created.narrow(low, high)
	rows := sh.narrow(q.refs).between(low, high)
	limit := min(q.limit, s.opt.PageCap)
	var page []*row
	for i := range rows {
		r := rows[len(rows)-1-i]
		if backwards {
			r = rows[i]
		}
		if !q.fits(r) || gone(r.object) || r.at.Add(q.lag).After(q.at) || expired(k, r.at, q.at) {
			continue
		}
		if len(page) == limit {
			return inOrder(page, backwards), true, nil
		}
		page = append(page, r)
	}
	return inOrder(page, backwards), false, nil
}

// badCursor is 400, unlike an id in the path.
func badCursor(k kind, id, param string) *apiError {
	e := missing(k, id, param)
	e.Status = http.StatusBadRequest
	return e
}

func inOrder(page []*row, backwards bool) []*row {
	if backwards {
		slices.Reverse(page)
	}
	return page
}

// narrow moves bounds to the span's, so that a window of a long list costs only itself.
func (sp span) narrow(low, high *row) (*row, *row) {
	if sp.from != nil {
		if r := (&row{at: time.Unix(*sp.from, 0), seq: -1}); low == nil || r.compare(low) > 0 {
			low = r
		}
	}
	if sp.to != nil {
		if r := (&row{at: time.Unix(*sp.to+1, 0), seq: -1}); high == nil || r.compare(high) < 0 {
			high = r
		}
	}
	return low, high
}

// gone reports that an object was deleted: no list shows it any more.
func gone(o object) bool {
	r, ok := o.(*Resource)
	return ok && r.deleted
}

func (q query) fits(r *row) bool {
	if !q.created.holds(r.at) || q.leaves != nil && q.leaves(r.object) {
		return false
	}
	if e, isEvent := r.object.(*Event); isEvent && q.delivered != "" && (q.delivered == "true") != (len(e.owed) == 0) {
		return false
	}
	for name, want := range q.refs {
		if r.object.ref(name) != want {
			return false
		}
	}
	return q.types == nil || slices.ContainsFunc(q.types, func(pattern string) bool {
		return typeFits(pattern, r.object.ref("type"))
	})
}

// listed reports whether the call asks for a page of something.
func (c *Call) listed() bool {
	return c.Method == http.MethodGet && c.Account != "" && c.Endpoint != "" &&
		c.Endpoint != "GET /v1/balance" && !strings.Contains(c.Endpoint, "{")
}

// cursor is where the page that is asked for begins; empty for the first page.
func (c *Call) cursor() string {
	return c.Query.Get("starting_after") + c.Query.Get("ending_before") + c.Query.Get("page")
}

// run names a place in one run through a list, by its filters.
func (c *Call) run(cursor string) string {
	filters := maps.Clone(c.Query)
	for _, name := range []string{"starting_after", "ending_before", "page"} {
		filters.Del(name)
	}
	return c.Account + " " + c.Mode + " " + c.Path + "?" + filters.Encode() + " after " + cursor
}

// number remembers that a page has one after it, so that a fault can strike page N.
func (s *Server) number(c *Call, rows []*row) {
	if len(s.pages) >= maxCalls {
		clear(s.pages) // a bound; runs that are under way count from 1 again
	}
	s.pages[c.run(rows[0].object.id())] = c.Page + 1
	s.pages[c.run(rows[len(rows)-1].object.id())] = c.Page + 1
}

// seconds writes a time as the provider does.
func seconds(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.Unix()
}

// money writes a minor amount for people in an error message.
func money(amount int64, currency string) string {
	return strconv.FormatInt(amount, 10) + " " + currency + " in minor units"
}
