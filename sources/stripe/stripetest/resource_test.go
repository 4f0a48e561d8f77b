package stripetest_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// resource seeds one in acct_1 live.
func resource(t *testing.T, srv *stripetest.Server, r stripetest.Resource) stripetest.Resource {
	t.Helper()
	r.Account, r.Mode = "acct_1", "live"
	made, err := srv.AddResource(r)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// shown reads an object as any client would.
func shown(t *testing.T, srv *stripetest.Server, path string) map[string]any {
	t.Helper()
	got := get(t, srv, readKey, path)
	var o map[string]any
	if err := json.Unmarshal(got.body, &o); err != nil || got.status != 200 {
		t.Fatalf("%s: %d %s %v", path, got.status, got.body, err)
	}
	return o
}

// listedIDs gives the ids of a list.
func listedIDs(t *testing.T, srv *stripetest.Server, path string) []string {
	t.Helper()
	var ids []string
	data, _ := shown(t, srv, path)["data"].([]any)
	for _, o := range data {
		ids = append(ids, o.(map[string]any)["id"].(string))
	}
	return ids
}

var resourcePaths = map[string]string{
	"checkout.session": "/v1/checkout/sessions", "credit_note": "/v1/credit_notes", "customer": "/v1/customers",
	"dispute": "/v1/disputes", "invoice": "/v1/invoices", "payout": "/v1/payouts",
	"subscription": "/v1/subscriptions", "transfer": "/v1/transfers",
}

func TestResourcesLookLikeTheProvidersExamples(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	for kind, path := range resourcePaths {
		made := resource(t, srv, stripetest.Resource{Kind: kind, Amount: 500, Metadata: map[string]string{"operation_id": "op_1"}})
		o := shown(t, srv, path+"/"+made.ID)
		if o["object"] != kind || o["livemode"] != true || o["metadata"].(map[string]any)["operation_id"] != "op_1" {
			t.Errorf("%s is shown as %v", kind, o)
		}
		if got := listedIDs(t, srv, path); !slices.Equal(got, []string{made.ID}) {
			t.Errorf("%s lists %v, want %s", path, got, made.ID)
		}
		if got := listedIDs(t, srv, path+"?created[lt]=1000000000"); len(got) != 0 {
			t.Errorf("%s of long ago lists %v", path, got)
		}
	}
}

func TestResourcesTurnAsTheirLifeAllows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, kind string
		turns      []string
		field      string // of the end
		want       any
		events     []string
	}{
		{"a payout fails after it was paid", "payout", []string{"in_transit", "paid", "failed"}, "failure_code", "could_not_process",
			[]string{"payout.created", "payout.updated", "payout.paid", "payout.failed"}},
		{"a payout is canceled", "payout", []string{"canceled"}, "status", "canceled", []string{"payout.created", "payout.canceled"}},
		{"an invoice is paid after it was given up", "invoice", []string{"open", "uncollectible", "paid"}, "amount_paid", 500.0,
			[]string{"invoice.created", "invoice.finalized", "invoice.marked_uncollectible", "invoice.paid"}},
		{"an invoice is voided", "invoice", []string{"open", "void"}, "status", "void", []string{"invoice.created", "invoice.finalized", "invoice.voided"}},
		{"a subscription ends", "subscription", []string{"active", "past_due", "canceled"}, "status", "canceled",
			[]string{"customer.subscription.created", "customer.subscription.updated", "customer.subscription.updated", "customer.subscription.deleted"}},
		{"a subscription never begins", "subscription", []string{"incomplete_expired"}, "status", "incomplete_expired",
			[]string{"customer.subscription.created", "customer.subscription.updated"}},
		{"a checkout is paid", "checkout.session", []string{"complete"}, "payment_status", "paid", []string{"checkout.session.completed"}},
		{"a checkout expires", "checkout.session", []string{"expired"}, "payment_status", "unpaid", []string{"checkout.session.expired"}},
		{"a credit note is voided", "credit_note", []string{"void"}, "status", "void", []string{"credit_note.created", "credit_note.voided"}},
		{"a dispute is won", "dispute", []string{"under_review", "won"}, "status", "won",
			[]string{"charge.dispute.created", "charge.dispute.funds_withdrawn", "charge.dispute.updated", "charge.dispute.closed", "charge.dispute.funds_reinstated"}},
		{"a customer is deleted", "customer", []string{"deleted"}, "deleted", true, []string{"customer.created", "customer.deleted"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv, c := start(t, nil)
			r := resource(t, srv, stripetest.Resource{Kind: tt.kind, Amount: 500})
			for _, status := range tt.turns {
				c.Add(time.Hour)
				if err := srv.TurnResource(r, stripetest.Turn{Status: status}); err != nil {
					t.Fatal(err)
				}
			}
			if got := shown(t, srv, resourcePaths[tt.kind]+"/"+r.ID)[tt.field]; got != tt.want {
				t.Errorf("%s is %v, want %v", tt.field, got, tt.want)
			}
			var types []string
			for _, e := range srv.Events() {
				types = append(types, e.Type)
			}
			if diff := cmp.Diff(tt.events, types); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if err := srv.TurnResource(r, stripetest.Turn{Status: "draft"}); err == nil || !strings.Contains(err.Error(), "cannot become") {
				t.Errorf("it went back to a draft: %v", err)
			}
		})
	}
}

func TestATransferIsReversedInParts(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	r := resource(t, srv, stripetest.Resource{Kind: "transfer", Amount: 500, Fields: map[string]any{"source_transaction": "ch_1"}})
	for _, part := range []struct {
		amount   int64
		reversed bool
	}{{200, false}, {300, true}} {
		if err := srv.ReverseTransfer(r, part.amount); err != nil {
			t.Fatal(err)
		}
		if o := shown(t, srv, "/v1/transfers/"+r.ID); o["reversed"] != part.reversed {
			t.Errorf("after %d the transfer is reversed %v", part.amount, o["reversed"])
		}
	}
	if err := srv.ReverseTransfer(r, 1); err == nil {
		t.Error("more was reversed than was transferred")
	}
}

func TestADisputeTakesItsAmountAndAFeeAndMarksTheCharge(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	charged(t, srv, "ch_A", 500)
	r := resource(t, srv, stripetest.Resource{Kind: "dispute", Amount: 500, Fields: map[string]any{"charge": "ch_A"}})
	if !srv.Charges()[0].Disputed {
		t.Error("the charge is not disputed")
	}
	if err := srv.TurnResource(r, stripetest.Turn{Status: "won"}); err != nil {
		t.Fatal(err)
	}
	var moved []float64
	for _, tx := range shown(t, srv, "/v1/disputes/"+r.ID)["balance_transactions"].([]any) {
		moved = append(moved, tx.(map[string]any)["net"].(float64))
	}
	if want := []float64{-2000, 500}; !slices.Equal(moved, want) {
		t.Errorf("moved %v, want %v", moved, want)
	}
}

func TestCanceledSubscriptionsAreListedOnlyWhenAskedFor(t *testing.T) {
	t.Parallel()
	srv, c := start(t, nil)
	ended := resource(t, srv, stripetest.Resource{Kind: "subscription", Status: "active"})
	c.Add(time.Second)
	runs := resource(t, srv, stripetest.Resource{Kind: "subscription", Status: "active"})
	if err := srv.TurnResource(ended, stripetest.Turn{Status: "canceled"}); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string][]string{
		"": {runs.ID}, "?status=all": {runs.ID, ended.ID}, "?status=canceled": {ended.ID}, "?status=ended": {ended.ID}, "?status=active": {runs.ID},
	} {
		if got := listedIDs(t, srv, "/v1/subscriptions"+query); !slices.Equal(got, want) {
			t.Errorf("%q lists %v, want %v", query, got, want)
		}
	}
}

func TestADeletedCustomerIsInNoListAndAnswersItsIdForEver(t *testing.T) {
	t.Parallel()
	srv, c := start(t, nil)
	r := resource(t, srv, stripetest.Resource{Kind: "customer", Metadata: map[string]string{"operation_id": "op_1"}})
	if err := srv.TurnResource(r, stripetest.Turn{Status: "deleted"}); err != nil {
		t.Fatal(err)
	}
	c.Add(time.Hour)
	want := map[string]any{"id": r.ID, "object": "customer", "deleted": true}
	if diff := cmp.Diff(want, shown(t, srv, "/v1/customers/"+r.ID)); diff != "" {
		t.Errorf("the customer (-want +got):\n%s", diff)
	}
	for _, path := range []string{"/v1/customers", `/v1/customers/search?query=metadata["operation_id"]:"op_1"`} {
		if got := listedIDs(t, srv, strings.ReplaceAll(path, `"`, "%22")); len(got) != 0 {
			t.Errorf("%s shows %v", path, got)
		}
	}
}

func TestAResourceThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	for want, r := range map[string]stripetest.Resource{
		"no such kind":            {Kind: "coupon", Account: "acct_1", Mode: "live"},
		"not among":               {Kind: "payout", Account: "acct_9", Mode: "live"},
		"after the simulated now": {Kind: "payout", Account: "acct_1", Mode: "live", Created: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if _, err := srv.AddResource(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q", err, want)
		}
	}
}
