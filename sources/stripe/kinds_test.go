package stripe

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// change is fields of an example object that a test replaces.
type change = map[string]any

// read reads a changed example of a kind and gives the effect.
func read(t *testing.T, kind string, c change) recon.Effect {
	t.Helper()
	o, err := readObject(kind, fixture(t, kinds[kind].objectName(kind), c))
	if err != nil {
		t.Fatal(err)
	}
	s, p := testSource()
	return s.effectOf(p, o)
}

func TestStatusesOfTheFurtherKinds(t *testing.T) {
	t.Parallel()
	const flying, done, failed, undone = recon.InFlight, recon.Completed, recon.EffectFailed, recon.Reversed
	tests := []struct {
		name, kind string
		change     change
		want       recon.EffectStatus
		reason     string
	}{
		{"a transfer is done when it exists", kindTransfer, change{}, done, ""},
		{"a transfer of which a part was reversed stands", kindTransfer, change{"amount_reversed": 300, "reversed": false}, done, ""},
		{"a transfer that was reversed is undone", kindTransfer, change{"amount_reversed": 1100, "reversed": true}, undone, ""},

		{"a payout that waits", kindPayout, change{"status": "pending"}, flying, ""},
		{"a payout on its way", kindPayout, change{"status": "in_transit"}, flying, ""},
		{"a paid payout", kindPayout, change{"status": "paid"}, done, ""},
		{"a payout that failed, also after it was paid", kindPayout, change{"status": "failed", "failure_code": "account_closed", "failure_message": "Jane's account"}, failed, "account_closed"},
		{"a canceled payout", kindPayout, change{"status": "canceled"}, failed, ""},
		{"a payout that another one took back", kindPayout, change{"status": "paid", "reversed_by": "po_2"}, undone, ""},

		{"a customer exists", kindCustomer, change{}, done, ""},

		{"a draft may still be sent", kindInvoice, change{"status": "draft"}, flying, ""},
		{"an open invoice", kindInvoice, change{"status": "open"}, flying, ""},
		{"a paid invoice", kindInvoice, change{"status": "paid"}, done, ""},
		{"a voided invoice", kindInvoice, change{"status": "void"}, failed, "void"},
		{"an invoice that was given up; it may be paid yet", kindInvoice, change{"status": "uncollectible"}, failed, "uncollectible"},

		{"a subscription without its first payment", kindSubscription, change{"status": "incomplete"}, flying, ""},
		{"a trial", kindSubscription, change{"status": "trialing"}, flying, ""},
		{"a late payment", kindSubscription, change{"status": "past_due"}, flying, ""},
		{"a paused subscription", kindSubscription, change{"status": "paused"}, flying, ""},
		{"an unpaid subscription", kindSubscription, change{"status": "unpaid"}, flying, ""},
		{"a running subscription", kindSubscription, change{"status": "active"}, done, ""},
		{"a subscription that never began", kindSubscription, change{"status": "incomplete_expired"}, failed, "incomplete_expired"},
		{"a subscription that was ended", kindSubscription, change{"status": "canceled", "cancellation_details": change{"reason": "payment_failed", "comment": "Jane is sad", "feedback": "other"}}, undone, "payment_failed"},

		{"an open checkout", kindCheckoutSession, change{"status": "open"}, flying, ""},
		{"a checkout that was paid", kindCheckoutSession, change{"status": "complete", "payment_status": "paid"}, done, ""},
		{"a checkout of a trial or for nothing", kindCheckoutSession, change{"status": "complete", "payment_status": "no_payment_required"}, done, ""},
		{"a checkout whose payment takes days", kindCheckoutSession, change{"status": "complete", "payment_status": "unpaid"}, flying, ""},
		{"a checkout that nobody finished", kindCheckoutSession, change{"status": "expired"}, failed, "expired"},

		{"a credit note", kindCreditNote, change{"status": "issued"}, done, ""},
		{"a voided credit note", kindCreditNote, change{"status": "void"}, undone, "void"},

		{"an inquiry", kindDispute, change{"status": "warning_needs_response"}, flying, ""},
		{"an inquiry under review", kindDispute, change{"status": "warning_under_review"}, flying, ""},
		{"an inquiry that came to nothing", kindDispute, change{"status": "warning_closed"}, done, ""},
		{"a dispute", kindDispute, change{"status": "needs_response"}, flying, ""},
		{"a dispute under review", kindDispute, change{"status": "under_review"}, flying, ""},
		{"a dispute that was won", kindDispute, change{"status": "won", "reason": "fraudulent"}, done, ""},
		{"a dispute that was lost", kindDispute, change{"status": "lost", "reason": "fraudulent"}, failed, "fraudulent"},
		{"a dispute that was prevented", kindDispute, change{"status": "prevented"}, done, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := read(t, tt.kind, tt.change)
			if e.Status != tt.want || e.FailureReason != tt.reason || e.Kind != tt.kind {
				t.Errorf("effect is a %s, %s because of %q; want %s because of %q", e.Kind, e.Status, e.FailureReason, tt.want, tt.reason)
			}
		})
	}
}

func TestAStatusThatIsNotKnownIsNoEffect(t *testing.T) {
	t.Parallel()
	for kind, changes := range map[string][]change{
		kindPayout: {{"status": "parked"}, {"status": nil}}, kindInvoice: {{"status": nil}, {"status": "deleted"}},
		kindSubscription: {{"status": "ended"}}, kindCreditNote: {{"status": "draft"}}, kindDispute: {{"status": "charge_refunded"}},
		kindCheckoutSession: {{"status": nil}, {"status": "complete", "payment_status": "later"}, {"status": "complete", "payment_status": nil}},
		kindRefund:          {{"status": ""}}, kindCharge: {{"status": "won"}}, kindPaymentIntent: {{"status": "paid"}},
	} {
		for _, c := range changes {
			if _, err := readObject(kind, fixture(t, kinds[kind].objectName(kind), c)); err == nil || !strings.Contains(err.Error(), "status") {
				t.Errorf("%s with %v: %v, want a fault of its status", kind, c, err)
			}
		}
	}
}

func TestAnObjectHangsUnderAllThatItNames(t *testing.T) {
	t.Parallel()
	whole := func(id string) change {
		return change{"id": id, "object": "x", "email": "jane@example.com", "name": "Jane"}
	}
	for _, tt := range []struct {
		kind   string
		change change
		want   []string
	}{
		{kindTransfer, change{"source_transaction": "ch_1", "destination": "acct_9"}, []string{"ch_1", "acct_9"}},
		{kindTransfer, change{"source_transaction": nil, "destination": whole("acct_9")}, []string{"acct_9"}},
		{kindPayout, change{"original_payout": nil, "destination": "ba_1"}, []string{"ba_1"}},
		{kindPayout, change{"original_payout": "po_1", "destination": whole("ba_1")}, []string{"po_1", "ba_1"}},
		{kindCustomer, change{}, nil},
		{kindInvoice, change{"customer": "cus_1", "subscription": "sub_1", "parent": nil}, []string{"sub_1", "cus_1"}},
		{kindInvoice, change{"customer": whole("cus_1"), "subscription": nil,
			"parent": change{"type": "subscription_details", "subscription_details": change{"subscription": "sub_2", "metadata": change{"email": "jane@example.com"}}}}, []string{"sub_2", "cus_1"}},
		{kindInvoice, change{"customer": "cus_1", "subscription": nil, "parent": change{"type": "quote_details", "quote_details": change{"quote": "qt_1"}}}, []string{"cus_1"}},
		{kindSubscription, change{"customer": "cus_1"}, []string{"cus_1"}},
		{kindCheckoutSession, change{"payment_intent": "pi_1", "customer": "cus_1"}, []string{"pi_1", "cus_1"}},
		{kindCheckoutSession, change{"payment_intent": nil, "subscription": whole("sub_1"), "invoice": "in_1", "customer": "cus_1"}, []string{"sub_1", "in_1", "cus_1"}},
		{kindCreditNote, change{"invoice": "in_1", "customer": "cus_1"}, []string{"in_1", "cus_1"}},
		{kindDispute, change{"charge": "ch_1", "payment_intent": whole("pi_1")}, []string{"ch_1", "pi_1"}},
	} {
		e := read(t, tt.kind, tt.change)
		var got []string
		if e.Parent != "" {
			got = append([]string{e.Parent}, e.OtherParents...)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s of %v hangs under (-want +got):\n%s", tt.kind, tt.change, diff)
		}
	}
}

func TestWhatFollowsFromAnotherObjectNamesIt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, kind  string
		change      change
		cause, made string
	}{
		{"a dispute follows from its charge", kindDispute, change{"charge": "ch_1"}, "ch_1", ""},
		{"Stripe's release of a hold follows from its charge", kindRefund, change{"charge": "ch_1", "reason": "expired_uncaptured_charge"}, "ch_1", ""},
		{"a refund that somebody asked for follows from nothing", kindRefund, change{"charge": "ch_1", "reason": "requested_by_customer"}, "", ""},
		{"a charge follows from its intent", kindCharge, change{"payment_intent": "pi_1", "invoice": "in_1"}, "pi_1", ""},
		{"a charge that somebody made", kindCharge, change{"payment_intent": nil, "application": "ca_1"}, "", "ca_1"},
		{"an intent of an invoice", kindPaymentIntent, change{"invoice": "in_1"}, "in_1", ""},
		{"an intent that somebody made", kindPaymentIntent, change{"invoice": nil, "application": change{"id": "ca_1", "name": "Jane's shop"}}, "", "ca_1"},
		{"an invoice of a period", kindInvoice, change{"billing_reason": "subscription_cycle", "subscription": "sub_1"}, "sub_1", ""},
		{"an invoice that somebody made", kindInvoice, change{"billing_reason": "manual", "subscription": "sub_1"}, "", ""},
		{"a payout on schedule", kindPayout, change{"automatic": true}, "", "stripe"},
		{"a payout that somebody asked for", kindPayout, change{"automatic": false}, "", ""},
		{"a transfer of a charge was still asked for", kindTransfer, change{"source_transaction": "ch_1"}, "", ""},
	} {
		if e := read(t, tt.kind, tt.change); e.CausedBy != tt.cause || e.CreatedBy != tt.made {
			t.Errorf("%s: caused by %q and made by %q, want %q and %q", tt.name, e.CausedBy, e.CreatedBy, tt.cause, tt.made)
		}
	}
}

func TestB60_WhatAPartialCaptureReleasesFollowsFromItsCharge(t *testing.T) {
	t.Parallel()
	const authorized, captured = 2000, 1500
	charge := func(captured int) change {
		return change{"id": "ch_Z1", "object": "charge", "amount": authorized, "amount_captured": captured, "amount_refunded": 500}
	}
	release := func(c change) change {
		all := change{"amount": authorized - captured, "status": "succeeded", "reason": nil, "balance_transaction": nil, "charge": charge(captured)}
		for name, value := range c {
			all[name] = value
		}
		return all
	}
	for _, tt := range []struct {
		name   string
		change change
		want   string
	}{
		{"the release", change{}, "ch_Z1"},
		{"a refund that moved money", change{"balance_transaction": "txn_1"}, ""},
		{"a refund that somebody gave a reason for", change{"reason": "requested_by_customer"}, ""},
		{"another amount", change{"amount": 400}, ""},
		{"one that is pending", change{"status": "pending"}, ""},
		{"of a charge that was captured whole", change{"charge": charge(authorized)}, ""},
		{"of a charge that was not captured", change{"charge": charge(0), "amount": authorized}, ""},
		{"of a charge that is not shown", change{"charge": "ch_Z1"}, ""},
	} {
		e := read(t, kindRefund, release(tt.change))
		if e.CausedBy != tt.want {
			t.Errorf("%s is caused by %q, want %q", tt.name, e.CausedBy, tt.want)
		}
		if tt.want != "" && e.ParentTotal != nil {
			t.Errorf("the charge's running total holds the release, and is told as %d", *e.ParentTotal)
		}
	}
}

func TestAmountsAreThoseThatWereAskedFor(t *testing.T) {
	t.Parallel()
	usd := func(minor int64) recon.Money { return recon.Money{Minor: minor, Currency: "USD"} }
	none := recon.Money{}
	for _, tt := range []struct {
		name, kind string
		change     change
		want       recon.Money
	}{
		{"a transfer", kindTransfer, change{}, usd(1100)},
		{"a transfer of which a part was reversed", kindTransfer, change{"amount_reversed": 300}, usd(1100)},
		{"a payout", kindPayout, change{}, usd(1100)},
		{"a payout that takes from the bank is none that anybody asks for", kindPayout, change{"amount": -1100}, none},
		{"a customer has none", kindCustomer, change{}, none},
		{"a customer without currency", kindCustomer, change{"currency": nil}, none},
		{"a subscription has none", kindSubscription, change{}, none},
		{"an invoice, not what is due of it", kindInvoice, change{"total": 1000, "amount_due": 800, "amount_paid": 800, "status": "paid"}, usd(1000)},
		{"an invoice in the customer's favour", kindInvoice, change{"total": -500}, none},
		{"an invoice that a credit paid", kindInvoice, change{"total": 0}, recon.Money{Currency: "USD"}},
		{"a checkout under a coupon for all of it", kindCheckoutSession, change{"amount_total": 0, "currency": "usd"}, recon.Money{Currency: "USD"}},
		{"a checkout", kindCheckoutSession, change{"amount_total": 700, "currency": "usd"}, usd(700)},
		{"a checkout that only stores a card", kindCheckoutSession, change{"amount_total": nil, "currency": nil}, none},
		{"a credit note", kindCreditNote, change{}, usd(1690)},
		{"a dispute of a part", kindDispute, change{"amount": 400}, usd(400)},
	} {
		if e := read(t, tt.kind, tt.change); e.Money != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, e.Money, tt.want)
		}
	}
}

func TestB25_AnAmountIsTakenAsStripeCountsIt(t *testing.T) {
	t.Parallel()
	sheet := (&Source{}).writeSheet(Settings{})
	for _, tt := range []struct{ currency, want string }{
		{"jpy", "6,400 JPY"}, {"usd", "64.00 USD"}, {"bhd", "6.400 BHD"}, {"isk", "64.00 ISK"}, {"ugx", "64.00 UGX"},
		{"mga", "6,400 MGA"}, {"krw", "6,400 KRW"}, {"huf", "64.00 HUF"}, {"twd", "64.00 TWD"}, {"xof", "6,400 XOF"},
	} {
		for _, kind := range []string{kindRefund, kindPayout, kindInvoice, kindCheckoutSession} {
			c := change{"currency": tt.currency, "amount": 6400, "total": 6400, "amount_total": 6400}
			e := read(t, kind, c)
			if e.Money.Minor != 6400 || e.Money.Text(sheet.Exponents) != tt.want {
				t.Errorf("%s of 6400 %s: %d, %s; want it as it came, %s", kind, tt.currency, e.Money.Minor, e.Money.Text(sheet.Exponents), tt.want)
			}
		}
	}
}

func TestB48_AnObjectWithoutItsAmountIsNoEvidence(t *testing.T) {
	t.Parallel()
	for kind, k := range kinds {
		for _, gone := range []string{"object", "id", "created", "amount", "total", "currency", "status"} {
			var o map[string]any
			if err := json.Unmarshal(fixture(t, k.objectName(kind), change{"currency": "usd", "amount_total": 5}), &o); err != nil {
				t.Fatal(err)
			}
			if _, has := o[gone]; !has || gone == "total" && kind != kindInvoice || k.bare && gone == "currency" {
				continue
			}
			delete(o, gone)
			raw, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := readObject(kind, raw); err == nil || !strings.Contains(err.Error(), gone) {
				t.Errorf("%s without %s: %v, want a fault that names it", kind, gone, err)
			}
		}
	}
}

func TestADisputeTellsWhatItCost(t *testing.T) {
	t.Parallel()
	moved := func(amount, fee, net int64) change {
		return change{"id": "txn", "object": "balance_transaction", "amount": amount, "fee": fee, "net": net, "currency": "eur", "description": "Jane"}
	}
	e := read(t, kindDispute, change{"status": "won", "balance_transactions": []any{moved(-900, 1500, -2400), moved(900, 0, 900)}})
	if e.Fee == nil || e.Net == nil || *e.Fee != 1500 || *e.Net != -1500 || e.Settlement != (recon.Money{Minor: 900, Currency: "EUR"}) {
		t.Errorf("fee %v, net %v, settled %s", e.Fee, e.Net, e.Settlement)
	}
	for _, list := range [][]any{{}, {"txn_1"}} {
		if e := read(t, kindDispute, change{"balance_transactions": list}); e.Fee != nil || e.Net != nil || !e.Settlement.IsZero() {
			t.Errorf("%v: fee, net or settlement came from nowhere", list)
		}
	}
}

func TestNaturalReferencesAreNamesAndNothingElse(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"7FE1103-0001": "7FE1103-0001", "2026/0042": "2026/0042", "RE_2026.42": "RE_2026.42", "Zürich-7": "Zürich-7",
		"jane@example.com": "", "for Jane Doe": "", "": "", strings.Repeat("7", 201): "", "a\u0000b": "", "a\u202eb": "",
	} {
		for kind, field := range map[string]string{kindInvoice: "number", kindCreditNote: "number", kindCheckoutSession: "client_reference_id"} {
			if e := read(t, kind, change{field: given}); e.NaturalReference != want {
				t.Errorf("%s %s %q gives %q, want %q", kind, field, given, e.NaturalReference, want)
			}
		}
	}
	if e := read(t, kindTransfer, change{"transfer_group": "order_1"}); e.NaturalReference != "" {
		t.Errorf("a group is no name of one transfer: %q", e.NaturalReference)
	}
}

func TestWhenAnObjectChanged(t *testing.T) {
	t.Parallel()
	const born = 1772442000
	for _, tt := range []struct {
		kind   string
		change change
		want   int64
	}{
		{kindInvoice, change{"status_transitions": change{"finalized_at": born + 5, "paid_at": born + 9, "voided_at": nil}}, born + 9},
		{kindSubscription, change{"canceled_at": born + 5, "ended_at": born + 7}, born + 7},
		{kindCreditNote, change{"voided_at": born + 3}, born + 3},
		{kindPaymentIntent, change{"canceled_at": born + 4}, born + 4},
		{kindCreditNote, change{"voided_at": born - 3}, born},
		{kindCreditNote, change{"voided_at": 99999999999}, born},
		{kindTransfer, change{}, born},
	} {
		tt.change["created"] = born
		if got := read(t, tt.kind, tt.change).UpdatedAt; !got.Equal(time.Unix(tt.want, 0)) {
			t.Errorf("%s with %v changed at %s, want %s", tt.kind, tt.change, got, time.Unix(tt.want, 0).UTC())
		}
	}
}

// kept are the fields that are kept of each kind, when all are there. Everything else that
// Stripe sends is dropped; a new name here is a decision that a reader sees.
var kept = map[string]string{
	kindCharge:          "amount amount_captured amount_refunded application balance_transaction captured charge created currency customer disputed failure_code id invoice livemode metadata object payment_intent reason refunded status",
	kindCheckoutSession: "amount_total client_reference_id created currency customer id invoice livemode metadata object payment_intent payment_status status subscription",
	kindCreditNote:      "amount created currency customer id invoice livemode metadata number object reason status total voided_at",
	kindCustomer:        "created currency id livemode metadata object",
	kindDispute:         "amount balance_transactions charge created currency id livemode metadata object payment_intent reason status",
	kindInvoice:         "amount_paid application billing_reason created currency customer id livemode metadata number object parent status status_transitions subscription total",
	kindPaymentIntent:   "amount amount_received application canceled_at cancellation_reason created currency customer id last_payment_error latest_charge livemode metadata object payment_intent status",
	kindPayout:          "amount arrival_date automatic balance_transaction created currency destination failure_code id livemode metadata object original_payout reversed_by status",
	kindRefund:          "amount balance_transaction charge created currency customer failure_reason id metadata object payment_intent pending_reason reason status",
	kindSubscription:    "application canceled_at cancellation_details created currency customer ended_at id livemode metadata object status",
	kindTransfer:        "amount amount_reversed balance_transaction created currency destination id livemode metadata object reversed source_transaction",
}

func TestOnlyTheAllowListIsKeptOfEachKind(t *testing.T) {
	t.Parallel()
	for kind, k := range kinds {
		var o map[string]any
		if err := json.Unmarshal(fixture(t, k.objectName(kind), nil), &o); err != nil {
			t.Fatal(err)
		}
		fill(o)
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		read, err := readObject(kind, raw)
		if err != nil {
			t.Fatal(err)
		}
		bytes := read.reduced("op_id")
		if strings.Contains(string(bytes), "jane") || strings.Contains(string(bytes), "Jane") {
			t.Errorf("%s: what is kept holds what people wrote: %s", kind, bytes)
		}
		var got map[string]any
		if err := json.Unmarshal(bytes, &got); err != nil {
			t.Fatal(err)
		}
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(got)), func(name string) bool { return !strings.Contains(" "+kept[kind]+" ", " "+name+" ") })
		if len(names) != len(got) {
			t.Errorf("%s: kept %v, allowed are %s", kind, slices.Sorted(maps.Keys(got)), kept[kind])
		}
		for _, must := range []string{"id", "object", "created", "metadata"} {
			if got[must] == nil {
				t.Errorf("%s: %s is not kept", kind, must)
			}
		}
	}
}

// fill writes into each field that may hold what people write, and gives links and codes
// to those that hold them.
func fill(o map[string]any) {
	for name, value := range o {
		switch text, isText := value.(string); {
		case name == "metadata":
			o[name] = map[string]any{"op_id": "op-1", "email": "jane@example.com"}
		case name == "object" || name == "status" || name == "currency" || name == "payment_status" || name == "id":
		case value == nil:
			o[name] = "Jane <jane@example.com>"
			if kindLink[name] {
				o[name] = map[string]any{"id": "x_1", "email": "jane@example.com", "name": "Jane"}
			}
			if strings.HasSuffix(name, "_at") || name == "amount_total" {
				o[name] = 1772442000
			}
			if name == "currency" {
				o[name] = "usd"
			}
		case isText && !kindLink[name] && !strings.Contains(text, "_"):
			o[name] = fmt.Sprint(text, " of Jane")
		}
		if inner, ok := value.(map[string]any); ok {
			fill(inner)
		}
	}
	if o["amount_total"] != nil {
		o["currency"] = "usd"
	}
}

// kindLink are the fields that hold another object or its id.
var kindLink = map[string]bool{"charge": true, "payment_intent": true, "invoice": true, "customer": true, "subscription": true,
	"latest_charge": true, "source_transaction": true, "destination": true, "original_payout": true, "reversed_by": true,
	"application": true, "balance_transaction": true, "parent": true, "reversed": true, "captured": true, "last_payment_error": true,
	"cancellation_details": true, "status_transitions": true}

func TestEveryKindHasItsMethodsAndIsNamed(t *testing.T) {
	t.Parallel()
	for name, k := range kinds {
		if k.list == nil || k.one == nil || k.status == nil || k.parents == nil || k.path == "" || kept[name] == "" {
			t.Errorf("%s lacks a method, a path or its allow-list", name)
		}
		if got, ok := ourKind(k.objectName(name)); !ok || got != name {
			t.Errorf("what Stripe calls %q is %q to us, want %q", k.objectName(name), got, name)
		}
		if strings.ContainsAny(recon.Noun(name), "_.") {
			t.Errorf("people read %q", recon.Noun(name))
		}
	}
	for _, other := range []string{"checkout_session", "event", "refund.x", "", "coupon"} {
		if name, ok := ourKind(other); ok {
			t.Errorf("%q is taken for a %s", other, name)
		}
	}
}
