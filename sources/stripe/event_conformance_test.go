package stripe_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/sourcetest"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// mailbox keeps what the fake posts for acct_1, live and test, and for its shops.
type mailbox struct {
	fake
	mu   sync.Mutex // guards list
	list []sourcetest.Delivery
}

func newMailbox(t *testing.T, f fake) *mailbox {
	t.Helper()
	m := &mailbox{fake: f}
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.list = append(m.list, sourcetest.Delivery{Header: r.Header, Body: body})
	}))
	t.Cleanup(srv.Close)
	for _, e := range []stripetest.Endpoint{{Mode: "live"}, {Mode: "test"}, {Mode: "live", Connect: true}} {
		e.URL, e.Account, e.Secrets = srv.URL, "acct_1", []string{hookSecret}
		if _, err := f.AddEndpoint(e); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *mailbox) deliveries(t *testing.T) []sourcetest.Delivery {
	t.Helper()
	if _, err := m.Post(context.Background()); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.list
	m.list = nil
	return list
}

func (p provider) Deliveries(t *testing.T) []sourcetest.Delivery { return p.mail.deliveries(t) }

// lives are objects of the kinds that the fake seeds, and what becomes of them.
var lives = []struct {
	seed stripetest.Resource
	turn stripetest.Turn
	want []string // what its events show, in short
}{
	{stripetest.Resource{Kind: "checkout.session"}, stripetest.Turn{Status: "complete"}, []string{"checkout_session completed"}},
	{stripetest.Resource{Kind: "checkout.session"}, stripetest.Turn{Status: "expired"}, []string{"checkout_session failed"}},
	{stripetest.Resource{Kind: "credit_note"}, stripetest.Turn{Status: "void"}, []string{"credit_note completed", "credit_note reversed"}},
	{stripetest.Resource{Kind: "customer"}, stripetest.Turn{Status: "deleted"}, []string{"customer completed", "? customer"}},
	{stripetest.Resource{Kind: "dispute", Fields: map[string]any{"charge": "ch_1"}}, stripetest.Turn{Status: "lost"},
		[]string{"dispute in_flight", "dispute in_flight", "dispute failed"}},
	{stripetest.Resource{Kind: "invoice", Status: "open"}, stripetest.Turn{Status: "paid"}, []string{"invoice in_flight", "invoice completed"}},
	{stripetest.Resource{Kind: "payout", Status: "paid"}, stripetest.Turn{Status: "failed"}, []string{"payout completed", "payout failed"}},
	{stripetest.Resource{Kind: "subscription", Status: "active"}, stripetest.Turn{Status: "canceled"}, []string{"subscription completed", "subscription reversed"}},
	{stripetest.Resource{Kind: "transfer"}, stripetest.Turn{}, []string{"transfer completed", "transfer reversed"}},
}

func TestTheLivesOfAllKindsAreShownByTheirEvents(t *testing.T) {
	t.Parallel()
	for _, life := range lives {
		t.Run(life.seed.Kind+" "+life.turn.Status, func(t *testing.T) {
			t.Parallel()
			b := newBox(t, nil)
			seed := life.seed
			seed.Account, seed.Mode, seed.Amount, seed.Key, seed.Metadata = "acct_1", "live", 500, "k-1", map[string]string{marker: "op_1"}
			made, err := b.AddResource(seed)
			if err != nil {
				t.Fatal(err)
			}
			if seed.Kind == "transfer" {
				err = b.ReverseTransfer(made, 500)
			} else {
				err = b.TurnResource(made, life.turn)
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range b.post(t) {
				shown := decode(t, b.src, e)
				for _, effect := range shown.Effects {
					got = append(got, effect.Kind+" "+string(effect.Status))
					if effect.ID != made.ID || effect.Reference != "op_1" {
						t.Errorf("%s shows %+v", e.Type, effect)
					}
				}
				for _, h := range shown.Hints {
					got = append(got, "? "+h.Kind)
				}
			}
			if diff := cmp.Diff(life.want, got); diff != "" {
				t.Errorf("shows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestB48_WhateverNeededFieldIsAbsentTheObjectIsRead(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.refund(t, stripetest.Refund{ID: "re_1", Amount: 100})
	if _, err := b.AddPaymentIntent(stripetest.PaymentIntent{ID: "pi_1", Account: "acct_1", Mode: "live", Amount: 100}); err != nil {
		t.Fatal(err)
	}
	for _, life := range lives {
		seed := life.seed
		seed.Account, seed.Mode, seed.Amount = "acct_1", "live", 100
		made, err := b.AddResource(seed)
		if err != nil {
			t.Fatal(err)
		}
		if seed.Kind == "checkout.session" {
			if err := b.TurnResource(made, life.turn); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen := map[string]bool{}
	for _, e := range b.post(t) {
		var event struct {
			Data struct {
				Object json.RawMessage `json:"object"`
			} `json:"data"`
		}
		if err := json.Unmarshal(e.Body, &event); err != nil {
			t.Fatal(err)
		}
		whole := decode(t, b.src, eventOf(e.Type, string(event.Data.Object)))
		kind := whole.Effects[0].Kind
		seen[kind] = true
		for _, field := range stripe.Needed(kind) {
			less := decode(t, b.src, eventOf(e.Type, with(t, string(event.Data.Object), `{"`+field+`":"absent"}`)))
			if len(less.Effects) != 0 || len(less.Hints) == 0 || less.Hints[0].ID != whole.Effects[0].ID || less.Hints[0].Kind != kind {
				t.Errorf("%s without %s shows %v, want a hint to read it", e.Type, field, names(less))
			}
		}
	}
	if kinds := stripe.KindNames(); len(seen) != len(kinds) {
		t.Errorf("tried %v, want all of %v", seen, kinds)
	}
}

func TestAThinEventNamesItsObject(t *testing.T) {
	t.Parallel()
	src := receiver(t, nil)
	thin := func(object, id string) recon.Event {
		e := eventOf("v1."+object+".changed", "null")
		e.Body = []byte(`{"id":"evt_1","object":"v2.core.event","type":"` + e.Type + `","livemode":true,"created":"2026-03-02T08:26:40.123Z",` +
			`"context":"acct_1","related_object":{"id":"` + id + `","type":"` + object + `","url":"/v1/x"}}`)
		return e
	}
	for object, want := range map[string]string{"refund": "refund", "checkout.session": "checkout_session", "payout": "payout"} {
		got := decode(t, src, thin(object, "x_1")).Hints
		if diff := cmp.Diff([]sources.Hint{{Kind: want, Account: "acct_1", Mode: "live", ID: "x_1"}}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", object, diff)
		}
	}
	if got := decode(t, src, thin("billing.meter", "mtr_1")); len(got.Hints) != 0 {
		t.Errorf("an object that is not known gives %v", names(got))
	}
	if _, err := src.Decode(thin("refund", "")); err == nil {
		t.Error("a thin event without the id of its object shows nothing, and says nothing")
	}
}

func TestEventsAboutWhatIsNotThereShowNothing(t *testing.T) {
	t.Parallel()
	src := receiver(t, nil)
	for typ, object := range map[string]string{
		"invoice.upcoming":                  `{"object":"invoice","total":100}`,
		"customer.source.created":           `{"id":"card_1","object":"card","customer":"cus_1"}`,
		"invoice_payment.paid":              `{"id":"inpay_1","object":"invoice_payment"}`,
		"customer.tax_id.created":           `{"id":"txi_1","object":"tax_id"}`,
		"balance.available":                 `{"object":"balance"}`,
		"radar.early_fraud_warning.created": `{"id":"issfr_1","object":"radar.early_fraud_warning","charge":"ch_1"}`,
	} {
		if shown := decode(t, src, eventOf(typ, object)); len(shown.Effects)+len(shown.Hints) != 0 {
			t.Errorf("%s shows %v", typ, names(shown))
		}
	}
	gone := decode(t, src, eventOf("invoice.deleted", `{"id":"in_1","object":"invoice","metadata":{"op_id":"op_1"}}`))
	if !slices.Equal(names(gone), []string{"? invoice in_1 op_1"}) {
		t.Errorf("a deleted invoice shows %v, want a hint to read it", names(gone))
	}
}
