package stripe_test

import (
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// BenchmarkADelivery is what one event of a refund costs before and after it is stored.
func BenchmarkADelivery(b *testing.B) {
	src, err := stripe.New("stripe-main", stripe.Settings{Marker: marker, APIKey: recon.NewSecret(liveKey), Account: "acct_1",
		Webhook: stripe.WebhookSettings{Secrets: []recon.Secret{recon.NewSecret(oldHookSecret), recon.NewSecret(hookSecret)}}}, stripe.Options{})
	if err != nil {
		b.Fatal(err)
	}
	body := eventOf("refund.created", wholeRefund).Body
	header := signed(now, body, hookSecret)
	if header.Get("Stripe-Signature") != stripetest.Sign(now, body, hookSecret) {
		b.Fatal("the fake signs otherwise")
	}
	e, err := src.Verify(header, body, now)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			if _, err := src.Verify(header, body, now); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if shown, err := src.Decode(e); err != nil || len(shown.Effects) != 1 {
				b.Fatal(shown, err)
			}
		}
	})
}
