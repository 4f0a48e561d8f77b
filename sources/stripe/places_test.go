package stripe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

func TestTheKeysOwnAccountIsAskedOnceAndAnotherOneIsBlind(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		want   recon.Outcome
		fault  sources.Kind
	}{
		{"the right account", 200, `{"id":"acct_1","object":"account"}`, recon.Absent, ""},
		{"another account", 200, `{"id":"acct_2","object":"account","email":"acct_1"}`, recon.Blind, sources.WrongAccount},
		{"a key that may not read its account", 403, `{"error":{"type":"invalid_request_error","code":"more_permissions_required"}}`, recon.Absent, ""},
		{"an account that is not ours to open", 403, `{"error":{"type":"invalid_request_error","code":"account_invalid"}}`, recon.Blind, sources.WrongAccount},
		{"a key that was revoked", 401, `{"error":{"type":"invalid_request_error"}}`, recon.Blind, sources.BadCredentials},
		{"an outage", 503, ``, recon.Blind, sources.Unavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/account" {
					asked++
					w.WriteHeader(tt.status)
					_, _ = w.Write([]byte(tt.body))
					return
				}
				_, _ = fmt.Fprintf(w, page, "")
			})
			set := srv.one()
			set.Account = "acct_1"
			src := open(t, set, stripe.Options{})
			q := question("op-1", newClock().now.Add(-time.Hour))
			for range 2 {
				ans := ask(t, src, q)
				if l := ans.Looks[0]; len(ans.Looks) != 1 || l.Outcome != tt.want || l.Fault != string(tt.fault) {
					t.Errorf("looks %+v, want one, %s %q", ans.Looks, tt.want, tt.fault)
				}
			}
			if known := tt.status == 200 || tt.want == recon.Absent; known && asked != 1 {
				t.Errorf("asked %d times for the account, want once", asked)
			}
		})
	}
}

func TestAConnectedAccountIsAskedWithItsHeader(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	id := f.refund(t, stripetest.Refund{Account: "acct_shop", Mode: "live"}, "op-1")
	q := question("op-1", f.Now().Add(-time.Hour))
	q.Account = "acct_shop"
	src := open(t, f.settings(), stripe.Options{})
	for _, effectID := range []string{"", id} {
		q.EffectID = effectID
		if got := f.asks(t, src, q); !slices.Equal(ids(got), []string{id}) || got.Effects[0].Account != "acct_shop" {
			t.Errorf("found %+v, want %s of acct_shop", got.Effects, id)
		}
	}
	q.Account = "acct_1"
	if got := f.asks(t, src, q); len(got.Effects) != 0 {
		t.Errorf("the platform shows %v, which is its connected account's", ids(got))
	}
}

func TestRequestsAreToldToTheObserver(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.Script(stripetest.Fault{Kind: stripetest.RateLimited, Path: "/v1/refunds", Nth: 2})
	got := map[string]int{}
	src := open(t, f.settings(), stripe.Options{OnRequest: func(endpoint, code string) { got[endpoint+" "+code]++ }})
	for range 2 {
		f.asks(t, src, question("op-1", f.Now().Add(-time.Hour)))
	}
	want := map[string]int{"GET /v1/account 403": 1, "GET /v1/refunds 200": 1, "GET /v1/refunds 429": 1}
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%s: %d, want %d (all: %v)", name, got[name], n, got)
		}
	}
}

// carrier is a transport in this process, so that only our own budget takes time.
type carrier func(*http.Request) (*http.Response, error)

func (c carrier) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

func TestOurOwnBudgetIsBlindAndNoError(t *testing.T) {
	t.Parallel()
	set := stripe.Settings{APIKey: recon.NewSecret(liveKey), PerSecond: 1}
	src := open(t, set, stripe.Options{Transport: carrier(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(aRefund)), Request: r}, nil
	})})
	first, second := ways()["by id"].question, ways()["by id"].question
	second.EffectID = "re_2"
	ctx, cancel := context.WithTimeout(context.Background(), 900*time.Millisecond)
	defer cancel()
	ans, err := src.Ask(ctx, []sources.Question{first, second}, newClock().Now)
	if err != nil {
		t.Fatalf("Ask: %v", err)
	}
	last := ans.Looks[len(ans.Looks)-1]
	if ans.Looks[0].Outcome != recon.Found || last.Outcome != recon.Blind || last.Fault != string(sources.RateLimited) {
		t.Errorf("looks %+v; one request a second is allowed, so the second question is blind as rate_limited", ans.Looks)
	}
	var told *sources.Error
	if err := src.Probe(ctx); !errors.As(err, &told) || told.Kind != sources.RateLimited {
		t.Errorf("Probe gives %v, want rate_limited", err)
	}
}

func TestAListThatIsNotWhatWasAskedForIsBlind(t *testing.T) {
	t.Parallel()
	older, younger := strings.Replace(aRefund, "1772442000", "1772441000", 1), strings.Replace(aRefund, "re_1", "re_2", 1)
	tests := []struct {
		name, way, reply string
	}{
		{"objects out of order, so that no range is complete", "in the window", fmt.Sprintf(page, older+","+younger)},
		{"an object of another parent", "by parent", fmt.Sprintf(page, strings.Replace(aRefund, "ch_1", "ch_2", 1))},
		{"another object than the one asked for", "by id", strings.Replace(aRefund, "re_1", "re_9", 1)},
		{"an object of another kind", "by id", strings.Replace(aRefund, `"refund"`, `"charge"`, 1)},
		{"the same page again and again", "by parent", strings.Replace(fmt.Sprintf(page, aRefund), `"has_more":false`, `"has_more":true`, 1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(tt.reply)) })
			ans := ask(t, open(t, srv.one(), stripe.Options{}), ways()[tt.way].question)
			l := ans.Looks[len(ans.Looks)-1]
			if l.Outcome != recon.Blind || l.Fault != string(sources.Malformed) && l.Fault != string(sources.Truncated) {
				t.Errorf("look is %s %q, want blind", l.Outcome, l.Fault)
			}
			if n := srv.hits.Load(); n > 2 {
				t.Errorf("%d requests for a list that leads nowhere", n)
			}
		})
	}
}

func TestAnEventOfAnotherModeAccountOrKindNamesNoEffect(t *testing.T) {
	t.Parallel()
	const good = `{"id":"evt_1","object":"event","type":"refund.created","created":1772442000,"livemode":true,"account":"acct_1",` +
		`"request":{"id":"req_1","idempotency_key":"k"},"data":{"object":{"id":"re_1","object":"refund"}}}`
	tests := []struct {
		name, event string
		found       bool
	}{
		{"our own event", good, true},
		{"an event of the platform itself, which names no account", strings.Replace(good, `"account":"acct_1",`, "", 1), true},
		{"of test mode", strings.Replace(good, `"livemode":true`, `"livemode":false`, 1), false},
		{"of another account", strings.Replace(good, "acct_1", "acct_2", 1), false},
		{"of another kind of object", strings.Replace(good, `"object":"refund"`, `"object":"charge"`, 1), false},
		{"of another key", strings.Replace(good, `"k"`, `"K"`, 1), false},
		{"of no request", strings.Replace(good, `{"id":"req_1","idempotency_key":"k"}`, "null", 1), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/v1/account":
					_, _ = io.WriteString(w, `{"id":"acct_1","object":"account"}`)
				case "/v1/events":
					_, _ = fmt.Fprintf(w, page, tt.event)
				case "/v1/refunds/re_1":
					_, _ = io.WriteString(w, aRefund)
				default:
					_, _ = fmt.Fprintf(w, page, "")
				}
			})
			set := srv.one()
			set.Account = "acct_1"
			q := question("op-1", newClock().now.Add(-time.Hour))
			q.Key, q.Marks = "k", []recon.Mark{recon.MarkKey}
			ans := ask(t, open(t, set, stripe.Options{}), q)
			l := ans.Looks[len(ans.Looks)-1]
			if l.Method != recon.ByKey || l.Key != "k" || (l.Outcome == recon.Found) != tt.found || l.Outcome == recon.Blind {
				t.Errorf("look %+v, want by_key with found %t", l, tt.found)
			}
			if got := len(ans.Effects) == 1 && ans.Effects[0].Key == "k"; got != tt.found {
				t.Errorf("effects %+v, want one with the key: %t", ans.Effects, tt.found)
			}
		})
	}
}
