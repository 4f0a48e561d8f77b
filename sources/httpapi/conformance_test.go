package httpapi_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi/httpapitest"
	"github.com/seed-1c4f4dc2/reconciler/sources/sourcetest"
)

var (
	home = recon.Account{Account: "shop", Mode: "live"}
	away = recon.Account{Account: "shop", Mode: "test"}
)

const (
	homeToken = "TESTONLY_live"
	awayToken = "TESTONLY_test"
)

// clock is a simulated clock.
type clock struct {
	mu  sync.Mutex // guards now: the fake's goroutines read it
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fake is the fake API on a clock of its own.
type fake struct {
	*clock
	*httpapitest.Server
	hanging *hanging
	style   string
	change  func(*httpapi.Settings)
}

func newFake(t *testing.T, style string, change func(*httpapi.Settings)) fake {
	t.Helper()
	c := &clock{now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	f := fake{clock: c, Server: httpapitest.Start(c.Now, style, 50), hanging: &hanging{waiting: map[*http.Request]context.CancelCauseFunc{}}, style: style, change: change}
	f.OnHang(func(*http.Request) { f.hanging.giveUp() })
	t.Cleanup(f.Close)
	return f
}

// settings are those of the fake, with every look-up but those by reference and key, so
// that a list is asked for what has no id and no parent.
func (f fake) settings() httpapi.Settings {
	e := httpapi.EffectSettings{
		Kind: "payout", Unit: "major",
		Fields: httpapi.FieldSettings{
			ID: "id", CreatedAt: "created", Status: "state", Amount: "total.value", Currency: "total.currency", Parent: "order",
			Reference: "meta.{marker}", Key: "idempotency_key",
		},
		Statuses: map[string]string{"done": "completed", "undone": "reversed", "open": "in_flight"},
		ByID:     httpapi.LookupSettings{Path: "/effects/{id}", Consistency: "strong", NotFound: httpapi.NotFoundSettings{Status: 404, Path: "error", Equals: "no_such_effect"}},
		ByParent: httpapi.LookupSettings{Path: "/effects", Query: map[string]string{"order": "{parent}"}, Items: "data", Consistency: "strong", NotFound: httpapi.NotFoundSettings{Empty: true}},
		List: httpapi.LookupSettings{
			Path: "/effects", Items: "data", Consistency: "strong", Order: "newest",
			Since: httpapi.BoundSettings{Param: "since", Format: "unix"}, Until: httpapi.BoundSettings{Param: "until", Format: "unix"},
		},
		Paging: pagingOf(f.style),
	}
	s := httpapi.Settings{
		APIURL: f.URL + "/v1", PerSecond: 100_000, Effects: []httpapi.EffectSettings{e},
		Accounts: []httpapi.AccountSettings{
			{Account: home.Account, Mode: home.Mode, Auth: httpapi.AuthSettings{Token: recon.NewSecret(homeToken)}},
			{Account: away.Account, Mode: away.Mode, Auth: httpapi.AuthSettings{Token: recon.NewSecret(awayToken)}},
		},
	}
	if f.change != nil {
		f.change(&s)
	}
	return s
}

func pagingOf(style string) httpapi.PagingSettings {
	p := httpapi.PagingSettings{Style: style, SizeParam: "limit"}
	switch style {
	case "page", "offset":
		p.Param, p.Total = "at", "page.total"
	case "cursor":
		p.Param, p.Next = "after", "page.next"
	case "url":
		p.Next, p.More = "page.next", "page.more"
	}
	return p
}

func (f fake) open(t *testing.T, o httpapi.Options) *httpapi.Source {
	t.Helper()
	if o.Transport == nil {
		o.Transport = f
	}
	src, err := httpapi.New("shop-api", f.settings(), o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func (f fake) Source(t *testing.T, pageSize int) sources.Source {
	return f.open(t, httpapi.Options{PageSize: pageSize})
}

func (f fake) Make(_ *testing.T, e sourcetest.Effect) string {
	token := homeToken
	if e.At == away {
		token = awayToken
	}
	o := httpapitest.Object{Token: token, Reference: e.Reference, Key: e.Key, Parent: e.Parent, Currency: e.Money.Currency}
	o.Amount = fmt.Sprintf("%d.%02d", e.Money.Minor/100, e.Money.Minor%100)
	return f.Server.Make(o)
}

func (f fake) FailLate(_ *testing.T, _ sourcetest.Effect, id string) { f.SetState(id, "undone") }

func (f fake) Break(fault sourcetest.Fault, good int) { f.Server.Break(httpapitest.Fault(fault), good) }

// bare keeps no connections.
var bare = &http.Transport{DisableKeepAlives: true}

// RoundTrip carries a request to the fake.
func (f fake) RoundTrip(r *http.Request) (*http.Response, error) { return f.hanging.watch(r) }

// hanging plays the time-outs of a client whose provider hangs: it gives a request up soon
// after the fake let it hang, and no other one, however loaded the machine is.
type hanging struct {
	mu      sync.Mutex
	waiting map[*http.Request]context.CancelCauseFunc
}

func (h *hanging) watch(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	h.mu.Lock()
	h.waiting[r] = cancel
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting, r)
	}()
	resp, err := bare.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was read to its end, or broke off
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), broken{err}))
	return resp, nil
}

func (h *hanging) giveUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, cancel := range h.waiting {
		time.AfterFunc(60*time.Millisecond, func() { cancel(context.DeadlineExceeded) })
	}
}

// broken is what comes after the part of a body that came: its fault, or the end.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	return 0, io.EOF
}

func TestConformance(t *testing.T) {
	for _, style := range []string{"page", "offset", "cursor", "url", "link"} {
		t.Run(style, func(t *testing.T) {
			exercise(t, style, nil)
		})
	}
	t.Run("by reference and key", func(t *testing.T) {
		exercise(t, "cursor", func(s *httpapi.Settings) {
			empty := httpapi.NotFoundSettings{Empty: true}
			s.Effects[0].ByReference = httpapi.LookupSettings{Path: "/effects", Query: map[string]string{"external_id": "{reference}"}, Items: "data", Consistency: "strong", NotFound: empty}
			s.Effects[0].ByKey = httpapi.LookupSettings{Path: "/effects", Query: map[string]string{"key": "{key}"}, Items: "data", Consistency: "strong", NotFound: empty}
		})
	})
}

func exercise(t *testing.T, style string, change func(*httpapi.Settings)) {
	sourcetest.Exercise(t, sourcetest.Harness{
		Open: func(t *testing.T) sourcetest.Provider { return newFake(t, style, change) },
		Kind: "payout", Home: home, Away: away, Stranger: recon.Account{Account: "other", Mode: "live"},
		Parent: func(n int) string { return fmt.Sprintf("ord_%d", n) }, Currency: "EUR",
	})
}
