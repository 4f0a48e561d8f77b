package sweep

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// Stripe's events tell of everything in an account. Only what our actions make can lack
// its operation.
func TestWhatNoActionMakesIsNoOrphan(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	if _, err := h.stripe.AddPaymentIntent(stripetest.PaymentIntent{ID: "pi_1", Account: testAccount, Mode: "live", Amount: 5000, Currency: "eur", LatestCharge: "ch_1"}); err != nil {
		t.Fatal(err)
	}
	h.strange("re_1", "ch_2", 700, h.now(), nil)
	h.deliver()
	h.take()
	h.pass(3 * time.Hour)
	r := h.audit(h.since())
	effects := classes{rules.ClassOrphan: 1, rules.ClassNotOurs: 1, rules.ClassExplained: 1} // the charge follows from its intent
	wantClasses(t, r, classes{}, effects)
	if len(r.Findings) != 1 || r.Findings[0].Kind != recon.FindOrphan || r.Findings[0].EffectIDs[0] != "re_1" {
		t.Errorf("findings: %+v", r.Findings)
	}
}
