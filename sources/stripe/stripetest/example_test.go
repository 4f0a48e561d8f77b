package stripetest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// A refund is made, but its answer is lost; a repeat under the same key gets it.
func Example() {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	srv, err := stripetest.Start(stripetest.Options{
		Now:      func() time.Time { return now },
		Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_example"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	if _, err := srv.AddCharge(stripetest.Charge{ID: "ch_1", Account: "acct_1", Mode: "live", Amount: 5000, Currency: "eur"}); err != nil {
		fmt.Println(err)
		return
	}
	srv.Script(stripetest.Fault{Kind: stripetest.Closed, Method: "POST", Executed: true})

	cl := stripe.NewClient("sk_live_example", stripe.WithBackends(stripe.NewBackendsWithConfig(&stripe.BackendConfig{
		URL: stripe.String(srv.URL()), MaxNetworkRetries: stripe.Int64(0),
		LeveledLogger: &stripe.LeveledLogger{Level: stripe.LevelNull},
	})))
	for range 2 {
		p := &stripe.RefundCreateParams{Charge: stripe.String("ch_1"), Amount: stripe.Int64(1500)}
		p.SetIdempotencyKey("k-1")
		r, err := cl.V1Refunds.Create(context.Background(), p)
		if err != nil {
			fmt.Println("no answer; refunds at the provider:", len(srv.Refunds()))
			continue
		}
		fmt.Println(r.Status, "replayed:", r.LastResponse.Header.Get("Idempotent-Replayed"), "refunds:", len(srv.Refunds()))
	}
	// Output:
	// no answer; refunds at the provider: 1
	// succeeded replayed: true refunds: 1
}

// An endpoint is down when a refund is made, and gets its event at the next try.
func ExampleServer_AddEndpoint() {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	srv, err := stripetest.Start(stripetest.Options{
		Now:      func() time.Time { return now },
		Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_example"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	status := http.StatusServiceUnavailable
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer receiver.Close()
	if _, err := srv.AddEndpoint(stripetest.Endpoint{
		URL: receiver.URL, Account: "acct_1", Mode: "live", Secrets: []string{"whsec_example"}, Types: []string{"refund.*"},
	}); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := srv.AddRefund(stripetest.Refund{Account: "acct_1", Mode: "live", Charge: "ch_1", Amount: 1500}); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		if _, err := srv.Post(context.Background()); err != nil {
			fmt.Println(err)
			return
		}
		status = http.StatusOK
		if next, waits := srv.NextPost(); waits {
			now = next
		}
	}
	for _, d := range srv.Deliveries() {
		fmt.Println(d.At.Format(time.TimeOnly), d.Type, "attempt", d.Attempt, "status", d.Status)
	}
	// Output:
	// 09:00:00 refund.created attempt 1 status 503
	// 09:05:00 refund.created attempt 2 status 200
}
