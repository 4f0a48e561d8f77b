package stripetest_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// Keys and accounts of most tests.
const (
	fullKey  = "sk_live_full_0001"
	readKey  = "rk_live_read_0001"
	testKey  = "sk_test_full_0001"
	otherKey = "sk_live_other_0002"
)

// clock is the simulated clock of a test.
type clock struct {
	mu  sync.Mutex // guards now: the server reads it from its own goroutines
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// start gives a server with two live accounts, one in test mode too, and one
// connected account, that ends with the test.
func start(t *testing.T, change func(*stripetest.Options)) (*stripetest.Server, *clock) {
	t.Helper()
	c := newClock()
	opt := stripetest.Options{Now: c.Now, Seed: 1, Accounts: []stripetest.Account{
		{ID: "acct_1", Mode: "live", Key: fullKey, ReadKey: readKey},
		{ID: "acct_1", Mode: "test", Key: testKey},
		{ID: "acct_2", Mode: "live", Key: otherKey},
		{ID: "acct_shop", Mode: "live", Platform: "acct_1"},
	}}
	if change != nil {
		change(&opt)
	}
	srv, err := stripetest.Start(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return srv, c
}

// client is the real client: no retry of its own, and no connection kept, since
// net/http sends again over a kept one by itself.
func client(t *testing.T, srv *stripetest.Server, key string) *stripe.Client {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	t.Cleanup(transport.CloseIdleConnections)
	backend := stripe.GetBackendWithConfig(stripe.APIBackend, &stripe.BackendConfig{
		URL:               stripe.String(srv.URL()),
		MaxNetworkRetries: stripe.Int64(0),
		HTTPClient:        &http.Client{Transport: transport, Timeout: 10 * time.Second},
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
	})
	return stripe.NewClient(key, stripe.WithBackends(&stripe.Backends{API: backend}))
}

// charged seeds a charge of the amount in acct_1 live.
func charged(t *testing.T, srv *stripetest.Server, id string, amount int64) {
	t.Helper()
	if _, err := srv.AddCharge(stripetest.Charge{ID: id, Account: "acct_1", Mode: "live", Amount: amount, Currency: "eur"}); err != nil {
		t.Fatal(err)
	}
}

// refund asks for a refund under a key.
func refund(cl *stripe.Client, key, charge string, amount int64) (*stripe.Refund, error) {
	p := &stripe.RefundCreateParams{Charge: stripe.String(charge), Amount: stripe.Int64(amount)}
	p.SetIdempotencyKey(key)
	p.AddMetadata("operation_id", "op_"+key)
	return cl.V1Refunds.Create(context.Background(), p)
}

func TestARefundIsMadeOnceAndShownWithItsCharge(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	cl := client(t, srv, fullKey)
	charged(t, srv, "ch_A", 5000)
	made, err := refund(cl, "k-1", "ch_A", 1500)
	if err != nil {
		t.Fatal(err)
	}
	if made.ID == "" || made.Status != stripe.RefundStatusSucceeded || made.Amount != 1500 || made.Currency != "eur" ||
		made.Metadata["operation_id"] != "op_k-1" || made.Created != srv.Refunds()[0].Created.Unix() {
		t.Errorf("refund = %+v", made)
	}
	p := &stripe.RefundRetrieveParams{}
	p.AddExpand("charge")
	read, err := cl.V1Refunds.Retrieve(context.Background(), made.ID, p)
	if err != nil {
		t.Fatal(err)
	}
	if read.Charge.AmountRefunded != 1500 || read.Charge.Amount != 5000 || read.Charge.Refunded {
		t.Errorf("charge = %+v", read.Charge)
	}
	events := 0
	for e, err := range cl.V1Events.List(context.Background(), &stripe.EventListParams{Type: stripe.String("refund.*")}) {
		if err != nil {
			t.Fatal(err)
		}
		events++
		if e.Request.IdempotencyKey != "k-1" || e.Request.ID != made.LastResponse.RequestID {
			t.Errorf("event request = %+v, want key k-1 and request %s", e.Request, made.LastResponse.RequestID)
		}
	}
	if events != 1 {
		t.Errorf("%d refund events, want 1", events)
	}
	if srv.Writes() != 1 {
		t.Errorf("%d writes, want 1", srv.Writes())
	}
}
