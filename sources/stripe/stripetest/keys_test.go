package stripetest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// told gives the provider's error, or fails the test.
func told(t *testing.T, err error) *stripe.Error {
	t.Helper()
	e, ok := errors.AsType[*stripe.Error](err)
	if !ok {
		t.Fatalf("error = %v, want one of the provider", err)
	}
	return e
}

func TestAKeyReplaysItsStoredAnswer(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	cl := client(t, srv, fullKey)
	charged(t, srv, "ch_A", 5000)
	first, err := refund(cl, "k-1", "ch_A", 1500)
	if err != nil {
		t.Fatal(err)
	}
	again, err := refund(cl, "k-1", "ch_A", 1500)
	if err != nil {
		t.Fatal(err)
	}
	header := again.LastResponse.Header
	if again.ID != first.ID || header.Get("Idempotent-Replayed") != "true" ||
		header.Get("Original-Request") != first.LastResponse.RequestID ||
		again.LastResponse.RequestID == first.LastResponse.RequestID || again.LastResponse.IdempotencyKey != "k-1" {
		t.Errorf("replay of %s (%s) = %s with %v", first.ID, first.LastResponse.RequestID, again.ID, header)
	}
	if first.LastResponse.Header.Get("Idempotent-Replayed") != "" {
		t.Error("the first answer says that it is a replay")
	}
	if n := len(srv.Refunds()); n != 1 {
		t.Errorf("%d refunds, want 1", n)
	}
}

func TestAKeyWithOtherParametersOrEndpointIsRefused(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	cl := client(t, srv, fullKey)
	charged(t, srv, "ch_A", 5000)
	if _, err := refund(cl, "k-1", "ch_A", 1500); err != nil {
		t.Fatal(err)
	}
	_, err := refund(cl, "k-1", "ch_A", 1600)
	if e := told(t, err); e.HTTPStatusCode != 400 || e.Type != stripe.ErrorTypeIdempotency || e.Code != "" {
		t.Errorf("other parameters: %+v", e)
	}
	p := &stripe.PaymentIntentCreateParams{Amount: stripe.Int64(1500), Currency: stripe.String("eur")}
	p.SetIdempotencyKey("k-1")
	_, err = cl.V1PaymentIntents.Create(context.Background(), p)
	if e := told(t, err); e.HTTPStatusCode != 400 || e.Type != stripe.ErrorTypeIdempotency || e.Code != "" {
		t.Errorf("other endpoint: %+v", e)
	}
}

func TestAKeyBelongsToOneAccountAndMode(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	for _, place := range []struct{ account, mode, key string }{
		{"acct_1", "live", fullKey}, {"acct_1", "test", testKey}, {"acct_2", "live", otherKey},
	} {
		if _, err := srv.AddCharge(stripetest.Charge{ID: "ch_A", Account: place.account, Mode: place.mode, Amount: 5000}); err != nil {
			t.Fatal(err)
		}
		made, err := refund(client(t, srv, place.key), "k-1", "ch_A", 1500)
		if err != nil {
			t.Fatal(err)
		}
		if made.LastResponse.Header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%s %s: replayed from another store", place.account, place.mode)
		}
	}
	if n := len(srv.Refunds()); n != 3 {
		t.Errorf("%d refunds, want 3", n)
	}
}

func TestAForgottenKeyMakesASecondRefund(t *testing.T) {
	t.Parallel()
	srv, clock := start(t, nil)
	cl := client(t, srv, fullKey)
	charged(t, srv, "ch_A", 5000)
	first, err := refund(cl, "k-1", "ch_A", 1500)
	if err != nil {
		t.Fatal(err)
	}
	clock.Add(24*time.Hour - time.Second)
	if again, err := refund(cl, "k-1", "ch_A", 1500); err != nil || again.ID != first.ID {
		t.Fatalf("before 24 h: %v %v, want %s", again, err, first.ID)
	}
	clock.Add(time.Second)
	second, err := refund(cl, "k-1", "ch_A", 1500)
	if err != nil || second.ID == first.ID {
		t.Fatalf("after 24 h: %v %v, want a second refund", second, err)
	}
}

func TestWhatIsNotStoredMayBeRepeatedUnderTheSameKey(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		fault stripetest.Fault
		code  stripe.ErrorCode
		http  int
	}{
		{"a full limiter", stripetest.Fault{Kind: stripetest.RateLimited}, stripe.ErrorCodeRateLimit, 429},
		{"a held lock", stripetest.Fault{Kind: stripetest.LockTimeout}, stripe.ErrorCodeLockTimeout, 429},
		{"a refused key of the API", stripetest.Fault{Kind: stripetest.Unauthorized}, "api_key_expired", 401},
		{"a missing permission", stripetest.Fault{Kind: stripetest.Forbidden}, "", 403},
		{"another copy that runs", stripetest.Fault{Kind: stripetest.KeyInUse}, stripe.ErrorCodeIdempotencyKeyInUse, 409},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			srv, _ := start(t, nil)
			cl := client(t, srv, fullKey)
			charged(t, srv, "ch_A", 5000)
			srv.Script(test.fault)
			_, err := refund(cl, "k-1", "ch_A", 1500)
			if e := told(t, err); e.HTTPStatusCode != test.http || e.Code != test.code {
				t.Errorf("told %d %q, want %d %q", e.HTTPStatusCode, e.Code, test.http, test.code)
			}
			if n := len(srv.Refunds()); n != 0 {
				t.Fatalf("%d refunds before the repeat, want none", n)
			}
			// Other parameters show that the key was not kept either.
			made, err := refund(cl, "k-1", "ch_A", 1600)
			if err != nil || made.LastResponse.Header.Get("Idempotent-Replayed") != "" {
				t.Errorf("repeat: %v, %v", made, err)
			}
		})
	}
}

func TestAValidationFailureIsNotStored(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	cl := client(t, srv, fullKey)
	charged(t, srv, "ch_A", 5000)
	_, err := refund(cl, "k-1", "ch_A", -5)
	if e := told(t, err); e.HTTPStatusCode != 400 || e.Param != "amount" || e.Code != stripe.ErrorCodeParameterInvalidInteger {
		t.Errorf("told %+v", e)
	}
	if _, err := refund(cl, "k-1", "ch_A", 1500); err != nil {
		t.Errorf("repeat with right parameters: %v", err)
	}
}

func TestARefusalByBusinessRulesIsStored(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	cl := client(t, srv, fullKey)
	charged(t, srv, "ch_A", 5000)
	for range 2 {
		_, err := refund(cl, "k-1", "ch_A", 6000)
		if e := told(t, err); e.HTTPStatusCode != 400 || e.Param != "amount" || e.Type != stripe.ErrorTypeInvalidRequest {
			t.Errorf("told %+v", e)
		}
	}
	if calls := srv.Calls(); calls[0].Replayed || !calls[1].Replayed {
		t.Errorf("replayed: %v then %v, want false then true", calls[0].Replayed, calls[1].Replayed)
	}
}

func TestAKeyIsInUseWhileItsFirstRequestRuns(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	charged(t, srv, "ch_A", 5000)
	hold := make(chan struct{})
	srv.Script(stripetest.Fault{Method: "POST", Hold: hold})
	first := make(chan error, 1)
	go func() {
		_, err := refund(client(t, srv, fullKey), "k-1", "ch_A", 1500)
		first <- err
	}()
	for len(srv.Calls()) == 0 {
		time.Sleep(time.Millisecond)
	}
	_, err := refund(client(t, srv, fullKey), "k-1", "ch_A", 1500)
	if e := told(t, err); e.HTTPStatusCode != 409 || e.Code != stripe.ErrorCodeIdempotencyKeyInUse {
		t.Errorf("told %+v", e)
	}
	close(hold)
	if err := <-first; err != nil {
		t.Errorf("the first request: %v", err)
	}
	if again, err := refund(client(t, srv, fullKey), "k-1", "ch_A", 1500); err != nil || again.LastResponse.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("afterwards: %v, want the stored answer", err)
	}
}

func TestATooLongKeyIsRefused(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	charged(t, srv, "ch_A", 5000)
	// The real client refuses such a key before it sends.
	for length, want := range map[int]int{255: 200, 256: 400} {
		got := post(t, srv, fullKey, strings.Repeat("k", length), "/v1/refunds", "charge=ch_A&amount=1")
		if got.status != want {
			t.Errorf("a key of %d characters: %d, want %d", length, got.status, want)
		}
	}
}
