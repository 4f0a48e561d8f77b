package stripetest_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

func TestAnObjectIsThereOnlyInItsAccountAndMode(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	if _, err := srv.AddRefund(stripetest.Refund{ID: "re_A", Account: "acct_1", Mode: "live", Charge: "ch_A", Amount: 100}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{fullKey: 200, readKey: 200, testKey: 404, otherKey: 404} {
		got := get(t, srv, key, "/v1/refunds/re_A")
		if got.status != want {
			t.Errorf("%s: %d, want %d", key, got.status, want)
		}
		if want == 404 {
			if e := got.errorOf(t); e.Code != "resource_missing" || e.Param != "id" {
				t.Errorf("%s: %+v", key, e)
			}
		}
		list := get(t, srv, key, "/v1/refunds")
		if there := strings.Contains(string(list.body), "re_A"); there != (want == 200) {
			t.Errorf("%s: listed = %v", key, there)
		}
	}
}

func TestOnlyAKnownKeyOpens(t *testing.T) {
	t.Parallel()
	const eventsKey, idleKey = "rk_live_events_0005", "rk_live_idle_0006"
	srv, _ := start(t, func(o *stripetest.Options) { o.Accounts[0].EventsKey, o.Accounts[0].IdleKey = eventsKey, idleKey })
	charged(t, srv, "ch_A", 500)
	tests := []struct {
		name, method, path string
		header             http.Header
		status             int
		code               string
	}{
		{"no key", "GET", "/v1/refunds", http.Header{}, 401, ""},
		{"an unknown key", "GET", "/v1/refunds", http.Header{"Authorization": {"Bearer sk_live_nobodys_9999"}}, 401, ""},
		{"a key by basic authentication", "GET", "/v1/refunds", http.Header{"Authorization": {"Basic c2tfbGl2ZV9mdWxsXzAwMDE6"}}, 200, ""},
		{"a restricted key that reads", "GET", "/v1/balance", http.Header{"Authorization": {"Bearer " + readKey}}, 200, ""},
		{"a restricted key that writes", "POST", "/v1/refunds", http.Header{"Authorization": {"Bearer " + readKey}}, 403, ""},
		{"a restricted key that asks whose it is", "GET", "/v1/account", http.Header{"Authorization": {"Bearer " + readKey}}, 403, ""},
		{"a key for events that lists them", "GET", "/v1/events", http.Header{"Authorization": {"Bearer " + eventsKey}}, 200, ""},
		{"a key for events that lists objects", "GET", "/v1/refunds", http.Header{"Authorization": {"Bearer " + eventsKey}}, 403, ""},
		{"a key for events that reads an object", "GET", "/v1/charges/ch_A", http.Header{"Authorization": {"Bearer " + eventsKey}}, 403, ""},
		{"a key for events that writes", "POST", "/v1/refunds", http.Header{"Authorization": {"Bearer " + eventsKey}}, 403, ""},
		{"a key for nothing that lists events", "GET", "/v1/events", http.Header{"Authorization": {"Bearer " + idleKey}}, 403, ""},
		{"the account itself by header", "GET", "/v1/charges/ch_A", http.Header{"Authorization": {"Bearer " + fullKey}, "Stripe-Account": {"acct_1"}}, 200, ""},
		{"a connected account", "GET", "/v1/charges/ch_A", http.Header{"Authorization": {"Bearer " + fullKey}, "Stripe-Account": {"acct_shop"}}, 404, "resource_missing"},
		{"a connected account of another platform", "GET", "/v1/charges", http.Header{"Authorization": {"Bearer " + otherKey}, "Stripe-Account": {"acct_shop"}}, 403, "account_invalid"},
		{"a connected account in the other mode", "GET", "/v1/charges", http.Header{"Authorization": {"Bearer " + testKey}, "Stripe-Account": {"acct_shop"}}, 403, "account_invalid"},
		{"an unknown address", "GET", "/v1/unicorns", http.Header{"Authorization": {"Bearer " + fullKey}}, 404, ""},
		{"a known address with another method", "DELETE", "/v1/refunds", http.Header{"Authorization": {"Bearer " + fullKey}}, 404, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := send(t, srv, test.method, test.path, "charge=ch_A", test.header)
			if got.status != test.status {
				t.Fatalf("told %d %s, want %d", got.status, got.body, test.status)
			}
			if test.status != 200 {
				if e := got.errorOf(t); e.Code != test.code || e.Message == "" {
					t.Errorf("told %+v, want code %q", e, test.code)
				}
			}
			for _, key := range []string{"sk_live_nobodys_9999", readKey, fullKey} {
				if strings.Contains(string(got.body), key) {
					t.Errorf("the answer holds the key: %s", got.body)
				}
			}
		})
	}
}

func TestAConnectedAccountKeepsItsOwnObjectsAndItsEventsNameIt(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	cl := client(t, srv, fullKey)
	if _, err := srv.AddCharge(stripetest.Charge{ID: "ch_S", Account: "acct_shop", Mode: "live", Amount: 900}); err != nil {
		t.Fatal(err)
	}
	p := &stripe.RefundCreateParams{Charge: stripe.String("ch_S")}
	p.SetStripeAccount("acct_shop")
	if _, err := cl.V1Refunds.Create(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	list := &stripe.EventListParams{}
	list.SetStripeAccount("acct_shop")
	events := 0
	for e, err := range cl.V1Events.List(context.Background(), list) {
		if err != nil {
			t.Fatal(err)
		}
		events++
		if e.Account != "acct_shop" || !e.Livemode || e.APIVersion != stripe.APIVersion {
			t.Errorf("event = %+v", e)
		}
	}
	if events != 3 {
		t.Errorf("%d events, want charge.succeeded, refund.created and charge.refunded", events)
	}
	for e, err := range cl.V1Events.List(context.Background(), &stripe.EventListParams{}) {
		t.Errorf("the platform lists %v, %v", e, err)
	}
}

func TestAccountsThatCannotBeAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return time.Unix(0, 0) }
	good := stripetest.Account{ID: "acct_1", Mode: "live", Key: "sk_1"}
	tests := []struct {
		name, want string
		opt        stripetest.Options
	}{
		{"no clock", "Options.Now", stripetest.Options{Accounts: []stripetest.Account{good}}},
		{"no account", "Options.Accounts", stripetest.Options{Now: now}},
		{"no mode", "live or test", stripetest.Options{Now: now, Accounts: []stripetest.Account{{ID: "acct_1", Key: "sk_1"}}}},
		{"the same account twice", "given twice", stripetest.Options{Now: now, Accounts: []stripetest.Account{good, good}}},
		{"no key", "nobody", stripetest.Options{Now: now, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live"}}}},
		{"one key for two", "another one too", stripetest.Options{Now: now, Accounts: []stripetest.Account{good, {ID: "acct_2", Mode: "live", Key: "sk_1"}}}},
		{"a platform that is not there", "names the platform", stripetest.Options{Now: now, Accounts: []stripetest.Account{{ID: "acct_2", Mode: "live", Platform: "acct_1"}}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			srv, err := stripetest.Start(test.opt)
			if err == nil {
				srv.Close()
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q does not say %q", err, test.want)
			}
		})
	}
}

func TestAKeyTellsWhichAccountItOpens(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	for name, header := range map[string]http.Header{
		"acct_1":    {"Authorization": {"Bearer " + fullKey}},
		"acct_shop": {"Authorization": {"Bearer " + fullKey}, "Stripe-Account": {"acct_shop"}},
	} {
		got := send(t, srv, "GET", "/v1/account", "", header)
		var account struct{ ID, Object string }
		if err := json.Unmarshal(got.body, &account); err != nil || got.status != 200 || account.ID != name || account.Object != "account" {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
}
