package stripetest_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// Whatever is lost, repeated or late: within a key's life it makes at most one refund,
// a refund that was told is there, and a charge's running total is that of its refunds.
func TestAKeyMakesAtMostOneRefundWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	kinds := []stripetest.FaultKind{stripetest.Slow, stripetest.Closed, stripetest.ServerError, stripetest.ProxyPage, stripetest.NotJSON,
		stripetest.EmptyBody, stripetest.EmptyObject, stripetest.Truncated, stripetest.RateLimited, stripetest.KeyInUse}
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		srv, err := stripetest.Start(stripetest.Options{Now: c.Now, Seed: 3,
			Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: fullKey}},
			Life: func(r stripetest.Refund) stripetest.Life {
				if r.Amount%2 == 0 {
					return stripetest.FailsLate(30*time.Minute, "declined")
				}
				return stripetest.PendingThen(10*time.Minute, "succeeded")
			}})
		if err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		if _, err := srv.AddCharge(stripetest.Charge{ID: "ch_A", Account: "acct_1", Mode: "live", Amount: 60}); err != nil {
			t.Fatal(err)
		}
		toldOf := map[string]bool{}
		for range rapid.IntRange(1, 12).Draw(t, "sends") {
			n := rapid.IntRange(1, 4).Draw(t, "key")
			fault := stripetest.Fault{Kind: rapid.SampledFrom(kinds).Draw(t, "fault"), Executed: rapid.Bool().Draw(t, "executed")}
			if rapid.Bool().Draw(t, "late") && (fault.Kind == stripetest.Closed || fault.Kind == stripetest.ServerError) {
				fault.Delay = 7 * time.Minute
			}
			srv.Script(fault)
			got := fetch("POST", srv.URL()+"/v1/refunds", fmt.Sprintf("charge=ch_A&amount=%d", 10*n+n),
				map[string][]string{"Authorization": {"Bearer " + fullKey}, "Idempotency-Key": {"k-" + strconv.Itoa(n)}})
			srv.ClearFaults()
			var refund struct{ ID string }
			if got.status == 200 && got.err == nil && json.Unmarshal(got.body, &refund) == nil && refund.ID != "" {
				toldOf[refund.ID] = true
			}
			c.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "minutes")) * time.Minute)
		}
		c.Add(time.Hour)
		checkLaws(t, srv, toldOf)
	})
}

func checkLaws(t *rapid.T, srv *stripetest.Server, toldOf map[string]bool) {
	byAmount, total := map[int64]int{}, int64(0)
	for _, r := range srv.Refunds() {
		// Every key asks for an amount of its own, and what is rolled forward after a
		// 500 names no key.
		byAmount[r.Amount]++
		delete(toldOf, r.ID)
		if r.Status == "succeeded" || r.Status == "pending" {
			total += r.Amount
		}
	}
	for amount, n := range byAmount {
		if n > 1 {
			t.Errorf("%d refunds of %d under one key", n, amount)
		}
	}
	for id := range toldOf {
		t.Errorf("%s was told but is not there", id)
	}
	if c := srv.Charges()[0]; c.AmountRefunded != total || total > c.Amount {
		t.Errorf("charge says %d of %d refunded, its refunds say %d", c.AmountRefunded, c.Amount, total)
	}
}

func TestTheSameSeedGivesTheSameIdsInAnyOrder(t *testing.T) {
	t.Parallel()
	run := func(seed uint64, concurrent bool) []string {
		srv, _ := start(t, func(o *stripetest.Options) { o.Seed = seed })
		charged(t, srv, "ch_A", 5000)
		var all sync.WaitGroup
		for i := range 12 {
			ask := func() {
				post(t, srv, fullKey, "k-"+strconv.Itoa(i), "/v1/refunds", "charge=ch_A&amount=10")
			}
			if concurrent {
				all.Go(ask)
			} else {
				ask()
			}
		}
		all.Wait()
		var ids []string
		for _, r := range srv.Refunds() {
			ids = append(ids, r.Key+" "+r.ID)
		}
		slices.Sort(ids)
		return ids
	}
	first := run(5, false)
	if diff := cmp.Diff(first, run(5, true)); diff != "" || len(first) != 12 {
		t.Errorf("concurrent requests get other ids (-one by one +concurrent):\n%s", diff)
	}
	if cmp.Equal(first, run(6, false)) {
		t.Error("another seed gives the same ids")
	}
}

func TestManyCopiesOfOneRequestMakeOneRefund(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	charged(t, srv, "ch_A", 5000)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			got := post(t, srv, fullKey, "k-1", "/v1/refunds", "charge=ch_A&amount=10")
			if got.status != 200 && got.status != 409 {
				t.Errorf("told %d %s", got.status, got.body)
			}
			get(t, srv, readKey, "/v1/refunds")
			srv.Refunds()
			srv.Calls()
		})
	}
	all.Wait()
	if n := len(srv.Refunds()); n != 1 {
		t.Errorf("%d refunds, want 1", n)
	}
	if n := srv.Writes(); n != 20 {
		t.Errorf("%d writes, want 20", n)
	}
	srv.ResetCalls()
	if len(srv.Calls()) != 0 || srv.Writes() != 0 || len(srv.Counts()) != 0 {
		t.Error("calls are left after a reset")
	}
}

// fuzzPaths are the addresses that the fuzzer asks.
var fuzzPaths = []string{"/v1/refunds", "/v1/events", "/v1/payment_intents/search", "/v1/payment_intents",
	"/v1/payment_intents/pi_1/capture", "/v1/payment_intents/pi_1", "/v1/refunds/re_1/cancel", "/v1/balance", "/v1/charges"}

// Whatever is asked, the answer is the provider's JSON and never a broken connection.
func FuzzAnyRequestIsAnsweredInJSON(f *testing.F) {
	c := newClock()
	srv, err := stripetest.Start(stripetest.Options{Now: c.Now, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: fullKey}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(srv.Close)
	if _, err := srv.AddPaymentIntent(stripetest.PaymentIntent{ID: "pi_1", Account: "acct_1", Mode: "live", Amount: 5000}); err != nil {
		f.Fatal(err)
	}
	for _, params := range []string{
		"payment_intent=pi_1&amount=5&metadata[a]=b&expand[]=charge",
		"limit=5&created[gte]=1&starting_after=re_1&expand[0]=data.charge",
		"types[0]=refund.created&types[]=x&created=9223372036854775807",
		`query=metadata["a"]:"b\"" AND -status:null&page=pi_1`,
		"amount=5&currency=eur&confirm=true&payment_method=pm_card_chargeDeclined",
		"amount_to_capture=-9223372036854775808",
		"%zz=;&metadata=",
		"type=[&created[lte]=-1",
	} {
		for i := range fuzzPaths {
			f.Add(i, params)
		}
	}
	f.Fuzz(func(t *testing.T, i int, params string) {
		path := fuzzPaths[uint(i)%uint(len(fuzzPaths))]
		header := map[string][]string{"Authorization": {"Bearer " + fullKey}}
		for _, got := range []raw{fetch("GET", srv.URL()+path+"?"+url.PathEscape(params), "", header), fetch("POST", srv.URL()+path, params, header)} {
			if got.err != nil || !json.Valid(got.body) || got.status >= 500 {
				t.Errorf("%s %q: %d %s %v", path, params, got.status, got.body, got.err)
			}
		}
		if c := srv.Charges()[0]; c.AmountRefunded < 0 || c.AmountRefunded > c.Amount {
			t.Errorf("charge = %+v", c)
		}
	})
}
