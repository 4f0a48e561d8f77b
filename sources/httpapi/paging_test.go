package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi/httpapitest"
)

// canned serves the pages of a list as they are written, the address that is asked in their
// place of "HERE".
func canned(t *testing.T, pages ...string) *httptest.Server {
	t.Helper()
	n := 0
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		page := pages[min(n, len(pages)-1)]
		n++
		link, body, _ := strings.Cut(page, "|")
		if link != "" {
			w.Header().Set("Link", strings.ReplaceAll(link, "HERE", srv.URL))
		}
		_, _ = w.Write([]byte(strings.ReplaceAll(body, "HERE", srv.URL))) // the client may be gone
	}))
	t.Cleanup(srv.Close)
	return srv
}

// object writes an object of the fake's format, made some seconds after nine.
func object(second int) string {
	b, _ := json.Marshal(map[string]any{ // cannot fail: texts
		"id": fmt.Sprintf("ef_%d", second), "created": fmt.Sprintf("2026-03-02T09:00:%02dZ", second), "state": "done",
		"total": map[string]any{"value": "1", "currency": "EUR"}, "meta": nil, "idempotency_key": nil,
	})
	return string(b)
}

func list(rest string, seconds ...int) string {
	var items []string
	for _, s := range seconds {
		items = append(items, object(s))
	}
	return `|{"data":[` + strings.Join(items, ",") + `]` + rest + `}`
}

func TestListsThatCannotBeTrustedAreBlind(t *testing.T) {
	for name, test := range map[string]struct {
		paging httpapi.PagingSettings
		pages  []string
		want   sources.Kind // empty: read to its end
	}{
		"the next cursor is gone":              {httpapi.PagingSettings{Style: "cursor", Param: "c", Next: "next"}, []string{list("", 3)}, sources.Truncated},
		"a cursor that may be gone":            {httpapi.PagingSettings{Style: "cursor", Param: "c", Next: "next", MayMiss: true}, []string{list("", 3)}, ""},
		"a cursor that is null":                {httpapi.PagingSettings{Style: "cursor", Param: "c", Next: "next"}, []string{list(`,"next":"a"`, 3), list(`,"next":null`, 2)}, ""},
		"the same cursor again":                {httpapi.PagingSettings{Style: "cursor", Param: "c", Next: "next"}, []string{list(`,"next":"a"`, 3)}, sources.Truncated},
		"more without a cursor":                {httpapi.PagingSettings{Style: "cursor", Param: "c", Next: "next", More: "more"}, []string{list(`,"next":null,"more":true`, 3)}, sources.Truncated},
		"no word of more":                      {httpapi.PagingSettings{Style: "page", Param: "p", More: "more"}, []string{list("", 3)}, sources.Truncated},
		"more after an empty page":             {httpapi.PagingSettings{Style: "page", Param: "p", More: "more"}, []string{list(`,"more":true`)}, sources.Truncated},
		"fewer than it tells":                  {httpapi.PagingSettings{Style: "page", Param: "p", Total: "total"}, []string{list(`,"total":3`, 3), list(`,"total":3`)}, sources.Truncated},
		"no number":                            {httpapi.PagingSettings{Style: "page", Param: "p", Total: "total"}, []string{list("", 3)}, sources.Truncated},
		"it becomes shorter":                   {httpapi.PagingSettings{Style: "offset", Param: "o", Total: "total"}, []string{list(`,"total":3`, 3), list(`,"total":2`, 1)}, sources.Truncated},
		"a short page is not the end":          {httpapi.PagingSettings{Style: "page", Param: "p"}, []string{list("", 3, 2), list("", 1), list("")}, ""},
		"out of order":                         {httpapi.PagingSettings{Style: "none"}, []string{list("", 2, 3)}, sources.Malformed},
		"out of order from page to page":       {httpapi.PagingSettings{Style: "cursor", Param: "c", Next: "next"}, []string{list(`,"next":"a"`, 2), list(`,"next":null`, 3)}, sources.Malformed},
		"pages by number that slip":            {httpapi.PagingSettings{Style: "page", Param: "p"}, []string{list("", 3, 2), list("", 3, 2), list("", 1), list("")}, ""},
		"the address of another host":          {httpapi.PagingSettings{Style: "url", Next: "next"}, []string{list(`,"next":"https://elsewhere.example/2"`, 3)}, sources.Truncated},
		"an address without a host":            {httpapi.PagingSettings{Style: "url", Next: "next"}, []string{list(`,"next":"/v1/effects?after=3"`, 3), list(`,"next":""`, 2)}, ""},
		"a link to another host":               {httpapi.PagingSettings{Style: "link"}, []string{`<https://elsewhere.example/2>; rel="next"` + list("", 3)}, sources.Truncated},
		"a link":                               {httpapi.PagingSettings{Style: "link"}, []string{`<HERE/v1/effects?b=2>; rel="next"` + list("", 3), `<HERE/v1/effects>; rel="first"` + list("", 2)}, ""},
		"a link with commas":                   {httpapi.PagingSettings{Style: "link"}, []string{`<HERE/v1/effects?ids=1,2>; title="a, b"; rel="last next",` + list("", 3), list("", 2)}, ""},
		"a link that cannot be read":           {httpapi.PagingSettings{Style: "link"}, []string{`HERE/v1/effects?b=2; rel="next"` + list("", 3)}, sources.Truncated},
		"an object of another kind of JSON":    {httpapi.PagingSettings{Style: "none"}, []string{`|{"data":[1]}`}, sources.Malformed},
		"a list that became an object":         {httpapi.PagingSettings{Style: "none"}, []string{`|{"data":{}}`}, sources.Malformed},
		"two values where there should be one": {httpapi.PagingSettings{Style: "none"}, []string{`|{"data":[]}{"data":[]}`}, sources.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			srv := canned(t, test.pages...)
			f := newFake(t, "cursor", func(s *httpapi.Settings) {
				s.APIURL = srv.URL + "/v1"
				s.Effects[0].Paging, s.Effects[0].Fields.Parent = test.paging, ""
				s.Effects[0].ByParent = httpapi.LookupSettings{}
			})
			f.Advance(time.Minute)
			q := f.question(func(q *sources.Question) { q.From = f.Now().Add(-time.Minute) })
			ans := f.ask(t, q)
			last := ans.Looks[len(ans.Looks)-1]
			covers := last.Covers(recon.Operation{ID: q.Operation, Account: home.Account, Mode: home.Mode, SentAt: q.From.Add(recon.ClockSkew)}, "payout")
			switch {
			case test.want == "" && (last.Outcome == recon.Blind || !covers):
				t.Errorf("look is %s %q (%s), want the whole list", last.Outcome, last.Fault, last.Detail)
			case test.want != "" && (last.Outcome != recon.Blind || last.Fault != string(test.want)):
				t.Errorf("look is %s %q (%s), want blind %q", last.Outcome, last.Fault, last.Detail, test.want)
			}
			for _, l := range ans.Looks[:len(ans.Looks)-1] {
				if l.Covers(recon.Operation{ID: q.Operation, Account: home.Account, Mode: home.Mode, SentAt: q.From.Add(recon.ClockSkew)}, "payout") {
					t.Errorf("a list that broke off answers for what it did not reach: %+v", l)
				}
			}
		})
	}
}

// readAll reads the home list to its end in pages of a size.
func (f fake) readAll(t *testing.T, w recon.Window, size int) (ids map[string]int, last recon.Look) {
	t.Helper()
	src, cursor := f.open(t, httpapi.Options{PageSize: size}), ""
	ids = map[string]int{}
	for range 100 {
		p, err := src.Page(t.Context(), sources.List{Kind: "payout", Account: home.Account, Mode: home.Mode}, w, cursor, f.Now)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range p.Effects {
			ids[e.ID]++
		}
		if last = p.Look; p.Next == "" || last.Outcome == recon.Blind {
			return ids, last
		}
		if !f.oldestFirst() && last.Window.From.Equal(w.From) {
			t.Errorf("a page that is not the last covers the whole window")
		}
		cursor = p.Next
	}
	t.Fatal("the list has no end")
	return nil, last
}

func (f fake) oldestFirst() bool { return f.settings().Effects[0].List.Order == "oldest" }

func TestAListOfOldestFirstAnswersAtItsEnd(t *testing.T) {
	f := newFake(t, "cursor", func(s *httpapi.Settings) { s.Effects[0].List.Order = "oldest" })
	f.OldestFirst()
	w := recon.Window{From: f.Now()}
	for range 7 {
		f.make("")
		f.Advance(time.Second)
	}
	w.To = f.Now()
	f.make("") // after the window
	ids, last := f.readAll(t, w, 2)
	if len(ids) != 7 || last.Outcome == recon.Blind || !last.Window.From.Equal(w.From) || !last.Window.To.Equal(w.To) {
		t.Errorf("%d effects, and the last page covers %v; want 7 and %v", len(ids), last.Window, w)
	}
}

func TestAListBeginsAnewWhereTheProviderShowsNoMore(t *testing.T) {
	reach := func(s *httpapi.Settings) { s.Effects[0].Paging.Size, s.Effects[0].Paging.Reach = 3, 6 }
	f := newFake(t, "offset", reach)
	w := recon.Window{From: f.Now()}
	for range 40 {
		f.make("")
		f.Advance(time.Second)
	}
	w.To = f.Now()
	ids, last := f.readAll(t, w, 3)
	if len(ids) != 40 || last.Outcome == recon.Blind {
		t.Errorf("%d effects, last look %s (%s); want 40", len(ids), last.Outcome, last.Detail)
	}
	// More objects in one second than it shows: nobody can tell what else there is.
	f = newFake(t, "offset", reach)
	w.From = f.Now()
	for range 12 {
		f.make("")
	}
	f.Advance(time.Minute)
	w.To = f.Now()
	if _, last := f.readAll(t, w, 3); last.Outcome != recon.Blind || last.Fault != string(sources.Truncated) {
		t.Errorf("last look is %s %q, want blind truncated", last.Outcome, last.Fault)
	}
}

func TestAListWithoutBoundsIsReadBackToTheWindow(t *testing.T) {
	f := newFake(t, "cursor", func(s *httpapi.Settings) {
		s.Effects[0].List.Since, s.Effects[0].List.Until = httpapi.BoundSettings{}, httpapi.BoundSettings{}
	})
	for range 5 {
		f.make("")
		f.Advance(time.Second)
	}
	w := recon.Window{From: f.Now(), To: f.Now().Add(3 * time.Second)}
	for range 5 {
		f.make("")
		f.Advance(time.Second)
	}
	before, _ := f.Requests()
	ids, last := f.readAll(t, w, 2)
	after, _ := f.Requests()
	if len(ids) != 3 || !last.Window.From.Equal(w.From) || after-before > 4 {
		t.Errorf("%d effects in %d requests, the last covers %v; want 3 in at most 4", len(ids), after-before, last.Window)
	}
}

// B104: three decimals, whatever zeros the provider writes; nothing is rounded.
func TestB104_DecimalsAreThoseOfTheCurrency(t *testing.T) {
	f := newFake(t, "cursor", nil)
	id := f.Server.Make(httpapitest.Object{Token: homeToken, Amount: "5.120", Currency: "kwd"})
	if e := f.ask(t, f.question(withID(id))).Effects[0]; e.Money != (recon.Money{Minor: 5120, Currency: "KWD"}) {
		t.Errorf("money is %v, want 5120 KWD", e.Money)
	}
}

// B108: what hangs under a parent is told once each, and the parent's own amount is not theirs.
func TestB108_ChildrenAreToldOnceEach(t *testing.T) {
	f := newFake(t, "page", nil)
	for _, amount := range []string{"4.50", "4.50"} {
		f.Server.Make(httpapitest.Object{Token: homeToken, Parent: "ord_1", Amount: amount, Currency: "EUR"})
	}
	src := f.open(t, httpapi.Options{PageSize: 1})
	q := f.question(func(q *sources.Question) { q.Parent = "ord_1" })
	ans, err := src.Ask(t.Context(), []sources.Question{q, q}, f.Now)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, e := range ans.Effects {
		sum += e.Money.Minor
	}
	if len(ans.Effects) != 2 || sum != 900 {
		t.Errorf("%d effects of %d in all, want 2 of 900", len(ans.Effects), sum)
	}
}
