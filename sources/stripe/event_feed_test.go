package stripe_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

const day = 24 * time.Hour

var home = recon.Account{Account: "acct_1", Mode: "live"}

// feed reads a feed to its end, and gives its events and the looks of its pages.
func (f fake) feed(t *testing.T, src *stripe.Source, at recon.Account, w recon.Window) (events []recon.Event, looks []recon.Look) {
	t.Helper()
	for cursor, n := "", 0; n < 100; n++ {
		p, err := src.Events(context.Background(), at, w, cursor, f.Now)
		if err != nil {
			t.Fatal(err)
		}
		events, looks = append(events, p.Events...), append(looks, p.Look)
		if cursor = p.Next; cursor == "" {
			return events, looks
		}
	}
	t.Fatal("a feed without an end")
	return nil, nil
}

func TestB51_AnOutageOfFiveDaysIsRecoveredFromTheListOfEvents(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close() // nobody listens there
	if _, err := b.AddEndpoint(stripetest.Endpoint{URL: away.URL, Account: "acct_1", Mode: "live", Secrets: []string{hookSecret}}); err != nil {
		t.Fatal(err)
	}
	began := b.Now()
	for i := range 5 {
		b.refund(t, stripetest.Refund{ID: fmt.Sprint("re_", i), Amount: 100 + int64(i), Key: fmt.Sprint("k-", i)})
		b.Add(day)
		b.post(t)
	}
	for _, d := range b.Deliveries() {
		if d.URL == away.URL && d.Taken() {
			t.Fatal("somebody listens")
		}
	}
	events, looks := b.feed(t, b.src, home, recon.Window{From: began.Add(-time.Minute), To: b.Now()})
	delivered := b.taken()
	if len(events) != 10 || len(delivered) != 10 || len(looks) != 1 || looks[0].Outcome != recon.Found || !looks[0].Window.From.Equal(began.Add(-time.Minute)) {
		t.Fatalf("%d events listed, %d delivered, looks %+v", len(events), len(delivered), looks)
	}
	// What is listed is what the other endpoint got, newest first.
	for i, e := range events {
		d := delivered[len(delivered)-1-i]
		if e.ID != d.ID || e.Type != d.Type || !e.Signed || !e.CreatedAt.Equal(d.CreatedAt) || e.Account != d.Account || e.Mode != d.Mode || e.System != d.System {
			t.Errorf("event %d: listed %+v, delivered %+v", i, e, d)
		}
		if diff := cmp.Diff(decode(t, b.src, d), decode(t, b.src, e)); diff != "" {
			t.Errorf("event %s shows (-delivered +listed):\n%s", e.ID, diff)
		}
	}
}

func TestB51_WhatLiesBeforeThirtyDaysHasNoEventsAndIsSaidToBeUnseen(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	src := open(t, f.settings(), stripe.Options{})
	began := f.Now()
	for i := range 40 {
		if _, err := f.AddRefund(stripetest.Refund{ID: fmt.Sprint("re_", i), Account: "acct_1", Mode: "live", Charge: "ch_1", Amount: 100}); err != nil {
			t.Fatal(err)
		}
		f.Add(day)
	}
	events, looks := f.feed(t, src, home, recon.Window{From: began, To: f.Now()})
	last := looks[len(looks)-1]
	if want := f.Now().Add(-30*day + time.Second); !last.Window.From.Equal(want) || last.Outcome == recon.Blind {
		t.Errorf("the feed answers from %s, %s; want from %s on", last.Window.From, last.Outcome, want)
	}
	if len(events) < 58 || len(events) > 60 {
		t.Errorf("%d events, want those of 30 days", len(events))
	}
	old, err := src.Events(context.Background(), home, recon.Window{From: began, To: began.Add(9 * day)}, "", f.Now)
	if err != nil || old.Look.Outcome != recon.Blind || old.Look.Fault != string(sources.Unsupported) || old.Look.Calls != 0 ||
		!old.Look.Window.From.Equal(began) || !old.Look.Window.To.Equal(began.Add(9*day)) {
		t.Errorf("a window of long ago: %+v, %v", old.Look, err)
	}
	// Listing the objects brings what the events cannot.
	if ids := f.whole(t, src, refundsLive, recon.Window{From: began, To: f.Now()}); len(ids) != 40 {
		t.Errorf("%d refunds are listed, want 40", len(ids))
	}
}

func TestTheFeedOfAConnectedAccountIsItsOwn(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	src := open(t, f.settings(), stripe.Options{PageSize: 1})
	began := f.Now()
	for _, at := range src.Feeds() {
		if _, err := f.AddRefund(stripetest.Refund{Account: at.Account, Mode: at.Mode, Charge: "ch_1", Amount: 100}); err != nil {
			t.Fatal(err)
		}
	}
	f.Add(time.Minute)
	for _, at := range src.Feeds() {
		events, looks := f.feed(t, src, at, recon.Window{From: began, To: f.Now()})
		if len(events) != 2 || len(looks) != 2 {
			t.Errorf("%v: %d events in %d pages, want 2", at, len(events), len(looks))
		}
		for _, e := range events {
			if e.Account != at.Account || e.Mode != at.Mode {
				t.Errorf("event %s of %v is of %s %s", e.ID, at, e.Account, e.Mode)
			}
		}
	}
}

// odd serves one page of events.
func oddFeed(t *testing.T, page string) sources.EventPage {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/account" {
			_, _ = w.Write([]byte(`{"id":"acct_1","object":"account"}`))
			return
		}
		_, _ = w.Write([]byte(page))
	}))
	t.Cleanup(srv.Close)
	src := open(t, stripe.Settings{Account: "acct_1", APIKey: recon.NewSecret(liveKey), APIURL: srv.URL}, stripe.Options{})
	p, err := src.Events(context.Background(), home, recon.Window{From: now.Add(-day), To: now}, "", func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAFeedThatIsNotUnderstoodIsBlind(t *testing.T) {
	t.Parallel()
	item := func(id string, created int, rest string) string {
		return fmt.Sprintf(`{"id":%q,"object":"event","type":"refund.created","created":%d%s}`, id, created, rest)
	}
	at := int(now.Unix())
	page := func(more string, items ...string) string {
		list := ""
		for i, it := range items {
			if i > 0 {
				list += ","
			}
			list += it
		}
		return `{"object":"list","has_more":` + more + `,"data":[` + list + `]}`
	}
	for name, tt := range map[string]struct {
		page   string
		want   sources.Kind // empty: it is read
		events int
	}{
		"read":                     {page("false", item("evt_2", at-1, ""), item("evt_1", at-2, "")), "", 2},
		"a request of before 2017": {page("false", item("evt_2", at-1, `,"request":"req_1"`)), "", 1},
		"without an id":            {page("false", item("", at-1, "")), sources.Malformed, 0},
		"without a time":           {page("false", item("evt_1", 0, "")), sources.Malformed, 0},
		"out of order":             {page("false", item("evt_1", at-2, ""), item("evt_2", at-1, "")), sources.Malformed, 0},
		"of another mode":          {page("false", item("evt_1", at-2, `,"livemode":false`)), sources.WrongAccount, 0},
		"the window is ignored":    {page("true", item("evt_3", at+5, ""), item("evt_2", at-1, ""), item("evt_1", at-90_000, "")), "", 1},
		"more and no event":        {page("true"), sources.Malformed, 0},
	} {
		p := oddFeed(t, tt.page)
		if p.Look.Fault != string(tt.want) || len(p.Events) != tt.events || (p.Look.Outcome == recon.Blind) != (tt.want != "") {
			t.Errorf("%s: %d events, look %+v", name, len(p.Events), p.Look)
		}
	}
}
