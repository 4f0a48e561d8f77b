// Package mocktest sends every shape of request that the Stripe source makes to
// github.com/stripe/stripe-mock, which knows Stripe's published description of its API
// and refuses parameters that are not in it.
package mocktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/loopback"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// stripe-mock takes only keys of test mode.
const key = "sk_test_TESTONLY"

// shapes are all requests of the source, as method, path and parameter names.
var shapes = []string{
	"GET /v1/account",
	"GET /v1/charges created[gte] created[lt] limit",
	"GET /v1/charges created[gte] created[lt] limit starting_after",
	"GET /v1/charges created[gte] limit",
	"GET /v1/charges created[gte] limit starting_after",
	"GET /v1/charges customer limit",
	"GET /v1/charges customer limit starting_after",
	"GET /v1/charges limit payment_intent",
	"GET /v1/charges limit payment_intent starting_after",
	"GET /v1/charges/search limit query",
	"GET /v1/charges/{id}",
	"GET /v1/checkout/sessions created[gte] created[lt] limit",
	"GET /v1/checkout/sessions created[gte] created[lt] limit starting_after",
	"GET /v1/checkout/sessions created[gte] limit",
	"GET /v1/checkout/sessions created[gte] limit starting_after",
	"GET /v1/checkout/sessions customer limit",
	"GET /v1/checkout/sessions customer limit starting_after",
	"GET /v1/checkout/sessions limit payment_intent",
	"GET /v1/checkout/sessions limit payment_intent starting_after",
	"GET /v1/checkout/sessions limit starting_after subscription",
	"GET /v1/checkout/sessions limit subscription",
	"GET /v1/checkout/sessions/{id}",
	"GET /v1/credit_notes created[gte] created[lt] limit",
	"GET /v1/credit_notes created[gte] created[lt] limit starting_after",
	"GET /v1/credit_notes created[gte] limit",
	"GET /v1/credit_notes created[gte] limit starting_after",
	"GET /v1/credit_notes customer limit",
	"GET /v1/credit_notes customer limit starting_after",
	"GET /v1/credit_notes invoice limit",
	"GET /v1/credit_notes invoice limit starting_after",
	"GET /v1/credit_notes/{id}",
	"GET /v1/customers created[gte] created[lt] limit",
	"GET /v1/customers created[gte] created[lt] limit starting_after",
	"GET /v1/customers created[gte] limit",
	"GET /v1/customers created[gte] limit starting_after",
	"GET /v1/customers/search limit query",
	"GET /v1/customers/{id}",
	"GET /v1/disputes charge limit",
	"GET /v1/disputes charge limit starting_after",
	"GET /v1/disputes created[gte] created[lt] limit",
	"GET /v1/disputes created[gte] created[lt] limit starting_after",
	"GET /v1/disputes created[gte] limit",
	"GET /v1/disputes created[gte] limit starting_after",
	"GET /v1/disputes limit payment_intent",
	"GET /v1/disputes limit payment_intent starting_after",
	"GET /v1/disputes/{id}",
	"GET /v1/events created[gte] limit starting_after types[]",
	"GET /v1/events created[gte] limit types[]",
	"GET /v1/invoices created[gte] created[lt] limit",
	"GET /v1/invoices created[gte] created[lt] limit starting_after",
	"GET /v1/invoices created[gte] limit",
	"GET /v1/invoices created[gte] limit starting_after",
	"GET /v1/invoices customer limit",
	"GET /v1/invoices customer limit starting_after",
	"GET /v1/invoices limit starting_after subscription",
	"GET /v1/invoices limit subscription",
	"GET /v1/invoices/search limit query",
	"GET /v1/invoices/{id}",
	"GET /v1/payment_intents created[gte] created[lt] limit",
	"GET /v1/payment_intents created[gte] created[lt] limit starting_after",
	"GET /v1/payment_intents created[gte] limit",
	"GET /v1/payment_intents created[gte] limit starting_after",
	"GET /v1/payment_intents customer limit",
	"GET /v1/payment_intents customer limit starting_after",
	"GET /v1/payment_intents/search limit query",
	"GET /v1/payment_intents/{id}",
	"GET /v1/payouts created[gte] created[lt] limit",
	"GET /v1/payouts created[gte] created[lt] limit starting_after",
	"GET /v1/payouts created[gte] limit",
	"GET /v1/payouts created[gte] limit starting_after",
	"GET /v1/payouts/{id}",
	"GET /v1/refunds charge limit",
	"GET /v1/refunds charge limit starting_after",
	"GET /v1/refunds created[gte] created[lt] expand[] limit",
	"GET /v1/refunds created[gte] created[lt] expand[] limit starting_after",
	"GET /v1/refunds created[gte] limit",
	"GET /v1/refunds created[gte] limit starting_after",
	"GET /v1/refunds limit payment_intent",
	"GET /v1/refunds limit payment_intent starting_after",
	"GET /v1/refunds/{id}",
	"GET /v1/subscriptions created[gte] created[lt] limit starting_after status",
	"GET /v1/subscriptions created[gte] created[lt] limit status",
	"GET /v1/subscriptions created[gte] limit starting_after status",
	"GET /v1/subscriptions created[gte] limit status",
	"GET /v1/subscriptions customer limit starting_after status",
	"GET /v1/subscriptions customer limit status",
	"GET /v1/subscriptions/search limit query",
	"GET /v1/subscriptions/{id}",
	"GET /v1/transfers created[gte] created[lt] limit",
	"GET /v1/transfers created[gte] created[lt] limit starting_after",
	"GET /v1/transfers created[gte] limit",
	"GET /v1/transfers created[gte] limit starting_after",
	"GET /v1/transfers limit",
	"GET /v1/transfers/{id}",
}

func TestStripesOwnDescription(t *testing.T) {
	mock := startMock(t)
	t.Run("accepts every request of the source", func(t *testing.T) { acceptsOurs(t, mock) })
	t.Run("refuses what is not in it", func(t *testing.T) { refusesOthers(t, mock) })
}

func acceptsOurs(t *testing.T, mock string) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	fake, err := stripetest.Start(stripetest.Options{Now: func() time.Time { return now }, Seed: 1, Accounts: []stripetest.Account{
		{ID: "acct_1", Mode: "test", Key: key}, {ID: "acct_shop", Mode: "test", Platform: "acct_1"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	tee := &tee{mock: mock, shapes: map[string]bool{}, refused: map[string]string{}}
	src, err := stripe.New("stripe-main", stripe.Settings{
		APIURL: fake.URL(), APIKey: recon.NewSecret(key), PerSecond: 100_000, Marker: "op_id",
		Accounts: []stripe.AccountSettings{{Account: "acct_1", Mode: "test"}, {Account: "acct_shop", Mode: "test", Connected: true}},
	}, stripe.Options{Transport: tee, PageSize: 2})
	if err != nil {
		t.Fatal(err)
	}
	seed(t, fake, now)
	list(t, src, now)
	for _, batch := range batches(now) {
		ans, err := src.Ask(context.Background(), batch, func() time.Time { return now })
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range ans.Looks {
			if l.Outcome == recon.Blind {
				t.Errorf("look %s of %s is blind: %s", l.Method, l.Kind, l.Detail)
			}
		}
	}
	if err := src.Probe(context.Background()); err != nil {
		t.Error(err)
	}
	for shape, why := range tee.refused {
		t.Errorf("stripe-mock refuses %s: %s", shape, why)
	}
	if got := slices.Sorted(maps.Keys(tee.shapes)); !slices.Equal(got, shapes) {
		t.Errorf("requests made:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(shapes, "\n"))
	}
}

func refusesOthers(t *testing.T, mock string) {
	for _, path := range []string{"/v1/refunds?filter=x", "/v1/refunds?limit=many", "/v1/refund"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, mock+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Errorf("%s: %d, so that its agreement is worth nothing", path, resp.StatusCode)
		}
	}
}

// ways are the kinds, with the prefix of their ids and the parents by which each is listed.
var ways = map[string]struct {
	prefix  string
	parents []string
}{
	"charge":           {"ch_", []string{"pi_1", "cus_1"}},
	"checkout_session": {"cs_", []string{"pi_1", "sub_1", "cus_1"}},
	"credit_note":      {"cn_", []string{"in_1", "cus_1"}},
	"customer":         {"cus_", nil},
	"dispute":          {"dp_", []string{"ch_00", "pi_1"}},
	"invoice":          {"in_", []string{"sub_1", "cus_1"}},
	"payment_intent":   {"pi_", []string{"cus_1"}},
	"payout":           {"po_", nil},
	"refund":           {"re_", []string{"ch_00", "pi_1"}},
	"subscription":     {"sub_", []string{"cus_1"}},
	"transfer":         {"tr_", nil},
}

// seed makes enough of each kind that every list has a second page.
func seed(t *testing.T, fake *stripetest.Server, now time.Time) {
	t.Helper()
	for i := range 30 {
		at := now.Add(-time.Duration(30-i) * time.Minute)
		for _, account := range []string{"acct_1", "acct_shop"} {
			_, err1 := fake.AddPaymentIntent(stripetest.PaymentIntent{ID: fmt.Sprintf("pi_%02d", i), Account: account, Mode: "test", Amount: 900, Customer: "cus_1", Created: at})
			_, err2 := fake.AddCharge(stripetest.Charge{ID: fmt.Sprintf("ch_%02d", i), Account: account, Mode: "test", Amount: 900, Customer: "cus_1", PaymentIntent: "pi_1", Created: at})
			_, err3 := fake.AddRefund(stripetest.Refund{ID: fmt.Sprintf("re_%02d", i), Account: account, Mode: "test", Amount: 100, Charge: "ch_00", PaymentIntent: "pi_1", Created: at})
			err4 := seedResources(fake, i, stripetest.Resource{Account: account, Mode: "test", Amount: 900, Created: at})
			if err := errors.Join(err1, err2, err3, err4); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// seedResources makes one of each kind that no request makes.
func seedResources(fake *stripetest.Server, i int, like stripetest.Resource) error {
	var faults []error
	for _, kind := range []string{"checkout.session", "credit_note", "customer", "dispute", "invoice", "payout", "subscription", "transfer"} {
		r := like
		r.Kind, r.ID = kind, fmt.Sprintf("%s%02d", ways[strings.ReplaceAll(kind, ".", "_")].prefix, i)
		r.Fields = map[string]any{}
		switch kind {
		case "checkout.session":
			r.Fields = map[string]any{"customer": "cus_1", "payment_intent": "pi_1", "subscription": "sub_1"}
		case "credit_note":
			r.Fields = map[string]any{"customer": "cus_1", "invoice": "in_1"}
		case "dispute":
			r.Fields = map[string]any{"charge": "ch_00", "payment_intent": "pi_1"}
		case "invoice":
			r.Fields = map[string]any{"customer": "cus_1", "subscription": "sub_1"}
		case "subscription":
			r.Fields = map[string]any{"customer": "cus_1"}
		}
		_, err := fake.AddResource(r)
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// list reads two pages of each list.
func list(t *testing.T, src *stripe.Source, now time.Time) {
	t.Helper()
	for _, l := range src.Lists(slices.Collect(maps.Keys(ways))) {
		cursor := ""
		for range 2 {
			p, err := src.Page(t.Context(), l, recon.Window{From: now.Add(-time.Hour), To: now}, cursor, func() time.Time { return now })
			if err != nil {
				t.Fatal(err)
			}
			if p.Look.Outcome != recon.Found || p.Next == "" {
				t.Errorf("page of %v is %s, %s", l, p.Look.Outcome, p.Look.Detail)
			}
			cursor = p.Next
		}
	}
}

// batches ask by every way for every kind, each batch by one.
func batches(now time.Time) [][]sources.Question {
	ask := func(kind, account string, change func(*sources.Question)) []sources.Question {
		q := sources.Question{Operation: "op-1", Kind: kind, Account: account, Mode: "test", From: now.Add(-29 * time.Minute), Marks: []recon.Mark{recon.MarkReference}}
		change(&q)
		return []sources.Question{q}
	}
	var list [][]sources.Question
	for _, account := range []string{"acct_1", "acct_shop"} {
		for _, kind := range slices.Sorted(maps.Keys(ways)) {
			way := ways[kind]
			list = append(list,
				ask(kind, account, func(*sources.Question) {}),
				ask(kind, account, func(q *sources.Question) { q.EffectID = way.prefix + "05" }),
				ask(kind, account, func(q *sources.Question) { q.Key, q.Marks = "no-such-key", []recon.Mark{recon.MarkKey} }))
			for _, parent := range way.parents {
				list = append(list, ask(kind, account, func(q *sources.Question) { q.Parent = parent }))
			}
		}
	}
	return list
}

// tee carries requests to the fake, and a copy of each to stripe-mock.
type tee struct {
	mock string

	mu      sync.Mutex // guards what follows
	shapes  map[string]bool
	refused map[string]string // why, by shape
}

func (c *tee) RoundTrip(req *http.Request) (*http.Response, error) {
	shape := shapeOf(req)
	copied := req.Clone(context.WithoutCancel(req.Context()))
	to, err := url.Parse(c.mock)
	if err != nil {
		return nil, err
	}
	copied.URL.Scheme, copied.URL.Host, copied.Host = to.Scheme, to.Host, ""
	resp, err := http.DefaultTransport.RoundTrip(copied)
	if err != nil {
		return nil, fmt.Errorf("stripe-mock does not answer: %w", err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.shapes[shape] = true
	if resp.StatusCode != http.StatusOK {
		c.refused[shape] = fmt.Sprintf("%d %s", resp.StatusCode, body)
	}
	c.mu.Unlock()
	return http.DefaultTransport.RoundTrip(req)
}

// shapeOf names a request by method, path and parameters, without their values.
func shapeOf(req *http.Request) string {
	path := req.URL.Path
	deep := strings.Count(strings.Replace(path, "/checkout/sessions", "/sessions", 1), "/")
	if dir, last := filepath.Split(path); deep == 3 && last != "search" {
		path = dir + "{id}"
	}
	names := map[string]bool{}
	for name := range req.URL.Query() {
		if list, _, ok := strings.Cut(name, "["); ok && list != "created" {
			name = list + "[]"
		}
		names[name] = true
	}
	return strings.Join(append([]string{req.Method + " " + path}, slices.Sorted(maps.Keys(names))...), " ")
}

// startMock builds and starts stripe-mock on loopback, plain and TLS on ports of its
// own (with one of them alone it would open the other on every interface), and stops it
// when the test ends. It gives the plain address.
func startMock(t *testing.T) string {
	t.Helper()
	var said strings.Builder
	build := exec.Command("go", "tool", "-n", "stripe-mock") // builds it once, and names the file
	build.Stderr = &said
	out, err := build.Output()
	if err != nil {
		t.Fatalf("build stripe-mock: %v\n%s", err, said.String())
	}
	binary := strings.TrimSpace(string(out))
	plain, secure := loopback.FreeAddress(t), loopback.FreeAddress(t)
	cmd := exec.Command(binary, "-http-addr", plain, "-https-addr", secure)
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Errorf("stop stripe-mock, process %d: %v", cmd.Process.Pid, err)
		}
		_ = cmd.Wait() // it was killed, and says so
	})
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if conn, err := net.DialTimeout("tcp", plain, time.Second); err == nil {
			_ = conn.Close()
			return "http://" + plain
		}
	}
	t.Fatalf("stripe-mock did not open %s within 30 s; it said: %s", plain, log.String())
	return ""
}
