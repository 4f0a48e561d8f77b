package stripetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// Each fault strikes one refund; then the same request is sent again under the same key.
func TestAFaultTellsOneThingAndDoesAnother(t *testing.T) {
	t.Parallel()
	const (
		done    = "done"
		nothing = "nothing"
	)
	type outcome struct {
		told       string // how the first send ended
		didAtFirst string
		replayed   bool // the second send got a stored answer
		again      int  // status of the second send
	}
	tests := []struct {
		name  string
		fault stripetest.Fault
		want  outcome
	}{
		{"a request that is lost", stripetest.Fault{Kind: stripetest.Closed}, outcome{"closed", nothing, false, 200}},
		{"an answer that is lost", stripetest.Fault{Kind: stripetest.Closed, Executed: true}, outcome{"closed", done, true, 200}},
		{"a 500 without effect", stripetest.Fault{Kind: stripetest.ServerError}, outcome{"500 api_error", nothing, true, 500}},
		{"a 500 with effect", stripetest.Fault{Kind: stripetest.ServerError, Executed: true}, outcome{"500 api_error", done, true, 500}},
		{"a bad gateway before", stripetest.Fault{Kind: stripetest.ProxyPage}, outcome{"502 no JSON", nothing, false, 200}},
		{"a gateway timeout after", stripetest.Fault{Kind: stripetest.ProxyPage, Status: 504, Executed: true}, outcome{"504 no JSON", done, true, 200}},
		{"a service that is away", stripetest.Fault{Kind: stripetest.ProxyPage, Status: 503}, outcome{"503 no JSON", nothing, false, 200}},
		{"a text of a proxy", stripetest.Fault{Kind: stripetest.NotJSON}, outcome{"200 no JSON", nothing, false, 200}},
		{"a text after the work", stripetest.Fault{Kind: stripetest.NotJSON, Status: 401, Executed: true}, outcome{"401 no JSON", done, true, 200}},
		{"an empty body", stripetest.Fault{Kind: stripetest.EmptyBody, Status: 500}, outcome{"500 no JSON", nothing, false, 200}},
		{"an empty body after the work", stripetest.Fault{Kind: stripetest.EmptyBody, Executed: true}, outcome{"200 no JSON", done, true, 200}},
		{"an empty object", stripetest.Fault{Kind: stripetest.EmptyObject}, outcome{"200 without id", nothing, false, 200}},
		{"an empty object after the work", stripetest.Fault{Kind: stripetest.EmptyObject, Executed: true}, outcome{"200 without id", done, true, 200}},
		{"a truncated answer", stripetest.Fault{Kind: stripetest.Truncated}, outcome{"200 truncated", done, true, 200}},
		{"a limiter", stripetest.Fault{Kind: stripetest.RateLimited}, outcome{"429 invalid_request_error", nothing, false, 200}},
		{"a refusal as wrong", stripetest.Fault{Kind: stripetest.BadRequest, Param: "charge"}, outcome{"400 invalid_request_error", nothing, false, 200}},
		{"a slow answer", stripetest.Fault{Wait: time.Millisecond}, outcome{"200", done, true, 200}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			srv, _ := start(t, nil)
			charged(t, srv, "ch_A", 5000)
			srv.Script(test.fault)
			got := outcome{told: story(post(t, srv, fullKey, "k-1", "/v1/refunds", "charge=ch_A&amount=1500")), didAtFirst: nothing}
			if len(srv.Refunds()) == 1 {
				got.didAtFirst = done
			}
			again := post(t, srv, fullKey, "k-1", "/v1/refunds", "charge=ch_A&amount=1500")
			got.replayed, got.again = again.header.Get("Idempotent-Replayed") == "true", again.status
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			first := srv.Calls()[0]
			if first.Ran != (test.want.didAtFirst == done) || !first.Faulted || first.Status != 0 && !strings.HasPrefix(test.want.told, strconv.Itoa(first.Status)) {
				t.Errorf("call = %+v", first)
			}
			if n := len(srv.Refunds()); n > 1 {
				t.Errorf("%d refunds", n)
			}
		})
	}
}

// story says in a few words what a raw answer is.
func story(got raw) string {
	switch {
	case got.status == 0 && got.err != nil:
		return "closed"
	case errors.Is(got.err, io.ErrUnexpectedEOF):
		return "200 truncated"
	}
	status := strconv.Itoa(got.status)
	var body struct {
		ID    string
		Error struct{ Type string }
	}
	switch {
	case json.Unmarshal(got.body, &body) != nil:
		return status + " no JSON"
	case got.status == 200 && body.ID == "":
		return status + " without id"
	case got.status != 200:
		return status + " " + body.Error.Type
	}
	return status
}

func TestALateEffectLandsWhenItsTimeComes(t *testing.T) {
	t.Parallel()
	srv, c := start(t, nil)
	charged(t, srv, "ch_A", 5000)
	srv.Script(stripetest.Fault{Kind: stripetest.Closed, Method: "POST", Delay: 10 * time.Minute})
	sent := c.Now()
	if got := post(t, srv, fullKey, "k-1", "/v1/refunds", "charge=ch_A&amount=1500"); got.status != 0 {
		t.Fatalf("told %d, want a closed connection", got.status)
	}
	c.Add(10*time.Minute - time.Second)
	if n := len(srv.Refunds()); n != 0 {
		t.Fatalf("%d refunds before the time", n)
	}
	if got := post(t, srv, fullKey, "k-1", "/v1/refunds", "charge=ch_A&amount=1500"); got.status != 409 {
		t.Errorf("while it runs: %d, want 409", got.status)
	}
	c.Add(time.Hour)
	refunds := srv.Refunds()
	if len(refunds) != 1 || !refunds[0].Created.Equal(sent.Add(10*time.Minute)) || refunds[0].Key != "k-1" {
		t.Fatalf("refunds = %+v, want one of %s", refunds, sent.Add(10*time.Minute))
	}
	if got := post(t, srv, fullKey, "k-1", "/v1/refunds", "charge=ch_A&amount=1500"); got.status != 200 || got.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("afterwards: %d, want the stored answer", got.status)
	}
}

func TestAnEffectThatIsRolledForwardAfterA500NamesNoRequest(t *testing.T) {
	t.Parallel()
	srv, c := start(t, nil)
	charged(t, srv, "ch_A", 5000)
	srv.Script(stripetest.Fault{Kind: stripetest.ServerError, Delay: time.Hour})
	for range 2 {
		if got := post(t, srv, fullKey, "k-1", "/v1/refunds", "charge=ch_A&amount=1500&metadata[operation_id]=op_1"); got.status != 500 {
			t.Fatalf("told %d, want 500", got.status)
		}
	}
	c.Add(time.Hour)
	refunds := srv.Refunds()
	if len(refunds) != 1 || refunds[0].Metadata["operation_id"] != "op_1" || refunds[0].Key != "" {
		t.Fatalf("refunds = %+v, want one with its metadata and no key", refunds)
	}
	for _, e := range srv.Events() {
		if e.Key != "" || e.RequestID != "" {
			t.Errorf("event = %+v, want no request", e)
		}
	}
	if got := post(t, srv, fullKey, "k-1", "/v1/refunds", "charge=ch_A&amount=1500&metadata[operation_id]=op_1"); got.status != 500 {
		t.Errorf("the stored answer became %d", got.status)
	}
}

func TestAFaultStrikesWhatItIsScriptedFor(t *testing.T) {
	t.Parallel()
	const rounds = 6
	tests := []struct {
		name  string
		fault stripetest.Fault
		want  []int // of six refunds k-1 … k-6, a minute apart, those that are struck
	}{
		{"once by default", stripetest.Fault{}, []int{1}},
		{"always", stripetest.Fault{Times: stripetest.Always}, []int{1, 2, 3, 4, 5, 6}},
		{"the third", stripetest.Fault{Nth: 3}, []int{3}},
		{"two from the fourth", stripetest.Fault{Nth: 4, Times: 2}, []int{4, 5}},
		{"by key", stripetest.Fault{Key: "k-5"}, []int{5}},
		{"in a window", stripetest.Fault{From: newClock().now.Add(time.Minute), Until: newClock().now.Add(3 * time.Minute)}, []int{2, 3}},
		{"from an instant, once", stripetest.Fault{From: newClock().now.Add(90 * time.Second)}, []int{3}},
		{"by anything else", stripetest.Fault{Match: func(c stripetest.Call) bool { return c.Form.Get("amount") == "4" }}, []int{4}},
		{"by path", stripetest.Fault{Path: "/v1/ref*", Method: "POST"}, []int{1}},
		{"another path", stripetest.Fault{Path: "/v1/charges"}, nil},
		{"another method", stripetest.Fault{Method: "GET"}, nil},
		{"another account", stripetest.Fault{Account: "acct_2"}, nil},
		{"another page", stripetest.Fault{Page: 1}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			srv, c := start(t, nil)
			charged(t, srv, "ch_A", 5000)
			test.fault.Kind = stripetest.RateLimited
			srv.Script(test.fault)
			var struck []int
			for i := 1; i <= rounds; i++ {
				n := strconv.Itoa(i)
				if post(t, srv, fullKey, "k-"+n, "/v1/refunds", "charge=ch_A&amount="+n).status == 429 {
					struck = append(struck, i)
				}
				c.Add(time.Minute)
			}
			if diff := cmp.Diff(test.want, struck); diff != "" {
				t.Errorf("struck (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsQueueUpAndEnd(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	srv.Script(stripetest.Fault{Kind: stripetest.Unauthorized}, stripetest.Fault{Kind: stripetest.Forbidden, Times: stripetest.Always})
	for _, want := range []int{401, 403, 403} {
		if got := get(t, srv, readKey, "/v1/balance").status; got != want {
			t.Errorf("told %d, want %d", got, want)
		}
	}
	srv.ClearFaults()
	if got := get(t, srv, readKey, "/v1/balance").status; got != 200 {
		t.Errorf("told %d, want 200", got)
	}
}

func TestALimiterMaySayWhenToComeBack(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	srv.Script(stripetest.Fault{Kind: stripetest.RateLimited, RetryAfter: 7 * time.Second}, stripetest.Fault{Kind: stripetest.RateLimited})
	with, without := get(t, srv, readKey, "/v1/balance"), get(t, srv, readKey, "/v1/balance")
	if with.header.Get("Retry-After") != "7" || with.header.Get("Stripe-Rate-Limited-Reason") == "" {
		t.Errorf("headers = %v", with.header)
	}
	if _, said := without.header["Retry-After"]; said || without.status != 429 {
		t.Errorf("headers = %v", without.header)
	}
}

func TestPageTwoOfAListFailsAlsoWhenItIsAskedAgain(t *testing.T) {
	t.Parallel()
	srv, c := start(t, nil)
	seedRefunds(t, srv, c, 5)
	srv.Script(stripetest.Fault{Kind: stripetest.BadRequest, Page: 2, Param: "charge", Times: 2})
	cl := client(t, srv, readKey)
	for round := range 2 {
		p := &stripe.RefundListParams{}
		p.Limit = stripe.Int64(2)
		seen := 0
		var failure error
		for _, err := range cl.V1Refunds.List(context.Background(), p) {
			if failure = err; err == nil {
				seen++
			}
		}
		if e := told(t, failure); seen != 2 || e.HTTPStatusCode != 400 || e.Param != "charge" {
			t.Errorf("round %d: %d refunds, then %v", round, seen, failure)
		}
	}
	for i, want := range []int{1, 2, 1, 2} {
		if got := srv.Calls()[i].Page; got != want {
			t.Errorf("call %d asked for page %d, want %d", i, got, want)
		}
	}
}

func TestAChanceIsDrawnByTheSeedAndTheKey(t *testing.T) {
	t.Parallel()
	strike := func(seed uint64, backwards bool) map[string]bool {
		srv, _ := start(t, func(o *stripetest.Options) { o.Seed = seed })
		charged(t, srv, "ch_A", 5000)
		srv.Script(stripetest.Fault{Kind: stripetest.RateLimited, Chance: 0.3})
		struck := map[string]bool{}
		for i := range 60 {
			if backwards {
				i = 59 - i
			}
			key := "k-" + strconv.Itoa(i)
			struck[key] = post(t, srv, fullKey, key, "/v1/refunds", "charge=ch_A&amount=1").status == 429
		}
		return struck
	}
	first := strike(7, false)
	if diff := cmp.Diff(first, strike(7, true)); diff != "" {
		t.Errorf("the order of requests changes who is struck:\n%s", diff)
	}
	if cmp.Equal(first, strike(8, false)) {
		t.Error("another seed strikes the same")
	}
	n := 0
	for _, struck := range first {
		if struck {
			n++
		}
	}
	if n < 8 || n > 30 {
		t.Errorf("%d of 60 struck at 30 %%", n)
	}
}

func TestASlowAnswerComesTooLateAndTheWorkIsDone(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	charged(t, srv, "ch_A", 5000)
	srv.Script(stripetest.Fault{Method: "POST", Wait: time.Minute})
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	p := &stripe.RefundCreateParams{Charge: stripe.String("ch_A")}
	if _, err := client(t, srv, fullKey).V1Refunds.Create(ctx, p); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error = %v, want a deadline", err)
	}
	for len(srv.Refunds()) == 0 {
		time.Sleep(time.Millisecond)
	}
}

func TestCloseEndsWaitingRequests(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	held := make(chan stripetest.Call, 1)
	srv.Script(stripetest.Fault{Hold: make(chan struct{}), OnHold: func(c stripetest.Call) { held <- c }})
	got := make(chan raw, 1)
	go func() { got <- get(t, srv, readKey, "/v1/balance") }()
	if c := <-held; c.Path != "/v1/balance" {
		t.Errorf("held is %s", c.Path)
	}
	srv.Close()
	srv.Close()
	if r := <-got; r.err == nil {
		t.Errorf("answered %d after the end", r.status)
	}
	if r := get(t, srv, readKey, "/v1/balance"); r.err == nil {
		t.Errorf("a closed server answers %d", r.status)
	}
}

// net/http sends again by itself over a kept connection, which is why a client of
// money must not keep its connections or must forbid it.
func TestAKeptConnectionThatDiesIsSentTwiceByTheStandardClient(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	charged(t, srv, "ch_A", 5000)
	keeping := &http.Client{Transport: &http.Transport{}}
	defer keeping.CloseIdleConnections()
	send := func(key string) error {
		req, err := http.NewRequest("POST", srv.URL()+"/v1/refunds", strings.NewReader("charge=ch_A&amount=1"))
		if err != nil {
			return err
		}
		req.Header = http.Header{"Authorization": {"Bearer " + fullKey}, "Idempotency-Key": {key}}
		resp, err := keeping.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	if err := send("k-1"); err != nil {
		t.Fatal(err)
	}
	srv.Script(stripetest.Fault{Kind: stripetest.Closed, Executed: true})
	if err := send("k-2"); err != nil {
		t.Fatalf("the client did not hide the loss: %v", err)
	}
	if n := len(srv.Calls()); n != 3 {
		t.Errorf("%d calls for two sends, want 3", n)
	}
	if n := len(srv.Refunds()); n != 2 {
		t.Errorf("%d refunds, want 2", n)
	}
}
