package stripetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

const secret = "whsec_TESTONLY"

// arrival is one request that an endpoint got.
type arrival struct {
	signature string
	body      []byte
}

// endpoint is a real HTTP server that keeps what it gets.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex // guards all below
	posts  []arrival
	status int
	onPost func()
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{status: http.StatusOK}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.posts = append(e.posts, arrival{r.Header.Get("Stripe-Signature"), body})
		if e.onPost != nil {
			e.onPost()
		}
		if e.status == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(e.status)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) answer(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status = status
}

func (e *endpoint) got() []arrival {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.posts)
}

// message is what a body says.
type message struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Account string          `json:"account"`
	Version string          `json:"api_version"`
	Request json.RawMessage `json:"request"`
	Data    struct {
		Object map[string]any `json:"object"`
	} `json:"data"`
}

func (p arrival) told(t *testing.T) message {
	t.Helper()
	var out message
	if err := json.Unmarshal(p.body, &out); err != nil {
		t.Fatalf("%v in %s", err, p.body)
	}
	return out
}

// types gives the types of what was got, in order.
func (e *endpoint) types(t *testing.T) []string {
	t.Helper()
	list := []string{}
	for _, p := range e.got() {
		list = append(list, p.told(t).Type)
	}
	return list
}

func addEndpoint(t *testing.T, srv *stripetest.Server, spec stripetest.Endpoint) *stripetest.Hook {
	t.Helper()
	if spec.Account == "" {
		spec.Account, spec.Mode = "acct_1", "live"
	}
	if spec.Secrets == nil {
		spec.Secrets = []string{secret}
	}
	h, err := srv.AddEndpoint(spec)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func postAll(t *testing.T, srv *stripetest.Server) int {
	t.Helper()
	n, err := srv.Post(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func refunded(t *testing.T, srv *stripetest.Server, key string) *stripe.Refund {
	t.Helper()
	r, err := refund(client(t, srv, fullKey), key, "ch_A", 100)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestEventsArePostedSignedWithEverySecretThatIsActive(t *testing.T) {
	t.Parallel()
	srv, c := start(t, nil)
	e := newEndpoint(t)
	charged(t, srv, "ch_A", 5000)
	hook := addEndpoint(t, srv, stripetest.Endpoint{URL: e.URL, Types: []string{"refund.*"}})
	made := refunded(t, srv, "k-1")
	if n := postAll(t, srv); n != 1 || postAll(t, srv) != 0 {
		t.Fatalf("%d posts, want the one event that it wants, once", n)
	}
	hook.SetSecrets("whsec_next", secret)
	c.Add(time.Hour)
	refunded(t, srv, "k-2")
	postAll(t, srv)
	posts := e.got()
	if len(posts) != 2 {
		t.Fatalf("%d posts, want 2", len(posts))
	}
	if got := posts[0].told(t); got.Type != "refund.created" || got.Data.Object["id"] != made.ID || got.Version != "2025-08-27.basil" ||
		string(got.Request) == "null" || got.Account != "" {
		t.Errorf("told %+v", got)
	}
	for i, secrets := range [][]string{{secret}, {"whsec_next", secret}} {
		for _, s := range secrets {
			// The real client's check, by the real clock.
			if err := stripe.ValidatePayload(posts[i].body, posts[i].signature, s, stripe.WithIgnoreTolerance()); err != nil {
				t.Errorf("post %d with %s: %v", i, s, err)
			}
		}
	}
	if want := stripetest.Sign(c.Now(), posts[1].body, "whsec_next", secret); posts[1].signature != want {
		t.Errorf("signature %q, want %q", posts[1].signature, want)
	}
}

func TestWhatIsNotTakenComesAgainForThreeDays(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusFound, http.StatusBadRequest} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			srv, c := start(t, nil)
			e := newEndpoint(t)
			charged(t, srv, "ch_A", 5000)
			addEndpoint(t, srv, stripetest.Endpoint{URL: e.URL, Types: []string{"refund.created"}})
			e.answer(status)
			refunded(t, srv, "k-1")
			began := c.Now()
			postAll(t, srv)
			signatures := map[string]bool{}
			for {
				next, waits := srv.NextPost()
				if !waits {
					break
				}
				c.Add(next.Sub(c.Now()))
				if n := postAll(t, srv); n != 1 {
					t.Fatalf("%d posts, want 1", n)
				}
			}
			for _, p := range e.got() {
				signatures[p.signature] = true
			}
			if took := c.Now().Sub(began); took < 60*time.Hour || took > 72*time.Hour || len(e.got()) != 11 || len(signatures) != 11 {
				t.Errorf("%d posts with %d signatures in %v, want 11 with a signature each in three days", len(e.got()), len(signatures), took)
			}
			if got := getPage(t, srv, "/v1/events?delivery_success=false"); len(got.Data) != 1 {
				t.Errorf("%d events are told as not delivered, want 1", len(got.Data))
			}
		})
	}
}

func TestARetryEndsWhenItIsTaken(t *testing.T) {
	t.Parallel()
	srv, c := start(t, nil)
	e := newEndpoint(t)
	charged(t, srv, "ch_A", 5000)
	addEndpoint(t, srv, stripetest.Endpoint{URL: e.URL, Types: []string{"refund.created"}})
	e.answer(http.StatusInternalServerError)
	refunded(t, srv, "k-1")
	postAll(t, srv)
	e.answer(http.StatusOK)
	c.Add(5*time.Minute - time.Second)
	if n := postAll(t, srv); n != 0 {
		t.Errorf("%d posts before the rest is over", n)
	}
	c.Add(time.Second)
	postAll(t, srv)
	c.Add(80 * time.Hour)
	postAll(t, srv)
	var got []string
	for _, d := range srv.Deliveries() {
		got = append(got, fmt.Sprint(d.Attempt, " ", d.Status))
	}
	if diff := cmp.Diff([]string{"1 500", "2 200"}, got); diff != "" {
		t.Errorf("deliveries (-want +got):\n%s", diff)
	}
	if got := getPage(t, srv, "/v1/events?delivery_success=false"); len(got.Data) != 0 {
		t.Errorf("%d events are told as not delivered, want none", len(got.Data))
	}
}

func TestTroubleOnTheWay(t *testing.T) {
	t.Parallel()
	const n = 40
	run := func(t *testing.T, trouble stripetest.Trouble, seed uint64) ([]arrival, []stripetest.Delivery) {
		t.Helper()
		srv, c := start(t, func(o *stripetest.Options) { o.Seed = seed })
		e := newEndpoint(t)
		charged(t, srv, "ch_A", 50_000)
		addEndpoint(t, srv, stripetest.Endpoint{URL: e.URL, Types: []string{"refund.created"}, Trouble: trouble})
		for i := range n {
			refunded(t, srv, fmt.Sprint("k-", i))
			c.Add(time.Second)
		}
		c.Add(time.Hour)
		postAll(t, srv)
		return e.got(), srv.Deliveries()
	}
	order := func(posts []arrival) []string {
		var ids []string
		for _, p := range posts {
			ids = append(ids, p.told(t).ID)
		}
		return ids
	}
	plain, _ := run(t, stripetest.Trouble{}, 1)
	sent := order(plain)
	if len(sent) != n {
		t.Fatalf("%d posts, want %d", len(sent), n)
	}
	lost, _ := run(t, stripetest.Trouble{Lost: 0.5}, 1)
	if len(lost) < n/4 || len(lost) > 3*n/4 {
		t.Errorf("half of %d lost: %d arrived", n, len(lost))
	}
	twice, log := run(t, stripetest.Trouble{Twice: 1}, 1)
	repeats := 0
	for _, d := range log {
		if d.Repeat {
			repeats++
		}
	}
	if len(twice) != 2*n || repeats != n || !bytes.Equal(twice[0].body, twice[1].body) {
		t.Errorf("all twice: %d posts, %d repeats", len(twice), repeats)
	}
	for name, trouble := range map[string]stripetest.Trouble{"delayed": {Delay: time.Minute}, "shuffled": {Shuffled: true}} {
		mixed, _ := run(t, trouble, 1)
		again, _ := run(t, trouble, 1)
		got := order(mixed)
		if slices.Equal(got, sent) || !slices.Equal(got, order(again)) || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(sent))) {
			t.Errorf("%s: want the same events in another order, the same for the same seed", name)
		}
	}
	forged, log := run(t, stripetest.Trouble{Forged: 1}, 1)
	right, lies := 0, 0
	for i, p := range forged {
		err := stripe.ValidatePayload(p.body, p.signature, secret, stripe.WithIgnoreTolerance())
		if log[i].Forged != (err != nil) {
			t.Errorf("forged %t, and the check says %v", log[i].Forged, err)
		}
		if err == nil {
			right++
		} else {
			lies++
		}
	}
	if right != n || lies != n {
		t.Errorf("%d right ones and %d lies, want %d of both", right, lies, n)
	}
}

func TestAnEarlyEventArrivesBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	e := newEndpoint(t)
	charged(t, srv, "ch_A", 5000)
	addEndpoint(t, srv, stripetest.Endpoint{URL: e.URL, Trouble: stripetest.Trouble{Early: 1}})
	answered := make(chan struct{})
	e.onPost = func() {
		select {
		case <-answered:
			t.Error("posted after the answer")
		default:
		}
	}
	refunded(t, srv, "k-1")
	close(answered)
	if diff := cmp.Diff([]string{"refund.created", "charge.refunded"}, e.types(t)); diff != "" {
		t.Errorf("posts (-want +got):\n%s", diff)
	}
	if n := postAll(t, srv); n != 0 {
		t.Errorf("%d posts after it, want none", n)
	}
	// The answer may be lost and the event arrive all the same.
	srv.Script(stripetest.Fault{Kind: stripetest.Closed, Method: "POST", Executed: true})
	e.mu.Lock()
	e.onPost = nil
	e.mu.Unlock()
	if _, err := refund(client(t, srv, fullKey), "k-2", "ch_A", 100); err == nil || len(e.got()) != 4 {
		t.Errorf("answer %v, %d posts in all, want a lost answer and 4", err, len(e.got()))
	}
}

func TestEventsOfConnectedAccountsGoToConnectEndpoints(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, func(o *stripetest.Options) {
		o.Accounts = append(o.Accounts, stripetest.Account{ID: "acct_shop", Mode: "test", Platform: "acct_1"})
	})
	own, connect := newEndpoint(t), newEndpoint(t)
	addEndpoint(t, srv, stripetest.Endpoint{URL: own.URL})
	addEndpoint(t, srv, stripetest.Endpoint{URL: connect.URL, Connect: true})
	for _, at := range [][2]string{{"acct_1", "live"}, {"acct_1", "test"}, {"acct_2", "live"}, {"acct_shop", "live"}, {"acct_shop", "test"}} {
		if _, err := srv.AddCharge(stripetest.Charge{Account: at[0], Mode: at[1], Amount: 100}); err != nil {
			t.Fatal(err)
		}
	}
	postAll(t, srv)
	if got := own.got(); len(got) != 1 || got[0].told(t).Account != "" {
		t.Errorf("the account's endpoint got %d posts, want the one of its own", len(got))
	}
	got := connect.got()
	if len(got) != 2 || got[0].told(t).Account != "acct_shop" || got[0].told(t).Data.Object["livemode"] != true || got[1].told(t).Data.Object["livemode"] != false {
		t.Errorf("the endpoint for connected accounts got %d posts, want a live and a test one of acct_shop", len(got))
	}
}

func TestOldVersionsHaveOtherShapes(t *testing.T) {
	t.Parallel()
	srv, c := start(t, func(o *stripetest.Options) {
		o.Life = func(stripetest.Refund) stripetest.Life { return stripetest.FailsLate(time.Hour, "declined") }
	})
	ancient, old, odd := newEndpoint(t), newEndpoint(t), newEndpoint(t)
	addEndpoint(t, srv, stripetest.Endpoint{URL: ancient.URL, APIVersion: "2016-07-06"})
	addEndpoint(t, srv, stripetest.Endpoint{URL: old.URL, APIVersion: "2020-08-27"})
	addEndpoint(t, srv, stripetest.Endpoint{URL: odd.URL, APIVersion: "2029-01-01.next", Reshape: func(_ string, object map[string]any) { delete(object, "charge") }})
	if _, err := srv.AddPaymentIntent(stripetest.PaymentIntent{ID: "pi_A", Account: "acct_1", Mode: "live", Amount: 5000, LatestCharge: "ch_A"}); err != nil {
		t.Fatal(err)
	}
	refunded(t, srv, "k-1")
	c.Add(2 * time.Hour)
	postAll(t, srv)
	want := []string{"payment_intent.created", "charge.succeeded", "payment_intent.succeeded", "charge.refunded", "charge.refund.updated"}
	if diff := cmp.Diff(want, old.types(t)); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	charge := old.got()[3].told(t)
	refunds, _ := charge.Data.Object["refunds"].(map[string]any)
	data, _ := refunds["data"].([]any)
	if len(data) != 1 || data[0].(map[string]any)["status"] != "succeeded" || refunds["has_more"] != false {
		t.Errorf("the refunds of the charge are %v, want the one as it was then", refunds)
	}
	charges, _ := old.got()[2].told(t).Data.Object["charges"].(map[string]any)
	if data, _ := charges["data"].([]any); len(data) != 1 {
		t.Errorf("the charges of the intent are %v, want one", charges)
	}
	if request := ancient.got()[3].told(t).Request; !bytes.HasPrefix(request, []byte(`"req_`)) {
		t.Errorf("request is %s, want an id", request)
	}
	for _, p := range odd.got() {
		if got := p.told(t); got.Data.Object["object"] == "refund" {
			if _, there := got.Data.Object["charge"]; there || got.Version != "2029-01-01.next" {
				t.Errorf("%s still has its charge: %v", got.Type, got.Data.Object)
			}
		}
	}
}

func TestAnEventIsSentAgainOnDemand(t *testing.T) {
	t.Parallel()
	srv, c := start(t, nil)
	e := newEndpoint(t)
	hook := addEndpoint(t, srv, stripetest.Endpoint{URL: e.URL})
	charged(t, srv, "ch_A", 5000)
	postAll(t, srv)
	c.Add(10 * 24 * time.Hour)
	if err := srv.Resend(srv.Events()[0].ID); err != nil {
		t.Fatal(err)
	}
	postAll(t, srv)
	if got := e.got(); len(got) != 2 || got[0].told(t).ID != got[1].told(t).ID || got[0].signature == got[1].signature {
		t.Errorf("%d posts, want the same event twice", len(got))
	}
	if err := srv.Resend("evt_none"); err == nil {
		t.Error("an event that does not exist is sent")
	}
	if err := srv.Resend(srv.Events()[0].ID); err != nil {
		t.Fatal(err)
	}
	hook.Remove()
	if n := postAll(t, srv); n != 0 || len(e.got()) != 2 {
		t.Errorf("%d posts to an endpoint that was removed", n)
	}
}

func TestPostingEndsWithItsContextAndWithTheServer(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	e := newEndpoint(t)
	ctx, cancel := context.WithCancel(context.Background())
	stuck := make(chan struct{})
	e.onPost = func() {
		cancel()
		<-stuck
	}
	addEndpoint(t, srv, stripetest.Endpoint{URL: e.URL})
	charged(t, srv, "ch_A", 5000)
	charged(t, srv, "ch_B", 5000)
	if n, err := srv.Post(ctx); err == nil || n != 0 {
		t.Errorf("Post: %d, %v, want the end of its context", n, err)
	}
	close(stuck)
	e.mu.Lock()
	e.onPost = nil
	e.mu.Unlock()
	if n := postAll(t, srv); n != 2 {
		t.Errorf("%d posts afterwards, want both", n)
	}
	srv.Close()
	if _, err := srv.Post(context.Background()); err == nil {
		t.Error("a closed server posts")
	}
}

func TestAnEndpointMustBeOneThatCanBePostedTo(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	good := stripetest.Endpoint{URL: "http://127.0.0.1:1/hook", Account: "acct_1", Mode: "live", Secrets: []string{secret}}
	for name, change := range map[string]func(*stripetest.Endpoint){
		"no address":      func(e *stripetest.Endpoint) { e.URL = "localhost" },
		"no account":      func(e *stripetest.Endpoint) { e.Account = "acct_9" },
		"no secret":       func(e *stripetest.Endpoint) { e.Secrets = nil },
		"an empty secret": func(e *stripetest.Endpoint) { e.Secrets = []string{secret, ""} },
	} {
		bad := good
		change(&bad)
		if _, err := srv.AddEndpoint(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for i := range 17 {
		if _, err := srv.AddEndpoint(good); (err != nil) != (i == 16) {
			t.Errorf("endpoint %d: %v, want 16 and no more", i+1, err)
		}
	}
}
