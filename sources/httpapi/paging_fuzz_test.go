package httpapi_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi/httpapitest"
)

// FuzzPaging holds that no answer leads a list to another host, whose key it would be shown,
// nor round and round, and that what a list says to go on with can be gone on with.
func FuzzPaging(f *testing.F) {
	f.Add("cursor", "", `{"data":[],"next":"a"}`)
	f.Add("url", "", `{"data":[],"next":"/v1/effects?after=3"}`)
	f.Add("url", "", `{"data":[],"next":"//elsewhere.example/2"}`)
	f.Add("url", "", `{"data":[],"next":"https://api.example\\@elsewhere.example/"}`)
	f.Add("link", `<https://elsewhere.example/2>; rel="next"`, `{"data":[]}`)
	f.Add("link", `<https://api.example/v1/effects?ids=1,2>; title="a, b"; rel="last next",`, `{"data":[]}`)
	f.Add("page", "", `{"data":[{}],"more":true,"total":9223372036854775807}`)
	f.Add("offset", "", `{"data":[1,2],"total":-1}`)
	now := func() time.Time { return time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC) }
	window := recon.Window{From: now().Add(-2 * time.Hour), To: now()}
	list := sources.List{Kind: "payout", Account: home.Account, Mode: home.Mode}
	f.Fuzz(func(t *testing.T, style, link, body string) {
		paging := httpapi.PagingSettings{Style: style, Param: "p"}
		switch style {
		case "cursor":
			paging.Next = "next"
		case "url":
			paging.Param, paging.Next = "", "next"
		case "link":
			paging.Param = ""
		case "page", "offset":
			paging.More, paging.Total = "more", "total"
		default:
			return
		}
		settings := fake{style: "cursor"}.settingsAt("https://api.example", paging)
		src, err := httpapi.New("fuzz", settings, httpapi.Options{Transport: carrier(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host != "api.example" || r.URL.Scheme != "https" {
				t.Fatalf("asked %s", r.URL)
			}
			w := httptest.NewRecorder()
			w.Header()["Link"] = []string{link}
			_, _ = w.WriteString(body) // a recorder takes everything
			resp := w.Result()
			resp.Request = r
			return resp, nil
		})})
		if err != nil {
			t.Fatal(err)
		}
		cursor := ""
		for range 3 {
			p, err := src.Page(t.Context(), list, window, cursor, now)
			if err != nil {
				t.Fatalf("after %q: %v", cursor, err)
			}
			if p.Look.Outcome == recon.Blind || p.Next == "" {
				return
			}
			if p.Next == cursor {
				t.Fatalf("the list does not move on from %q", cursor)
			}
			cursor = p.Next
		}
	})
}

// settingsAt are those of the fake's format at another address, with another paging.
func (f fake) settingsAt(address string, p httpapi.PagingSettings) httpapi.Settings {
	f.change = func(s *httpapi.Settings) { s.Effects[0].Paging = p }
	f.Server = &httpapitest.Server{Server: &httptest.Server{URL: address}}
	return f.settings()
}

func FuzzACursorIsReadOrRefused(f *testing.F) {
	now := func() time.Time { return time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC) }
	w := recon.Window{From: now().Add(-2 * time.Hour), To: now()}
	l := sources.List{Kind: "payout", Account: home.Account, Mode: home.Mode}
	f.Add(`{"at":{"token":"a","turned":1,"count":2,"oldest":"2026-03-02T09:00:00Z","to":"2026-03-02T09:00:00Z","till":"2026-03-02T10:00:00Z"},` +
		`"list":{"Kind":"payout","Account":"home","Mode":"live"},"window":{"From":"2026-03-02T08:00:00Z","To":"2026-03-02T10:00:00Z"}}`)
	f.Add(`{"at":{"token":"https://elsewhere.example"}}`)
	f.Add(`null`)
	settings := fake{style: "cursor"}.settingsAt("https://api.example", httpapi.PagingSettings{Style: "url", Next: "next"})
	f.Fuzz(func(t *testing.T, cursor string) {
		src, err := httpapi.New("fuzz", settings, httpapi.Options{Transport: carrier(func(r *http.Request) (*http.Response, error) {
			if u, err := url.Parse(r.URL.String()); err != nil || u.Host != "api.example" {
				t.Errorf("a cursor leads to %s", r.URL)
			}
			return nil, errors.New("no network here")
		})})
		if err != nil {
			t.Fatal(err)
		}
		p, err := src.Page(t.Context(), l, w, cursor, now)
		if err != nil {
			return
		}
		if p.Look.Outcome != recon.Blind || p.Next != cursor || p.Look.Window.From.Before(w.From) || p.Look.Window.To.After(w.To) {
			t.Fatalf("without a network the page is %s for %v and leads to %q", p.Look.Outcome, p.Look.Window, p.Next)
		}
	})
}
