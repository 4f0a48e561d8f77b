package stripe_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
)

func fuzzReceiver(f *testing.F) *stripe.Source {
	f.Helper()
	src, err := stripe.New("stripe-main", stripe.Settings{Marker: marker, APIKey: recon.NewSecret(liveKey), Account: "acct_1",
		Webhook: stripe.WebhookSettings{Secrets: []recon.Secret{recon.NewSecret(hookSecret)}}}, stripe.Options{})
	if err != nil {
		f.Fatal(err)
	}
	return src
}

// Whatever stands in the header, only a signature made with the secret is taken.
func FuzzSignatureHeader(f *testing.F) {
	src := fuzzReceiver(f)
	body := []byte(plainEvent)
	good := mark(now, body, hookSecret)
	for _, header := range []string{ // those without a right mark are in testdata
		fmt.Sprintf("t=%d,v1=%s", now.Unix(), good), fmt.Sprintf("t=%d,v1=%s,v0=00", now.Unix(), good), "v1=" + good, "t=1,t=2,v1=" + good,
	} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		_, err := src.Verify(http.Header{"Stripe-Signature": {header}}, body, now)
		lower := strings.ToLower(header)
		signed := strings.Contains(lower, "v1="+good) && strings.Contains(header, fmt.Sprintf("t=%d", now.Unix()))
		if err == nil && !signed {
			t.Errorf("taken: %q", header)
		}
		if err != nil && why(err) == "" {
			t.Errorf("%v is no refusal", err)
		}
	})
}

// Any body that is signed is taken or refused, in finite time, and what is taken can be
// stored and decoded.
func FuzzEventBody(f *testing.F) {
	src := fuzzReceiver(f)
	for _, body := range []string{
		plainEvent, string(eventOf("refund.created", wholeRefund).Body), string(eventOf("charge.refunded", wholeCharge).Body),
		string(eventOf("payment_intent.succeeded", wholeIntent).Body),
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		e, err := src.Verify(signed(now, body, hookSecret), body, now)
		if err != nil {
			if why(err) != sources.NotReadable {
				t.Errorf("refused as %v", err)
			}
			return
		}
		for name, text := range map[string]string{"id": e.ID, "type": e.Type, "account": e.Account, "mode": e.Mode} {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || len(text) > 255 {
				t.Errorf("%s is %q", name, text)
			}
		}
		if y := e.CreatedAt.Year(); e.ID == "" || e.Type == "" || y < 2000 || y >= 2100 || !bytes.Equal(e.Body, body) {
			t.Errorf("event %+v", e)
		}
		e.Account, e.Mode = "acct_1", "live"
		decodeAnything(t, src, e)
	})
}

// Any object in an event of any type shows nothing, or what can be stored.
func FuzzEventObject(f *testing.F) {
	src := fuzzReceiver(f)
	for typ, object := range map[string]string{"refund.created": wholeRefund, "charge.refunded": wholeCharge, "payment_intent.succeeded": wholeIntent} {
		f.Add(typ, []byte(object))
	}
	f.Fuzz(func(t *testing.T, typ string, object []byte) {
		e := eventOf("x", string(object))
		e.Type = typ
		decodeAnything(t, src, e)
	})
}

func decodeAnything(t *testing.T, src *stripe.Source, e recon.Event) {
	t.Helper()
	shown, err := src.Decode(e)
	again, _ := src.Decode(e)
	if diff := cmp.Diff(shown, again); diff != "" {
		t.Errorf("decoded twice:\n%s", diff)
	}
	if err != nil {
		return
	}
	for _, effect := range shown.Effects {
		if !effect.Status.Valid() || effect.ID == "" || effect.Account != e.Account || effect.Mode != e.Mode || effect.Money.Minor < 0 ||
			strings.ContainsRune(effect.ID+effect.Reference+effect.Key+effect.FailureReason+effect.Parent+effect.NaturalReference, 0) {
			t.Errorf("effect %+v", effect)
		}
	}
	for _, h := range shown.Hints {
		if h.ID == "" && h.Parent == "" || strings.ContainsRune(h.ID+h.Parent+h.Reference+h.Key, 0) {
			t.Errorf("hint %+v", h)
		}
	}
	if !e.Signed && len(shown.Effects) > 0 {
		t.Error("an event that nobody vouches for shows effects")
	}
}
