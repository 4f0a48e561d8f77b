package stripetest_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// eventTypes gives the types of all events but those of the seed, oldest first.
func eventTypes(srv *stripetest.Server, object string) []string {
	var types []string
	for _, e := range srv.Events() {
		if e.ObjectID == object && e.Type != "charge.succeeded" {
			types = append(types, e.Type)
		}
	}
	return types
}

// seen is what a look at a refund shows.
type seen struct {
	status                 stripe.RefundStatus
	pending                stripe.RefundPendingReason
	failure                stripe.RefundFailureReason
	moneyOut, moneyBack    bool
	refundedAmountOnCharge int64
}

var lives = []struct {
	name   string
	life   stripetest.Life
	after  time.Duration
	before seen
	then   seen
	events []string
}{
	{
		"pending, then succeeded", stripetest.PendingThen(2*time.Hour, "succeeded"), 2 * time.Hour,
		seen{status: "pending", pending: "processing", moneyOut: true, refundedAmountOnCharge: 1500},
		seen{status: "succeeded", moneyOut: true, refundedAmountOnCharge: 1500},
		[]string{"refund.created", "refund.updated", "charge.refund.updated"},
	},
	{
		"pending, then failed", stripetest.PendingThen(2*time.Hour, "failed"), 2 * time.Hour,
		seen{status: "pending", pending: "processing", moneyOut: true, refundedAmountOnCharge: 1500},
		seen{status: "failed", failure: "unknown", moneyOut: true, moneyBack: true},
		[]string{"refund.created", "refund.updated", "charge.refund.updated", "refund.failed"},
	},
	{
		"succeeded, then failed after days", stripetest.FailsLate(5*24*time.Hour, "lost_or_stolen_card"), 5 * 24 * time.Hour,
		seen{status: "succeeded", moneyOut: true, refundedAmountOnCharge: 1500},
		seen{status: "failed", failure: "lost_or_stolen_card", moneyOut: true, moneyBack: true},
		[]string{"refund.created", "refund.updated", "charge.refund.updated", "refund.failed"},
	},
	{
		"waiting for funds, then canceled",
		stripetest.Life{{Status: "pending", Reason: "insufficient_funds"}, {After: time.Hour, Status: "canceled"}}, time.Hour,
		seen{status: "pending", pending: "insufficient_funds", refundedAmountOnCharge: 1500},
		seen{status: "canceled", failure: "merchant_request"},
		[]string{"refund.created", "refund.updated", "charge.refund.updated"},
	},
	{
		"waiting for funds, then succeeded",
		stripetest.Life{{Status: "pending", Reason: "insufficient_funds"}, {After: time.Hour, Status: "succeeded"}}, time.Hour,
		seen{status: "pending", pending: "insufficient_funds", refundedAmountOnCharge: 1500},
		seen{status: "succeeded", moneyOut: true, refundedAmountOnCharge: 1500},
		[]string{"refund.created", "refund.updated", "charge.refund.updated"},
	},
}

func TestALifeRunsOnTheSimulatedClock(t *testing.T) {
	t.Parallel()
	for _, test := range lives {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			srv, clock := start(t, func(o *stripetest.Options) {
				o.Life = func(stripetest.Refund) stripetest.Life { return test.life }
			})
			cl := client(t, srv, fullKey)
			charged(t, srv, "ch_A", 5000)
			made, err := refund(cl, "k-1", "ch_A", 1500)
			if err != nil {
				t.Fatal(err)
			}
			look := func() seen {
				p := &stripe.RefundRetrieveParams{Expand: []*string{stripe.String("charge"), stripe.String("failure_balance_transaction")}}
				r, err := cl.V1Refunds.Retrieve(context.Background(), made.ID, p)
				if err != nil {
					t.Fatal(err)
				}
				if back := r.FailureBalanceTransaction; back != nil && (back.Amount != 1500 || back.Type != "refund_failure" || back.Source.ID != made.ID) {
					t.Errorf("failure balance transaction = %+v", back)
				}
				return seen{r.Status, r.PendingReason, r.FailureReason, r.BalanceTransaction != nil,
					r.FailureBalanceTransaction != nil, r.Charge.AmountRefunded}
			}
			if diff := cmp.Diff(test.before, look(), cmp.AllowUnexported(seen{})); diff != "" {
				t.Errorf("when made (-want +got):\n%s", diff)
			}
			clock.Add(test.after - time.Second)
			if diff := cmp.Diff(test.before, look(), cmp.AllowUnexported(seen{})); diff != "" {
				t.Errorf("a second before its turn (-want +got):\n%s", diff)
			}
			clock.Add(time.Second)
			if diff := cmp.Diff(test.then, look(), cmp.AllowUnexported(seen{})); diff != "" {
				t.Errorf("after its turn (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.events, eventTypes(srv, made.ID)); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			for _, e := range srv.Events() {
				if asked := e.Type == "refund.created" || e.Type == "charge.refunded"; asked != (e.Key == "k-1") && e.Type != "charge.succeeded" {
					t.Errorf("event %s has key %q", e.Type, e.Key)
				}
			}
		})
	}
}

func TestARefundIsHeldToTheAmountOfItsCharge(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	cl := client(t, srv, fullKey)
	charged(t, srv, "ch_A", 3000)
	for _, key := range []string{"k-1", "k-2"} {
		if _, err := refund(cl, key, "ch_A", 1000); err != nil {
			t.Fatalf("two equal partial refunds pass: %v", err)
		}
	}
	_, err := refund(cl, "k-3", "ch_A", 1001)
	if e := told(t, err); e.HTTPStatusCode != 400 || e.Param != "amount" || e.Code != "" || !strings.Contains(e.Msg, "greater than unrefunded amount") {
		t.Errorf("too much: %+v", e)
	}
	if _, err := refund(cl, "k-4", "ch_A", 1000); err != nil {
		t.Fatalf("the rest: %v", err)
	}
	_, err = refund(cl, "k-5", "ch_A", 1)
	if e := told(t, err); e.HTTPStatusCode != 400 || e.Code != stripe.ErrorCodeChargeAlreadyRefunded {
		t.Errorf("nothing left: %+v", e)
	}
	if c := srv.Charges()[0]; c.AmountRefunded != 3000 || c.Amount != 3000 {
		t.Errorf("charge = %+v", c)
	}
}

func TestAFailedRefundMayBeMadeAgain(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	cl := client(t, srv, fullKey)
	charged(t, srv, "ch_A", 3000)
	if _, err := refund(cl, "k-1", "ch_A", 3000); err != nil {
		t.Fatal(err)
	}
	if err := srv.TurnRefund(srv.Refunds()[0], stripetest.Turn{Status: "failed", Reason: "declined"}); err != nil {
		t.Fatal(err)
	}
	if _, err := refund(cl, "k-2", "ch_A", 3000); err != nil {
		t.Errorf("after the first one failed: %v", err)
	}
	if err := srv.TurnRefund(srv.Refunds()[0], stripetest.Turn{Status: "succeeded"}); err != nil {
		t.Fatal(err)
	}
	if got := srv.Refunds()[0].Status; got != "failed" {
		t.Errorf("a failed refund became %s", got)
	}
}

func TestARefundThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	for _, c := range []stripetest.Charge{
		{ID: "ch_disputed", Amount: 500, Disputed: true},
		{ID: "ch_failed", Amount: 500, Status: "failed"},
		{ID: "ch_good", Amount: 500},
	} {
		c.Account, c.Mode = "acct_1", "live"
		if _, err := srv.AddCharge(c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := srv.AddPaymentIntent(stripetest.PaymentIntent{ID: "pi_open", Account: "acct_1", Mode: "live", Amount: 500, Status: "requires_payment_method"}); err != nil {
		t.Fatal(err)
	}
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString("&metadata[k" + strconv.Itoa(i) + "]=v")
		}
		return b.String()
	}
	tests := []struct {
		name, form, code, param string
		status                  int
	}{
		{"neither charge nor intent", "amount=5", "", "", 400},
		{"charge and intent", "charge=ch_good&payment_intent=pi_open", "", "charge", 400},
		{"an unknown charge", "charge=ch_none", "resource_missing", "charge", 404},
		{"an unknown intent", "payment_intent=pi_none", "resource_missing", "payment_intent", 404},
		{"an intent without charge", "payment_intent=pi_open", "payment_intent_unexpected_state", "payment_intent", 400},
		{"a disputed charge", "charge=ch_disputed", "charge_disputed", "", 400},
		{"a failed charge", "charge=ch_failed", "", "charge", 400},
		{"an unknown reason", "charge=ch_good&reason=whim", "", "reason", 400},
		{"an unknown parameter", "charge=ch_good&colour=red", "parameter_unknown", "colour", 400},
		{"an empty charge", "charge=", "parameter_invalid_empty", "charge", 400},
		{"an amount that is no number", "charge=ch_good&amount=five", "parameter_invalid_integer", "amount", 400},
		{"an amount with a fraction", "charge=ch_good&amount=5.5", "parameter_invalid_integer", "amount", 400},
		{"no amount at all", "charge=ch_good&amount=0", "parameter_invalid_integer", "amount", 400},
		{"51 metadata keys", "charge=ch_good" + many(51), "", "metadata", 400},
		{"a long metadata key", "charge=ch_good&metadata[" + strings.Repeat("k", 41) + "]=v", "", "metadata", 400},
		{"a long metadata value", "charge=ch_good&metadata[k]=" + strings.Repeat("v", 501), "", "metadata[k]", 400},
		{"brackets in a metadata key", "charge=ch_good&metadata[a[b]]=v", "", "metadata", 400},
		{"metadata that is a text", "charge=ch_good&metadata=v", "", "metadata", 400},
		{"five levels of expansion", "charge=ch_good&expand[]=charge.customer.a.b.c", "", "expand", 400},
		{"a form that cannot be read", "charge=%zz", "", "", 400},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := post(t, srv, fullKey, "", "/v1/refunds", test.form)
			e := got.errorOf(t)
			if got.status != test.status || e.Code != test.code || e.Param != test.param || e.Type != "invalid_request_error" || e.Message == "" {
				t.Errorf("told %d %+v, want %d, code %q, param %q", got.status, e, test.status, test.code, test.param)
			}
		})
	}
	t.Cleanup(func() {
		if n := len(srv.Refunds()); n != 0 {
			t.Errorf("%d refunds were made", n)
		}
	})
}

func TestTheLargestMetadataIsKept(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	cl := client(t, srv, fullKey)
	charged(t, srv, "ch_A", 500)
	p := &stripe.RefundCreateParams{Charge: stripe.String("ch_A")}
	want := map[string]string{}
	for i := range 50 {
		want[strings.Repeat("ü", 38)+strconv.Itoa(10+i)] = strings.Repeat("🧥", 500)
	}
	p.Metadata = want
	made, err := cl.V1Refunds.Create(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, made.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func TestMetadataOfARefundIsMergedAndRemoved(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	cl := client(t, srv, fullKey)
	charged(t, srv, "ch_A", 500)
	made, err := refund(cl, "k-1", "ch_A", 500)
	if err != nil {
		t.Fatal(err)
	}
	p := &stripe.RefundUpdateParams{Metadata: map[string]string{"operation_id": "", "clerk": "7"}}
	changed, err := cl.V1Refunds.Update(context.Background(), made.ID, p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"clerk": "7"}, changed.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if e := post(t, srv, fullKey, "", "/v1/refunds/"+made.ID, "amount=1").errorOf(t); e.Code != "parameter_unknown" {
		t.Errorf("an update of the amount: %+v, want an unknown parameter", e)
	}
	// The event of the creation shows the refund as it was then.
	for e, err := range cl.V1Events.List(context.Background(), &stripe.EventListParams{Type: stripe.String("refund.created")}) {
		if err != nil {
			t.Fatal(err)
		}
		if got := e.GetObjectValue("metadata", "operation_id"); got != "op_k-1" {
			t.Errorf("snapshot has operation_id %q, want op_k-1", got)
		}
	}
}

func TestOnlyARefundThatWaitsForTheCustomerIsCanceled(t *testing.T) {
	t.Parallel()
	life := stripetest.NeedsAction()
	srv, _ := start(t, func(o *stripetest.Options) {
		o.Life = func(r stripetest.Refund) stripetest.Life {
			if r.Amount == 100 {
				return life
			}
			return nil
		}
	})
	cl := client(t, srv, fullKey)
	charged(t, srv, "ch_A", 500)
	waiting, err := refund(cl, "k-1", "ch_A", 100)
	if err != nil || waiting.Status != "requires_action" {
		t.Fatalf("refund = %+v, %v", waiting, err)
	}
	canceled, err := cl.V1Refunds.Cancel(context.Background(), waiting.ID, nil)
	if err != nil || canceled.Status != "canceled" || canceled.FailureReason != "merchant_request" {
		t.Errorf("canceled = %+v, %v", canceled, err)
	}
	done, err := refund(cl, "k-2", "ch_A", 200)
	if err != nil {
		t.Fatal(err)
	}
	_, err = cl.V1Refunds.Cancel(context.Background(), done.ID, nil)
	if e := told(t, err); e.HTTPStatusCode != 400 {
		t.Errorf("cancel of a refund that succeeded: %+v", e)
	}
	if got := srv.Charges()[0].AmountRefunded; got != 200 {
		t.Errorf("amount_refunded = %d, want 200", got)
	}
}
