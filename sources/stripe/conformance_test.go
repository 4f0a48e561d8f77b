package stripe_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/sourcetest"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

const (
	marker  = "op_id"
	liveKey = "rk_live_TESTONLY_1"
	testKey = "rk_test_TESTONLY_2"
)

// clock is a simulated clock.
type clock struct {
	mu  sync.Mutex // guards now: the fake's goroutines read it
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

// fake is a fake Stripe with acct_1 live and test, and the connected acct_shop.
type fake struct {
	*clock
	*stripetest.Server
}

func newFake(t *testing.T, changes ...func(*stripetest.Options)) fake {
	t.Helper()
	c := newClock()
	options := stripetest.Options{Now: c.Now, Seed: 1, Accounts: []stripetest.Account{
		{ID: "acct_1", Mode: "live", ReadKey: liveKey, Key: "sk_live_TESTONLY_1"},
		{ID: "acct_1", Mode: "test", ReadKey: testKey},
		{ID: "acct_shop", Mode: "live", Platform: "acct_1"},
	}}
	for _, change := range changes {
		change(&options)
	}
	srv, err := stripetest.Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	return fake{clock: c, Server: srv}
}

// settings are those of a source with all three places of the fake.
func (f fake) settings() stripe.Settings {
	return stripe.Settings{
		System: "stripe", Marker: marker, APIURL: f.URL(), APIKey: recon.NewSecret(liveKey), PerSecond: 100_000,
		Accounts: []stripe.AccountSettings{
			{Account: "acct_1", Mode: "live"},
			{Account: "acct_1", Mode: "test", APIKey: recon.NewSecret(testKey)},
			{Account: "acct_shop", Mode: "live", Connected: true},
		},
	}
}

// open makes a source that keeps no connections.
func open(t *testing.T, s stripe.Settings, o stripe.Options) *stripe.Source {
	t.Helper()
	if o.Transport == nil {
		o.Transport = bare
	}
	src, err := stripe.New("stripe-main", s, o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// provider is the fake as a provider of effects of one kind.
type provider struct {
	fake
	kindOfEffect
	mail     *mailbox
	heedless *atomic.Bool
	hanging  *hanging
}

// kindOfEffect is a kind as the suite makes and ends it.
type kindOfEffect struct {
	name   string
	parent string // prefix of the parents that the suite lists by; empty: by none
	make   func(f fake, e sourcetest.Effect, metadata map[string]string) (id string, err error)
	// fail lets an effect fail late; nil: what is completed stays so.
	fail  func(f fake, at recon.Account, id string) error
	bare  bool
	quiet bool
}

func (p provider) Source(t *testing.T, pageSize int) sources.Source {
	set := p.settings()
	set.Webhook.Secrets = []recon.Secret{recon.NewSecret(hookSecret)}
	return open(t, set, stripe.Options{PageSize: pageSize, Transport: p})
}

// RoundTrip carries a request to the fake.
func (p provider) RoundTrip(r *http.Request) (*http.Response, error) {
	return p.hanging.watch(r, p.carry)
}

// hanging plays the time-outs of a client whose provider hangs: it gives a request up soon
// after the fake let it hang, and no other one, however loaded the machine is.
type hanging struct {
	mu      sync.Mutex
	waiting map[*http.Request]context.CancelCauseFunc
}

// watch carries a request and reads its reply.
func (h *hanging) watch(r *http.Request, carry func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	h.mu.Lock()
	h.waiting[r] = cancel
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting, r)
	}()
	resp, err := carry(r.WithContext(ctx))
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close() // it was read to its end, or broke off
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), broken{err}))
	return resp, nil
}

// giveUp ends the requests that are under way, as a client's time-out would.
func (h *hanging) giveUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, cancel := range h.waiting {
		time.AfterFunc(60*time.Millisecond, func() { cancel(context.DeadlineExceeded) })
	}
}

// broken is what comes after the part of a body that came: its fault, or the end.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	return 0, io.EOF
}

// carry sends a request, without its window where that is ignored.
func (p provider) carry(r *http.Request) (*http.Response, error) {
	if p.heedless.Load() {
		r = r.Clone(r.Context())
		q := r.URL.Query()
		q.Del("created[gte]")
		q.Del("created[lt]")
		r.URL.RawQuery = q.Encode()
	}
	return bare.RoundTrip(r)
}

func (p provider) IgnoreWindows() { p.heedless.Store(true) }

// bare keeps no connections: over a kept one net/http sends a GET again by itself, and
// the requests could not be counted.
var bare = &http.Transport{DisableKeepAlives: true}

func (p provider) Advance(d time.Duration) { p.Add(d) }

func (p provider) Make(t *testing.T, e sourcetest.Effect) string {
	t.Helper()
	metadata := map[string]string{"customer": "Jane"}
	if e.Reference != "" {
		metadata[marker] = e.Reference
	}
	id, err := p.make(p.fake, e, metadata)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func makeRefund(f fake, e sourcetest.Effect, metadata map[string]string) (string, error) {
	r, err := f.AddRefund(stripetest.Refund{Account: e.At.Account, Mode: e.At.Mode, Charge: e.Parent, Key: e.Key,
		Amount: e.Money.Minor, Currency: e.Money.Currency, Metadata: metadata})
	return r.ID, err
}

func makeCharge(f fake, e sourcetest.Effect, metadata map[string]string) (string, error) {
	c, err := f.AddCharge(stripetest.Charge{Account: e.At.Account, Mode: e.At.Mode, PaymentIntent: e.Parent, Key: e.Key,
		Amount: e.Money.Minor, Currency: e.Money.Currency, Metadata: metadata})
	return c.ID, err
}

func makeIntent(f fake, e sourcetest.Effect, metadata map[string]string) (string, error) {
	i, err := f.AddPaymentIntent(stripetest.PaymentIntent{Account: e.At.Account, Mode: e.At.Mode, Customer: e.Parent, Key: e.Key,
		Amount: e.Money.Minor, Currency: e.Money.Currency, Metadata: metadata})
	return i.ID, err
}

func failRefund(f fake, at recon.Account, id string) error {
	r := stripetest.Refund{ID: id, Account: at.Account, Mode: at.Mode}
	return f.TurnRefund(r, stripetest.Turn{Status: "failed", Reason: "expired_or_canceled_card"})
}

// resource makes an object of a further kind in a status, under a parent that a field names.
func resource(kind, status, under string) func(fake, sourcetest.Effect, map[string]string) (string, error) {
	return func(f fake, e sourcetest.Effect, metadata map[string]string) (string, error) {
		fields := map[string]any{}
		if under != "" {
			fields[under] = e.Parent
		}
		switch kind {
		case "customer":
			fields["name"], fields["email"] = "Jane", "jane@example.com"
		case "checkout.session":
			fields["payment_status"] = "paid"
		}
		r, err := f.AddResource(stripetest.Resource{Kind: kind, Account: e.At.Account, Mode: e.At.Mode, Key: e.Key,
			Amount: e.Money.Minor, Currency: e.Money.Currency, Status: status, Metadata: metadata, Fields: fields})
		return r.ID, err
	}
}

// turns lets an object of a further kind take a status.
func turns(kind, status string) func(fake, recon.Account, string) error {
	return func(f fake, at recon.Account, id string) error {
		return f.TurnResource(stripetest.Resource{Kind: kind, ID: id, Account: at.Account, Mode: at.Mode}, stripetest.Turn{Status: status})
	}
}

func reverse(f fake, at recon.Account, id string) error {
	for _, r := range f.Resources("transfer") {
		if r.ID == id && r.Account == at.Account && r.Mode == at.Mode {
			return f.ReverseTransfer(r, r.Amount)
		}
	}
	return errors.New("no such transfer")
}

func (p provider) FailLate(t *testing.T, e sourcetest.Effect, id string) {
	t.Helper()
	if err := p.fail(p.fake, e.At, id); err != nil {
		t.Fatal(err)
	}
}

func (p provider) SetLag(d time.Duration) {
	p.Server.SetLag(stripetest.Lag{List: d, Retrieve: d, Search: d, Events: d})
}

func (p provider) Break(f sourcetest.Fault, good int) {
	var n atomic.Int64
	fault := faults[f]
	fault.Times = stripetest.Always
	// The question for the account itself is not one of those that a test counts.
	fault.Match = func(c stripetest.Call) bool {
		hit := c.Path != "/v1/account" && n.Add(1) > int64(good)
		if hit && f == sourcetest.Hangs {
			p.hanging.giveUp()
		}
		return hit
	}
	p.Script(fault)
}

func (p provider) Mend() { p.ClearFaults() }

func (p provider) Requests() (all, writes int) {
	for _, n := range p.Counts() {
		all += n
	}
	return all, p.Writes()
}

var faults = map[sourcetest.Fault]stripetest.Fault{
	sourcetest.TooMany:   {Kind: stripetest.RateLimited},
	sourcetest.Broken:    {Kind: stripetest.ServerError},
	sourcetest.Proxy:     {Kind: stripetest.ProxyPage},
	sourcetest.Hangs:     {Kind: stripetest.Slow, Wait: time.Minute},
	sourcetest.Cut:       {Kind: stripetest.Truncated},
	sourcetest.NotJSON:   {Kind: stripetest.NotJSON},
	sourcetest.Empty:     {Kind: stripetest.EmptyObject},
	sourcetest.Closes:    {Kind: stripetest.Closed},
	sourcetest.NoKey:     {Kind: stripetest.Unauthorized},
	sourcetest.Forbidden: {Kind: stripetest.Forbidden},
}

func TestTheSourceKeepsTheContract(t *testing.T) {
	t.Parallel()
	for _, kind := range []kindOfEffect{
		{name: "charge", parent: "pi_", make: makeCharge},
		{name: "checkout_session", parent: "pi_", make: resource("checkout.session", "complete", "payment_intent"), quiet: true},
		{name: "credit_note", parent: "in_", make: resource("credit_note", "issued", "invoice"), fail: turns("credit_note", "void")},
		{name: "customer", make: resource("customer", "", ""), bare: true},
		{name: "dispute", parent: "ch_", make: resource("dispute", "won", "charge")},
		{name: "invoice", parent: "cus_", make: resource("invoice", "paid", "customer")},
		{name: "payment_intent", parent: "cus_", make: makeIntent},
		{name: "payout", make: resource("payout", "paid", ""), fail: turns("payout", "failed")},
		{name: "refund", parent: "ch_", make: makeRefund, fail: failRefund},
		{name: "subscription", parent: "cus_", make: resource("subscription", "active", "customer"), fail: turns("subscription", "canceled"), bare: true},
		{name: "transfer", make: resource("transfer", "", ""), fail: reverse},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			sourcetest.Exercise(t, sourcetest.Harness{
				Kind: kind.name, Currency: "EUR", Final: kind.fail == nil, Bare: kind.bare, Quiet: kind.quiet,
				Home:     recon.Account{Account: "acct_1", Mode: "live"},
				Away:     recon.Account{Account: "acct_1", Mode: "test"},
				Stranger: recon.Account{Account: "acct_9", Mode: "live"},
				Parent: func(n int) string {
					if kind.parent == "" {
						return ""
					}
					return kind.parent + strconv.Itoa(n)
				},
				Open: func(t *testing.T) sourcetest.Provider {
					f := newFake(t)
					return provider{f, kind, newMailbox(t, f), new(atomic.Bool), &hanging{waiting: map[*http.Request]context.CancelCauseFunc{}}}
				},
			})
		})
	}
}
