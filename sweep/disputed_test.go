package sweep

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

func TestAPaymentThatASweepSeesFirstIsReversedByTheDisputeThatItsBankHadWon(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(*hooked) (Outcome, error){
		"sweep": func(h *hooked) (Outcome, error) { return h.sweep.Run(t.Context(), Options{Now: h.now}) },
		"dry run": func(h *hooked) (Outcome, error) {
			dry := *h.sweep
			dry.Ledger = NewDry(h.ledger)
			return dry.Run(t.Context(), Options{Now: h.now})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			h.down = true
			h.intake.Kinds = map[recon.SourceName][]string{testSource: {"payment_intent"}}
			h.openPayment("indeterminate")
			h.down = false
			h.post2(h.disputed("evt_d", "charge.dispute.closed", "lost"))
			h.take()
			h.wantState(intent{id: "op_pay"}, recon.Unknown)
			if _, err := h.stripe.AddPaymentIntent(stripetest.PaymentIntent{
				ID: "pi_1", Account: testAccount, Mode: "live", Amount: 5000, Currency: "eur", Status: "succeeded", LatestCharge: "ch_1",
				Metadata: map[string]string{testMarker: "op_pay"},
			}); err != nil {
				t.Fatal(err)
			}
			h.pass(5 * time.Minute)
			out, err := run(h)
			if err != nil || out.ManualReview != 1 || out.Succeeded != 0 || out.Findings[recon.FindReversed] != 1 {
				t.Fatalf("%+v, %v", out, err)
			}
		})
	}
}
