package stripe_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

var refundsLive = sources.List{Kind: "refund", Account: "acct_1", Mode: "live"}

// turn reads one page.
func turn(t *testing.T, src *stripe.Source, l sources.List, w recon.Window, cursor string, now func() time.Time) sources.Page {
	t.Helper()
	p, err := src.Page(context.Background(), l, w, cursor, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// whole reads a list to its end and gives the ids, newest first.
func (f fake) whole(t *testing.T, src *stripe.Source, l sources.List, w recon.Window) []string {
	t.Helper()
	var list []string
	for cursor, n := "", 0; n < 1000; n++ {
		p := turn(t, src, l, w, cursor, f.Now)
		if p.Look.Outcome == recon.Blind {
			t.Fatalf("page %d is blind: %s", n+1, p.Look.Detail)
		}
		for _, e := range p.Effects {
			list = append(list, e.ID)
		}
		if cursor = p.Next; cursor == "" {
			return list
		}
	}
	t.Fatal("a list without an end")
	return nil
}

func TestTheListsAreOnePerKindAccountAndMode(t *testing.T) {
	t.Parallel()
	src := open(t, newFake(t).settings(), stripe.Options{})
	want := []sources.List{
		{Kind: "charge", Account: "acct_1", Mode: "live"}, {Kind: "charge", Account: "acct_1", Mode: "test"}, {Kind: "charge", Account: "acct_shop", Mode: "live"},
		{Kind: "refund", Account: "acct_1", Mode: "live"}, {Kind: "refund", Account: "acct_1", Mode: "test"}, {Kind: "refund", Account: "acct_shop", Mode: "live"},
	}
	if diff := cmp.Diff(want, src.Lists([]string{"refund", "charge", "refund", "event", ""})); diff != "" {
		t.Errorf("lists (-want +got):\n%s", diff)
	}
}

func TestB20_AListThatMeetsA429GoesOnAtItsCursor(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	w := recon.Window{From: f.Now()}
	var made []string
	for range 10 {
		made = append(made, f.refund(t, stripetest.Refund{}, ""))
		f.Add(time.Second)
	}
	w.To = f.Now()
	f.Script(stripetest.Fault{Kind: stripetest.RateLimited, Path: "/v1/refunds", Nth: 4, RetryAfter: 7 * time.Second})
	src := open(t, f.settings(), stripe.Options{PageSize: 2})
	var got []string
	cursor := ""
	for range 3 {
		p := turn(t, src, refundsLive, w, cursor, f.Now)
		cursor = p.Next
		for _, e := range p.Effects {
			got = append(got, e.ID)
		}
	}
	broken := turn(t, src, refundsLive, w, cursor, f.Now)
	if broken.Look.Outcome != recon.Blind || broken.Look.Fault != string(sources.RateLimited) || broken.Next != cursor {
		t.Fatalf("the fourth page is %s %q and leads to %q, want blind, rate_limited and its own cursor %q", broken.Look.Outcome, broken.Look.Fault, broken.Next, cursor)
	}
	if again := turn(t, src, refundsLive, w, cursor, f.Now); again.Look.Outcome != recon.Blind || again.Look.Calls != 0 {
		t.Errorf("within the silence that was asked for, the page is %s after %d calls", again.Look.Outcome, again.Look.Calls)
	}
	// The process ends here, and the next one knows only the cursor.
	f.Add(time.Hour)
	f.ResetCalls()
	src = open(t, f.settings(), stripe.Options{PageSize: 2})
	for cursor != "" {
		p := turn(t, src, refundsLive, w, cursor, f.Now)
		if p.Look.Outcome == recon.Blind {
			t.Fatal(p.Look.Detail)
		}
		cursor = p.Next
		for _, e := range p.Effects {
			got = append(got, e.ID)
		}
	}
	slices.Reverse(made)
	if diff := cmp.Diff(made, got); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}
	if n := f.Counts()["GET /v1/refunds"]; n > 3 {
		t.Errorf("%d requests for the two pages that were left", n)
	}
}

func TestB34_AWindowIsHalfOpenToTheSecond(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	day := time.Date(2026, 2, 10, 0, 0, 0, 0, time.UTC)
	at := func(name string, created time.Time) {
		f.refund(t, stripetest.Refund{ID: "re_" + name, Created: created}, "")
	}
	at("eve", day.Add(-time.Second))
	at("midnight", day)
	at("noon", day.Add(13*time.Hour))
	at("last", day.Add(24*time.Hour-time.Second))
	at("next", day.Add(24*time.Hour))
	src := open(t, f.settings(), stripe.Options{PageSize: 2})
	for name, tt := range map[string]struct {
		w    recon.Window
		want []string
	}{
		"one day":                {recon.Window{From: day, To: day.Add(24 * time.Hour)}, []string{"re_last", "re_noon", "re_midnight"}},
		"to the last second":     {recon.Window{From: day, To: day.Add(24*time.Hour - time.Second)}, []string{"re_noon", "re_midnight"}},
		"into the last second":   {recon.Window{From: day, To: day.Add(24*time.Hour - time.Microsecond)}, []string{"re_last", "re_noon", "re_midnight"}},
		"into the next day":      {recon.Window{From: day.Add(13 * time.Hour), To: day.Add(24*time.Hour + 1)}, []string{"re_next", "re_last", "re_noon"}},
		"a fraction of midnight": {recon.Window{From: day.Add(time.Millisecond), To: day.Add(time.Hour)}, []string{"re_midnight"}},
	} {
		if diff := cmp.Diff(tt.want, f.whole(t, src, refundsLive, tt.w)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWindowsThatFollowEachOtherShareNothing(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	from := f.Now()
	for i := range 12 {
		f.refund(t, stripetest.Refund{}, "")
		f.Add(time.Duration(i%3) * time.Second)
	}
	f.Add(time.Minute)
	src := open(t, f.settings(), stripe.Options{PageSize: 3})
	all := f.whole(t, src, refundsLive, recon.Window{From: from, To: f.Now()})
	for edge := from.Add(time.Second); edge.Before(from.Add(13 * time.Second)); edge = edge.Add(time.Second) {
		parts := append(f.whole(t, src, refundsLive, recon.Window{From: edge, To: f.Now()}),
			f.whole(t, src, refundsLive, recon.Window{From: from, To: edge})...)
		if diff := cmp.Diff(all, parts); diff != "" {
			t.Fatalf("cut at %s (-whole +parts):\n%s", edge, diff)
		}
	}
}

func TestAPageThatIsNotWhatWasAskedForIsBlind(t *testing.T) {
	t.Parallel()
	young, old := strings.ReplaceAll(aRefund, "re_1", "re_2"), strings.Replace(aRefund, "1772442000", "1772441000", 1)
	for _, tt := range []struct {
		name, reply string
		want        sources.Kind
	}{
		{"objects out of order", fmt.Sprintf(page, old+","+young), sources.Malformed},
		{"half an object", fmt.Sprintf(page, young+`,{"id":"re_3","object":"refund"}`), sources.Malformed},
		{"an object of another kind", fmt.Sprintf(page, strings.Replace(aRefund, `"refund"`, `"charge"`, 1)), sources.Malformed},
		{"an object of test mode", fmt.Sprintf(page, strings.Replace(aRefund, `"ch_1"`, `{"id":"ch_1","livemode":false}`, 1)), sources.WrongAccount},
		{"more is promised after nothing", strings.Replace(fmt.Sprintf(page, ""), "false", "true", 1), sources.Malformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(tt.reply)) })
			now := newClock().Now
			p := turn(t, open(t, srv.one(), stripe.Options{}), sources.List{Kind: "refund", Account: "default", Mode: "live"},
				recon.Window{From: now().Add(-24 * time.Hour), To: now()}, "", now)
			if p.Look.Outcome != recon.Blind || p.Look.Fault != string(tt.want) || p.Look.Complete {
				t.Errorf("look is %s %q, want blind %s", p.Look.Outcome, p.Look.Fault, tt.want)
			}
		})
	}
}

func TestAListThatDoesNotMoveOnIsBlind(t *testing.T) {
	t.Parallel()
	same := strings.Replace(fmt.Sprintf(page, aRefund), `"has_more":false`, `"has_more":true`, 1)
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(same)) })
	now := newClock().Now
	l, w := sources.List{Kind: "refund", Account: "default", Mode: "live"}, recon.Window{From: now().Add(-24 * time.Hour), To: now()}
	src := open(t, srv.one(), stripe.Options{PageSize: 1})
	first := turn(t, src, l, w, "", now)
	second := turn(t, src, l, w, first.Next, now)
	if second.Look.Outcome != recon.Blind || second.Look.Fault != string(sources.Truncated) || second.Next != first.Next {
		t.Errorf("the second page is %s %q and leads to %q, want blind, truncated and its own cursor", second.Look.Outcome, second.Look.Fault, second.Next)
	}
}

// A customer can be deleted while a list stands at it.
func TestAListWhoseCursorWasDeletedReadsItsSecondAgain(t *testing.T) {
	t.Parallel()
	var asked []string
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		asked = append(asked, q.Get("starting_after")+" "+q.Get("created[lt]"))
		switch {
		case len(asked) == 1:
			_, _ = w.Write([]byte(strings.Replace(fmt.Sprintf(page, aRefund), `"has_more":false`, `"has_more":true`, 1)))
		case q.Get("starting_after") != "":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":{"type":"invalid_request_error","code":"resource_missing","param":"starting_after","message":"No such refund"}}`))
		default:
			_, _ = fmt.Fprintf(w, page, strings.ReplaceAll(aRefund, "re_1", "re_0"))
		}
	})
	now := newClock().Now
	l, w := sources.List{Kind: "refund", Account: "default", Mode: "live"}, recon.Window{From: now().Add(-24 * time.Hour), To: now()}
	src := open(t, srv.one(), stripe.Options{PageSize: 1})
	first := turn(t, src, l, w, "", now)
	second := turn(t, src, l, w, first.Next, now)
	if second.Look.Outcome != recon.Found || len(second.Effects) != 1 || second.Effects[0].ID != "re_0" || second.Next != "" {
		t.Errorf("the page after a deleted object is %+v, want re_0 and the end", second)
	}
	if want := []string{fmt.Sprint(" ", w.To.Unix()), fmt.Sprint("re_1 ", w.To.Unix()), " 1772442001"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
	if !second.Look.Window.To.Equal(first.Look.Window.From) || !second.Look.Window.From.Equal(w.From) || second.Look.Calls != 2 {
		t.Errorf("the second page covers %v after %v, with %d calls", second.Look.Window, first.Look.Window, second.Look.Calls)
	}
}

func TestAListOfAnotherAccountsKeyIsBlind(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/account" {
			_, _ = w.Write([]byte(`{"id":"acct_2","object":"account"}`))
			return
		}
		_, _ = fmt.Fprintf(w, page, "")
	})
	set := srv.one()
	set.Account = "acct_1"
	now := newClock().Now
	p := turn(t, open(t, set, stripe.Options{}), refundsLive, recon.Window{From: now().Add(-time.Hour), To: now()}, "", now)
	if p.Look.Outcome != recon.Blind || p.Look.Fault != string(sources.WrongAccount) {
		t.Errorf("a list with the key of another account is %s %q, want blind wrong_account", p.Look.Outcome, p.Look.Fault)
	}
}

func TestAWindowOfTheFutureIsBlindAndOneThatReachesIntoItEndsNow(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	src := open(t, f.settings(), stripe.Options{})
	p := turn(t, src, refundsLive, recon.Window{From: f.Now().Add(time.Hour), To: f.Now().Add(2 * time.Hour)}, "", f.Now)
	if p.Look.Outcome != recon.Blind || p.Look.Fault != string(sources.OwnBug) || p.Look.Calls != 0 {
		t.Errorf("a window of the future is %s %q after %d calls", p.Look.Outcome, p.Look.Fault, p.Look.Calls)
	}
	f.Add(500 * time.Millisecond)
	p = turn(t, src, refundsLive, recon.Window{From: f.Now().Add(-time.Hour), To: f.Now().Add(time.Hour)}, "", f.Now)
	if want := f.Now().Truncate(time.Second); !p.Look.Window.To.Equal(want) {
		t.Errorf("a window into the future is covered up to %s, want the running second's begin %s", p.Look.Window.To, want)
	}
}

func FuzzACursorIsReadOrRefused(f *testing.F) {
	now := newClock().now
	l, w := refundsLive, recon.Window{From: now.Add(-time.Hour), To: now}
	f.Add(`{"after":"re_1","oldest":"2026-03-02T08:30:00Z","to":"2026-03-02T08:30:01Z","list":{"Kind":"refund","Account":"acct_1","Mode":"live"},"from":"2026-03-02T08:00:00Z","till":"2026-03-02T09:00:00Z"}`)
	f.Add(`{"after":"re_1"}`)
	f.Add(`null`)
	src, err := stripe.New("stripe-main", stripe.Settings{Account: "acct_1", APIKey: recon.NewSecret(liveKey)}, stripe.Options{
		Transport: carrier(func(*http.Request) (*http.Response, error) { return nil, errors.New("no network here") })})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		p, err := src.Page(context.Background(), l, w, cursor, func() time.Time { return now })
		if err != nil {
			return
		}
		if p.Look.Outcome != recon.Blind || p.Next != cursor || p.Look.Window.From.Before(w.From) || p.Look.Window.To.After(w.To) {
			t.Fatalf("without a network the page is %s for %v and leads to %q", p.Look.Outcome, p.Look.Window, p.Next)
		}
	})
}
