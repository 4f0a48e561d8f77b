package stripetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// pay asks for a confirmed payment of 1,000 with a payment method.
func pay(cl *stripe.Client, method string, change func(*stripe.PaymentIntentCreateParams)) (*stripe.PaymentIntent, error) {
	p := &stripe.PaymentIntentCreateParams{Amount: stripe.Int64(1000), Currency: stripe.String("eur"), Confirm: stripe.Bool(true),
		PaymentMethod: stripe.String(method), Metadata: map[string]string{"operation_id": "op_1"}}
	p.SetIdempotencyKey("k-" + method)
	p.AddExpand("latest_charge")
	if change != nil {
		change(p)
	}
	return cl.V1PaymentIntents.Create(context.Background(), p)
}

func TestAPaymentGoesTheWayOfItsMethod(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	cl := client(t, srv, fullKey)
	good, err := pay(cl, "pm_card_visa", nil)
	if err != nil {
		t.Fatal(err)
	}
	c := good.LatestCharge
	if good.Status != "succeeded" || good.AmountReceived != 1000 || !c.Captured || c.AmountCaptured != 1000 ||
		c.Metadata["operation_id"] != "op_1" || c.PaymentIntent.ID != good.ID || !good.Livemode {
		t.Errorf("intent = %+v, charge = %+v", good, c)
	}
	if diff := cmp.Diff([]string{"payment_intent.created", "payment_intent.succeeded"}, eventTypes(srv, good.ID)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	for method, want := range map[string]stripe.PaymentIntentStatus{
		"pm_card_authenticationRequired": stripe.PaymentIntentStatusRequiresAction,
		"pm_usBankAccount":               stripe.PaymentIntentStatusProcessing,
	} {
		got, err := pay(cl, method, nil)
		if err != nil || got.Status != want || got.AmountReceived != 0 {
			t.Errorf("%s: %+v, %v", method, got, err)
		}
	}
}

func TestADeclinedPaymentLeavesAnIntentAndAFailedCharge(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	cl := client(t, srv, fullKey)
	for range 2 { // the second is the stored answer
		_, err := pay(cl, "pm_card_chargeDeclined", nil)
		e := told(t, err)
		if e.HTTPStatusCode != 402 || e.Type != stripe.ErrorTypeCard || e.Code != stripe.ErrorCodeCardDeclined ||
			e.PaymentIntent.ID != srv.PaymentIntents()[0].ID || e.PaymentIntent.Status != "requires_payment_method" || e.ChargeID != srv.Charges()[0].ID {
			t.Errorf("told %+v", e)
		}
	}
	if charges := srv.Charges(); len(charges) != 1 || charges[0].Status != "failed" || charges[0].FailureCode != "card_declined" {
		t.Errorf("charges = %+v", charges)
	}
	again := &stripe.PaymentIntentConfirmParams{PaymentMethod: stripe.String("pm_card_visa")}
	got, err := cl.V1PaymentIntents.Confirm(context.Background(), srv.PaymentIntents()[0].ID, again)
	if err != nil || got.Status != "succeeded" || got.LastPaymentError != nil {
		t.Errorf("with another card: %+v, %v", got, err)
	}
}

func TestAHeldPaymentIsCapturedInPartOrLetGo(t *testing.T) {
	t.Parallel()
	srv, c := start(t, nil)
	cl := client(t, srv, fullKey)
	manual := func(p *stripe.PaymentIntentCreateParams) { p.CaptureMethod = stripe.String("manual") }
	held, err := pay(cl, "pm_1", manual)
	if err != nil || held.Status != "requires_capture" || held.AmountCapturable != 1000 || held.LatestCharge.Captured {
		t.Fatalf("held = %+v, %v", held, err)
	}
	tooMuch := &stripe.PaymentIntentCaptureParams{AmountToCapture: stripe.Int64(1001)}
	_, err = cl.V1PaymentIntents.Capture(context.Background(), held.ID, tooMuch)
	if e := told(t, err); e.Param != "amount_to_capture" {
		t.Errorf("told %+v", e)
	}
	part := &stripe.PaymentIntentCaptureParams{AmountToCapture: stripe.Int64(700), Expand: []*string{stripe.String("latest_charge")}}
	got, err := cl.V1PaymentIntents.Capture(context.Background(), held.ID, part)
	if err != nil || got.Status != "succeeded" || got.AmountReceived != 700 || got.LatestCharge.AmountCaptured != 700 || got.LatestCharge.AmountRefunded != 300 {
		t.Errorf("captured = %+v, %v", got, err)
	}
	other, err := pay(cl, "pm_2", manual)
	if err != nil {
		t.Fatal(err)
	}
	c.Add(time.Hour)
	let, err := cl.V1PaymentIntents.Cancel(context.Background(), other.ID, &stripe.PaymentIntentCancelParams{CancellationReason: stripe.String("abandoned")})
	if err != nil || let.Status != "canceled" || let.CancellationReason != "abandoned" || let.CanceledAt != c.Now().Unix() || let.AmountCapturable != 0 {
		t.Errorf("canceled = %+v, %v", let, err)
	}
	_, err = cl.V1PaymentIntents.Cancel(context.Background(), held.ID, nil)
	if e := told(t, err); e.Code != stripe.ErrorCodePaymentIntentUnexpectedState || e.PaymentIntent == nil {
		t.Errorf("cancel of a payment that succeeded: %+v", e)
	}
}

func TestAnIntentIsRefundedThroughItsCharge(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	cl := client(t, srv, fullKey)
	seeded, err := srv.AddPaymentIntent(stripetest.PaymentIntent{Account: "acct_1", Mode: "live", Amount: 900, Currency: "EUR", Customer: "cus_1"})
	if err != nil {
		t.Fatal(err)
	}
	made, err := cl.V1Refunds.Create(context.Background(), &stripe.RefundCreateParams{PaymentIntent: stripe.String(seeded.ID)})
	if err != nil || made.Amount != 900 || made.Currency != "eur" || made.PaymentIntent.ID != seeded.ID || made.Charge.ID != seeded.LatestCharge {
		t.Fatalf("refund = %+v, %v", made, err)
	}
	var charges []string
	for ch, err := range cl.V1Charges.List(context.Background(), &stripe.ChargeListParams{Customer: stripe.String("cus_1")}) {
		if err != nil {
			t.Fatal(err)
		}
		if !ch.Refunded || ch.AmountRefunded != 900 {
			t.Errorf("charge = %+v", ch)
		}
		charges = append(charges, ch.ID)
	}
	if diff := cmp.Diff([]string{seeded.LatestCharge}, charges); diff != "" {
		t.Errorf("charges of the customer (-want +got):\n%s", diff)
	}
}

func TestAnIntentThatIsNotConfirmedWaits(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	cl := client(t, srv, fullKey)
	for form, want := range map[string]string{
		"amount=5&currency=eur":                                         "requires_payment_method",
		"amount=5&currency=eur&payment_method=pm_card_visa":             "requires_confirmation",
		"amount=5&currency=eur&automatic_payment_methods[enabled]=true": "requires_payment_method",
	} {
		if got := post(t, srv, fullKey, "", "/v1/payment_intents", form); got.status != 200 {
			t.Errorf("%s: %d %s", form, got.status, got.body)
		}
		intents := srv.PaymentIntents()
		if got := intents[len(intents)-1]; got.Status != want || got.LatestCharge != "" {
			t.Errorf("%s: %+v, want %s", form, got, want)
		}
	}
	for form, param := range map[string]string{"amount=5": "currency", "currency=eur": "amount", "amount=0&currency=eur": "amount"} {
		got := post(t, srv, fullKey, "", "/v1/payment_intents", form)
		if e := got.errorOf(t); got.status != 400 || e.Param != param {
			t.Errorf("%s: %d %+v, want param %s", form, got.status, e, param)
		}
	}
	id := srv.PaymentIntents()[0].ID
	changed, err := cl.V1PaymentIntents.Update(context.Background(), id, &stripe.PaymentIntentUpdateParams{
		Description: stripe.String("a coat"), Metadata: map[string]string{"clerk": "7"}})
	if err != nil || changed.Description != "a coat" || changed.Metadata["clerk"] != "7" {
		t.Errorf("changed = %+v, %v", changed, err)
	}
	for _, i := range srv.PaymentIntents() {
		if i.PaymentMethod != "" {
			continue
		}
		_, err := cl.V1PaymentIntents.Confirm(context.Background(), i.ID, nil)
		if e := told(t, err); e.Code != stripe.ErrorCodePaymentIntentUnexpectedState {
			t.Errorf("confirm without a method: %+v", e)
		}
	}
}
