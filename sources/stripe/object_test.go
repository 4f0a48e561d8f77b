package stripe

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func testSource() (*Source, *place) {
	return &Source{name: "stripe-main", system: "stripe", marker: "op_id"}, &place{account: "acct_1", mode: modeLive}
}

// fixture gives an example object of Stripe's own, with fields replaced.
func fixture(t testing.TB, kind string, change map[string]any) []byte {
	t.Helper()
	b, err := os.ReadFile("stripetest/fixtures.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		t.Fatal(err)
	}
	o := all[kind]
	for name, value := range change {
		o[name] = value
	}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestStatusesMeanWhatTheLifeCyclesSay(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		kind   string
		change map[string]any
		want   recon.EffectStatus
		amount int64
		reason string
	}{
		{"a pending refund is in flight", kindRefund, map[string]any{"status": "pending", "pending_reason": "processing"}, recon.InFlight, 100, ""},
		{"a refund that waits for the customer is in flight", kindRefund, map[string]any{"status": "requires_action"}, recon.InFlight, 100, ""},
		{"a succeeded refund is completed", kindRefund, map[string]any{"status": "succeeded"}, recon.Completed, 100, ""},
		{"a failed refund is failed", kindRefund, map[string]any{"status": "failed", "failure_reason": "lost_or_stolen_card"}, recon.EffectFailed, 100, "lost_or_stolen_card"},
		{"a canceled refund is failed", kindRefund, map[string]any{"status": "canceled", "failure_reason": "merchant_request"}, recon.EffectFailed, 100, "merchant_request"},
		{"a new payment intent is in flight, for it may still happen", kindPaymentIntent, map[string]any{"status": "requires_payment_method"}, recon.InFlight, 1099, ""},
		{"a declined payment intent is in flight, for it may be paid yet", kindPaymentIntent, map[string]any{"status": "requires_payment_method", "last_payment_error": map[string]any{"type": "card_error", "code": "card_declined", "message": "Jane's card"}}, recon.InFlight, 1099, "card_declined"},
		{"an unconfirmed payment intent is in flight", kindPaymentIntent, map[string]any{"status": "requires_confirmation"}, recon.InFlight, 1099, ""},
		{"a processing payment intent is in flight", kindPaymentIntent, map[string]any{"status": "processing"}, recon.InFlight, 1099, ""},
		{"a hold is in flight", kindPaymentIntent, map[string]any{"status": "requires_capture"}, recon.InFlight, 1099, ""},
		{"a paid payment intent is completed", kindPaymentIntent, map[string]any{"status": "succeeded", "amount_received": 1099}, recon.Completed, 1099, ""},
		{"a partly captured payment intent is of what was captured", kindPaymentIntent, map[string]any{"status": "succeeded", "amount_received": 99}, recon.Completed, 99, ""},
		{"a canceled payment intent is failed", kindPaymentIntent, map[string]any{"status": "canceled", "cancellation_reason": "abandoned"}, recon.EffectFailed, 1099, "abandoned"},
		{"a pending charge is in flight", kindCharge, map[string]any{"status": "pending"}, recon.InFlight, 100, ""},
		{"an uncaptured charge is in flight", kindCharge, map[string]any{"status": "succeeded", "captured": false}, recon.InFlight, 100, ""},
		{"a captured charge is completed", kindCharge, map[string]any{"status": "succeeded", "captured": true, "amount_captured": 80}, recon.Completed, 80, ""},
		{"a refunded charge did happen", kindCharge, map[string]any{"status": "succeeded", "captured": true, "refunded": true, "amount_refunded": 100}, recon.Completed, 100, ""},
		{"a hold that was released is failed", kindCharge, map[string]any{"status": "succeeded", "captured": false, "refunded": true}, recon.EffectFailed, 100, ""},
		{"a declined charge is failed", kindCharge, map[string]any{"status": "failed", "failure_code": "card_declined"}, recon.EffectFailed, 100, "card_declined"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o, err := readObject(tt.kind, fixture(t, tt.kind, tt.change))
			if err != nil {
				t.Fatal(err)
			}
			s, p := testSource()
			e := s.effectOf(p, o)
			if e.Status != tt.want || e.Money != (recon.Money{Minor: tt.amount, Currency: "USD"}) {
				t.Errorf("effect is %s of %s, want %s of %d", e.Status, e.Money, tt.want, tt.amount)
			}
			if e.FailureReason != tt.reason {
				t.Errorf("failure reason %q, want %q", e.FailureReason, tt.reason)
			}
		})
	}
}

func TestARefundIsReadWhole(t *testing.T) {
	t.Parallel()
	raw := []byte(`{"id":"re_1","object":"refund","amount":4200,"currency":"eur","status":"succeeded","created":1772442000,
		"charge":{"id":"ch_1","object":"charge","livemode":true,"amount":9000,"amount_captured":9000,"amount_refunded":4200,"billing_details":{"email":"jane@example.com"}},
		"payment_intent":"pi_1","reason":"requested_by_customer","metadata":{"op_id":"op-1","email":"jane@example.com"},
		"balance_transaction":{"id":"txn_1","object":"balance_transaction","amount":-4700,"fee":30,"net":-4730,"currency":"usd","description":"Jane"},
		"destination_details":{"card":{"reference":"123"},"type":"card"},"description":"for Jane"}`)
	o, err := readObject(kindRefund, raw)
	if err != nil {
		t.Fatal(err)
	}
	s, p := testSource()
	fee, net, total := int64(30), int64(-4730), int64(4200)
	at := time.Unix(1772442000, 0).UTC()
	want := recon.Effect{
		ID: "re_1", Source: "stripe-main", System: "stripe", Kind: "refund", Status: recon.Completed,
		Money: recon.Money{Minor: 4200, Currency: "EUR"}, Parent: "ch_1", OtherParents: []string{"pi_1"},
		Reference: "op-1", CreatedAt: at, UpdatedAt: at, Account: "acct_1", Mode: "live",
		Fee: &fee, Net: &net, Settlement: recon.Money{Minor: 4700, Currency: "USD"}, ParentTotal: &total,
	}
	if diff := cmp.Diff(want, s.effectOf(p, o)); diff != "" {
		t.Errorf("effect (-want +got):\n%s", diff)
	}
	const kept = `{"id":"re_1","object":"refund","status":"succeeded","amount":4200,"currency":"eur","created":1772442000,"metadata":{"op_id":"op-1"},` +
		`"charge":{"id":"ch_1","livemode":true,"amount_refunded":4200,"amount_captured":9000,"amount":9000},"payment_intent":"pi_1",` +
		`"balance_transaction":{"id":"txn_1","amount":-4700,"fee":30,"net":-4730,"currency":"usd"},"reason":"requested_by_customer"}`
	if diff := cmp.Diff(kept, string(o.reduced("op_id"))); diff != "" {
		t.Errorf("what is kept of the bytes (-want +got):\n%s", diff)
	}
}

func TestWhatIsNotExpandedIsNotKnownAndNotZero(t *testing.T) {
	t.Parallel()
	s, p := testSource()
	for _, kind := range []string{kindRefund, kindCharge, kindPaymentIntent} {
		o, err := readObject(kind, fixture(t, kind, map[string]any{"balance_transaction": "txn_1"}))
		if err != nil {
			t.Fatal(err)
		}
		if e := s.effectOf(p, o); e.Fee != nil || e.Net != nil || !e.Settlement.IsZero() || e.ParentTotal != nil {
			t.Errorf("%s: fee, net, settlement or parent total came from nowhere: %+v", kind, e)
		}
	}
}

func TestAChargeAndAPaymentIntentHangUnderAllTheirParents(t *testing.T) {
	t.Parallel()
	s, p := testSource()
	for kind, want := range map[string][]string{
		kindCharge:        {"pi_1", "in_1", "cus_1"},
		kindPaymentIntent: {"in_1", "cus_1"},
	} {
		o, err := readObject(kind, fixture(t, kind, map[string]any{"payment_intent": "pi_1", "invoice": "in_1", "customer": map[string]any{"id": "cus_1"}}))
		if err != nil {
			t.Fatal(err)
		}
		e := s.effectOf(p, o)
		if got := append([]string{e.Parent}, e.OtherParents...); !cmp.Equal(got, want) {
			t.Errorf("%s hangs under %v, want %v", kind, got, want)
		}
	}
}

func TestStripesOwnReleaseOfAHoldFollowsFromItsCharge(t *testing.T) {
	t.Parallel()
	s, p := testSource()
	o, err := readObject(kindRefund, fixture(t, kindRefund, map[string]any{"reason": "expired_uncaptured_charge", "charge": "ch_9"}))
	if err != nil {
		t.Fatal(err)
	}
	if e := s.effectOf(p, o); e.CausedBy != "ch_9" {
		t.Errorf("caused by %q, want the charge", e.CausedBy)
	}
}

// FuzzReadObject holds the laws of reading: no panic, no effect out of half an object,
// and what is kept reads back to the same effect.
func FuzzReadObject(f *testing.F) {
	for kind, k := range kinds {
		f.Add(kind, fixture(f, k.objectName(kind), map[string]any{"metadata": map[string]any{"op_id": "op-1"}, "amount_total": 5, "currency": "usd"}))
	}
	f.Add(kindRefund, []byte(`{"id":"re_1","object":"refund","amount":1,"currency":"eur","status":"pending","created":1772442000,"charge":{"id":"ch_1"},"metadata":{"op_id":5}}`))
	f.Add(kindRefund, []byte(`{"id":"re_1","object":"refund","amount":-1,"charge":7}`))
	f.Add(kindCharge, []byte(`null`))
	f.Add(kindTransfer, []byte(`{"id":"tr_1","object":"transfer","amount":1,"currency":"eur","created":1772442000,"destination":"acct\u0000","source_transaction":{"id":"ch\u0000"}}`))
	f.Fuzz(func(t *testing.T, kind string, raw []byte) {
		o, err := readObject(kind, raw)
		if err != nil {
			if strings.Contains(err.Error(), "jane") {
				t.Fatal("an error quotes the input")
			}
			return
		}
		s, p := testSource()
		e := s.effectOf(p, o)
		if e.ID == "" || !e.Status.Valid() || e.Kind != kind || e.Money.Minor < 0 || e.CreatedAt.Year() < 2000 || e.CreatedAt.Year() > 2100 {
			t.Fatalf("half an object became %+v", e)
		}
		for _, text := range append(e.OtherParents, e.ID, e.Parent, e.Reference, e.NaturalReference, e.CausedBy, e.CreatedBy, e.FailureReason) {
			if strings.ContainsRune(text, 0) || len(text) > maxText {
				t.Fatalf("%q cannot be stored", text)
			}
		}
		kept := o.reduced("op_id")
		again, err := readObject(kind, kept)
		if err != nil {
			t.Fatalf("what is kept does not read back: %v: %s", err, kept)
		}
		if diff := cmp.Diff(e, s.effectOf(p, again)); diff != "" {
			t.Fatalf("what is kept reads back as another effect:\n%s", diff)
		}
	})
}
