package stripe_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	stripego "github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/attempt"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

const writeKey = "sk_live_TESTONLYagent"

// shop is a caller with the real client, which sends to a fake of the provider.
type shop struct {
	t      *testing.T
	srv    *stripetest.Server
	client *stripego.Client
	after  atomic.Int64 // nanoseconds that passed; also read by the provider's goroutines
}

func (s *shop) now() time.Time {
	return time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC).Add(time.Duration(s.after.Load()))
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t}
	var err error
	s.srv, err = stripetest.Start(stripetest.Options{Now: s.now, Seed: 1,
		Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: writeKey, ReadKey: "rk_live_TESTONLY"}},
		Life: func(r stripetest.Refund) stripetest.Life {
			if status := r.Metadata["becomes"]; status != "" {
				return stripetest.Life{{Status: status}}
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.srv.Close)
	if _, err := s.srv.AddCharge(stripetest.Charge{ID: "ch_1", Account: "acct_1", Mode: "live", Amount: 5000, Currency: "eur"}); err != nil {
		t.Fatal(err)
	}
	s.client = stripeClient(t, s.srv.URL(), writeKey, 0)
	return s
}

// stripeClient is the client as a caller makes it.
func stripeClient(t *testing.T, url, key string, retries int64) *stripego.Client {
	t.Helper()
	next := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(next.CloseIdleConnections)
	return stripego.NewClient(key, stripego.WithBackends(stripego.NewBackendsWithConfig(&stripego.BackendConfig{
		URL: stripego.String(url), MaxNetworkRetries: stripego.Int64(retries),
		HTTPClient:    &http.Client{Transport: &attempt.Transport{Next: next}, Timeout: 10 * time.Second},
		LeveledLogger: &stripego.LeveledLogger{Level: stripego.LevelNull},
	})))
}

var sending = stripe.Sending{Key: "k-1", Marker: "operation_id", Reference: "op_1"}

// refund makes one attempt of a refund; change may spoil it.
func refund(ctx context.Context, c *stripego.Client, inDoubt bool, change func(*stripego.RefundCreateParams)) recon.AttemptReport {
	s := sending
	s.InDoubt = inDoubt
	ctx, sent := stripe.Begin(ctx, s)
	p := &stripego.RefundCreateParams{Charge: stripego.String("ch_1"), Amount: stripego.Int64(1500)}
	p.SetIdempotencyKey(s.Key)
	p.AddMetadata(s.Marker, s.Reference)
	if change != nil {
		change(p)
	}
	_, _ = c.V1Refunds.Create(ctx, p) // what the client makes of the answer is not what is tested
	return sent.Report()
}

func becomes(status string) func(*stripego.RefundCreateParams) {
	return func(p *stripego.RefundCreateParams) { p.AddMetadata("becomes", status) }
}

// The three situations in which an answer is heard.
const (
	first     = "the first attempt"
	afterDone = "a repeat, the first was executed and its answer lost"
	afterLost = "a repeat, the first never arrived"
)

func TestEveryOutcomeOfAWriteIsClassified(t *testing.T) {
	t.Parallel()
	const (
		yes      = recon.ClassSucceeded
		accepted = recon.ClassAccepted
		refused  = recon.ClassRefused
		notSent  = recon.ClassNotSent
		stored   = recon.ClassStoredError
		unsure   = recon.ClassIndeterminate
	)
	post := func(f stripetest.Fault) []stripetest.Fault { f.Method = "POST"; return []stripetest.Fault{f} }
	for name, test := range map[string]struct {
		faults                      []stripetest.Fault
		prepare                     func(*shop)
		change                      func(*stripego.RefundCreateParams)
		first, afterDone, afterLost recon.AttemptClass // empty: the situation cannot occur
		code                        string             // of the first
	}{
		"2xx, succeeded":         {first: yes, afterDone: yes, afterLost: yes},
		"2xx, pending":           {change: becomes("pending"), first: accepted, afterDone: accepted, afterLost: accepted},
		"2xx, requires action":   {change: becomes("requires_action"), first: accepted, afterDone: accepted, afterLost: accepted},
		"2xx, failed":            {change: becomes("failed"), first: refused, afterDone: refused, afterLost: refused, code: "refund_failed"},
		"2xx, not parsed":        {faults: post(stripetest.Fault{Kind: stripetest.NotJSON, Executed: true}), first: unsure, afterDone: unsure, afterLost: unsure, code: "no_object"},
		"2xx, truncated":         {faults: post(stripetest.Fault{Kind: stripetest.Truncated}), first: unsure, afterDone: unsure, afterLost: unsure, code: "answer_cut_off"},
		"2xx, empty":             {faults: post(stripetest.Fault{Kind: stripetest.EmptyBody, Executed: true}), first: unsure, afterDone: unsure, afterLost: unsure, code: "no_object"},
		"2xx, an empty object":   {faults: post(stripetest.Fault{Kind: stripetest.EmptyObject, Executed: true}), first: unsure, afterDone: unsure, afterLost: unsure, code: "no_object"},
		"EOF, executed":          {faults: post(stripetest.Fault{Kind: stripetest.Closed, Executed: true}), first: unsure, afterDone: unsure, afterLost: unsure, code: "no_answer"},
		"EOF, not executed":      {faults: post(stripetest.Fault{Kind: stripetest.Closed}), first: unsure, afterDone: unsure, afterLost: unsure, code: "no_answer"},
		"400 validation":         {change: func(p *stripego.RefundCreateParams) { p.AddExtra("no_such", "x") }, first: refused, afterLost: notSent, code: "parameter_unknown"},
		"400 idempotency_error":  {prepare: func(s *shop) { s.other() }, first: unsure, afterDone: unsure, code: "key_used_otherwise"},
		"401":                    {faults: post(stripetest.Fault{Kind: stripetest.Unauthorized}), first: notSent, afterDone: notSent, afterLost: notSent, code: "api_key_expired"},
		"403":                    {faults: post(stripetest.Fault{Kind: stripetest.Forbidden}), first: notSent, afterDone: notSent, afterLost: notSent, code: "not_let_in"},
		"404 resource_missing":   {change: func(p *stripego.RefundCreateParams) { p.Charge = stripego.String("ch_gone") }, first: refused, afterDone: refused, afterLost: notSent, code: "resource_missing"},
		"400 already refunded":   {prepare: func(s *shop) { s.spend(5000) }, first: refused, afterDone: refused, afterLost: notSent, code: "charge_already_refunded"},
		"400 over-refund":        {prepare: func(s *shop) { s.spend(4000) }, first: refused, afterDone: refused, afterLost: notSent, code: "refused"},
		"409 key in use":         {faults: post(stripetest.Fault{Kind: stripetest.KeyInUse}), first: unsure, afterDone: unsure, afterLost: unsure, code: "idempotency_key_in_use"},
		"429 rate limit":         {faults: post(stripetest.Fault{Kind: stripetest.RateLimited}), first: notSent, afterDone: notSent, afterLost: notSent, code: "rate_limit"},
		"429 lock timeout":       {faults: post(stripetest.Fault{Kind: stripetest.LockTimeout}), first: unsure, afterDone: unsure, afterLost: unsure, code: "lock_timeout"},
		"500, not executed":      {faults: post(stripetest.Fault{Kind: stripetest.ServerError}), first: stored, afterLost: stored, code: "stored_error"},
		"500, executed":          {faults: post(stripetest.Fault{Kind: stripetest.ServerError, Executed: true}), first: stored, afterLost: stored, code: "stored_error"},
		"500 of a proxy":         {faults: post(stripetest.Fault{Kind: stripetest.ProxyPage, Status: 500}), first: unsure, afterDone: unsure, afterLost: unsure, code: "not_stripes_answer"},
		"502, a page":            {faults: post(stripetest.Fault{Kind: stripetest.ProxyPage, Executed: true}), first: unsure, afterDone: unsure, afterLost: unsure, code: "not_stripes_answer"},
		"401, not JSON":          {faults: post(stripetest.Fault{Kind: stripetest.NotJSON, Status: 401, Executed: true}), first: unsure, afterDone: unsure, afterLost: unsure, code: "not_stripes_answer"},
		"429, an empty body":     {faults: post(stripetest.Fault{Kind: stripetest.EmptyBody, Status: 429, Executed: true}), first: unsure, afterDone: unsure, afterLost: unsure, code: "not_stripes_answer"},
		"500, a page after work": {faults: post(stripetest.Fault{Kind: stripetest.ProxyPage, Status: 500, Executed: true}), first: unsure, afterDone: unsure, afterLost: unsure, code: "not_stripes_answer"},
	} {
		for situation, want := range map[string]recon.AttemptClass{first: test.first, afterDone: test.afterDone, afterLost: test.afterLost} {
			if want == "" {
				continue
			}
			t.Run(name+", "+situation, func(t *testing.T) {
				t.Parallel()
				s := newShop(t)
				if test.prepare != nil {
					test.prepare(s)
				}
				if situation != first {
					s.srv.Script(stripetest.Fault{Kind: stripetest.Closed, Method: "POST", Executed: situation == afterDone})
					if r := refund(t.Context(), s.client, false, test.change); r.Class != recon.ClassIndeterminate {
						t.Fatalf("the first attempt is %+v", r)
					}
				}
				s.srv.Script(test.faults...)
				before := s.srv.Writes()
				got := refund(t.Context(), s.client, situation != first, test.change)
				if got.Class != want {
					t.Errorf("%s (%s), want %s", got.Class, got.ErrorCode, want)
				}
				if situation == first && got.ErrorCode != test.code {
					t.Errorf("code %q, want %q", got.ErrorCode, test.code)
				}
				if n := s.srv.Writes() - before; n != 1 {
					t.Errorf("%d requests, want 1", n)
				}
				if got.Class == yes && (got.EffectID != s.srv.Refunds()[0].ID || !strings.Contains(string(got.Result), got.EffectID)) {
					t.Errorf("effect %s, result %s, refunds %v", got.EffectID, got.Result, s.srv.Refunds())
				}
			})
		}
	}
}

// other uses the attempt's key for another request.
func (s *shop) other() {
	s.t.Helper()
	ctx, sent := stripe.Begin(s.t.Context(), stripe.Sending{Key: sending.Key})
	p := &stripego.RefundCreateParams{Charge: stripego.String("ch_1"), Amount: stripego.Int64(1)}
	p.SetIdempotencyKey(sending.Key)
	_, _ = s.client.V1Refunds.Create(ctx, p)
	if r := sent.Report(); r.Class != recon.ClassSucceeded {
		s.t.Fatalf("the other request: %+v", r)
	}
}

// spend refunds part of the charge under another key.
func (s *shop) spend(amount int64) {
	s.t.Helper()
	ctx, sent := stripe.Begin(s.t.Context(), stripe.Sending{Key: "k-other"})
	p := &stripego.RefundCreateParams{Charge: stripego.String("ch_1"), Amount: stripego.Int64(amount)}
	p.SetIdempotencyKey("k-other")
	_, _ = s.client.V1Refunds.Create(ctx, p)
	if r := sent.Report(); r.Class != recon.ClassSucceeded {
		s.t.Fatalf("spending: %+v", r)
	}
}

func TestAStored500IsTheSameForEveryRepeat(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.srv.Script(stripetest.Fault{Kind: stripetest.ServerError, Method: "POST", Executed: true})
	for n := range 3 {
		if r := refund(t.Context(), s.client, n > 0, nil); r.Class != recon.ClassStoredError {
			t.Errorf("attempt %d: %+v", n+1, r)
		}
	}
	if n := len(s.srv.Refunds()); n != 1 {
		t.Errorf("%d refunds: the work was done all the same", n)
	}
}

func TestARefusalAfterTheKeyWasForgottenIsNoAnswerForTheFirst(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	full := func(p *stripego.RefundCreateParams) { p.Amount = stripego.Int64(5000) }
	s.srv.Script(stripetest.Fault{Kind: stripetest.Closed, Method: "POST", Executed: true})
	refund(t.Context(), s.client, false, full)
	s.after.Add(int64(25 * time.Hour))
	r := refund(t.Context(), s.client, true, full)
	if r.Class != recon.ClassNotSent || r.ErrorCode != "charge_already_refunded" {
		t.Errorf("%+v: it was our own first attempt that refunded it", r)
	}
}

// TestStatusesThatTheFakeDoesNotGive covers what the fake provider has no fault for.
func TestStatusesThatTheFakeDoesNotGive(t *testing.T) {
	t.Parallel()
	api := func(kind, code string) string {
		return fmt.Sprintf(`{"error":{"type":%q,"code":%q,"message":"m","payment_intent":{"id":"pi_1"}}}`, kind, code)
	}
	for name, test := range map[string]struct {
		status                int
		body                  string
		first, repeat, stored recon.AttemptClass
	}{
		"424":                   {424, api("api_error", ""), recon.ClassIndeterminate, recon.ClassIndeterminate, recon.ClassIndeterminate},
		"502 JSON":              {502, api("api_error", ""), recon.ClassIndeterminate, recon.ClassIndeterminate, recon.ClassIndeterminate},
		"503 JSON":              {503, api("api_error", ""), recon.ClassIndeterminate, recon.ClassIndeterminate, recon.ClassIndeterminate},
		"504 JSON":              {504, api("api_error", ""), recon.ClassIndeterminate, recon.ClassIndeterminate, recon.ClassIndeterminate},
		"409 without the code":  {409, api("invalid_request_error", ""), recon.ClassIndeterminate, recon.ClassIndeterminate, recon.ClassIndeterminate},
		"402 card_error":        {402, api("card_error", "card_declined"), recon.ClassRefused, recon.ClassRefused, recon.ClassRefused},
		"402 of another type":   {402, api("invalid_request_error", ""), recon.ClassRefused, recon.ClassNotSent, recon.ClassRefused},
		"400 stored":            {400, api("invalid_request_error", ""), recon.ClassRefused, recon.ClassNotSent, recon.ClassRefused},
		"a 4xx that is unknown": {418, api("invalid_request_error", ""), recon.ClassIndeterminate, recon.ClassIndeterminate, recon.ClassIndeterminate},
		"a redirect":            {302, `{}`, recon.ClassIndeterminate, recon.ClassIndeterminate, recon.ClassIndeterminate},
		"204":                   {204, ``, recon.ClassIndeterminate, recon.ClassIndeterminate, recon.ClassIndeterminate},
		"an error object in a 2xx": {200, api("api_error", ""), recon.ClassIndeterminate, recon.ClassIndeterminate,
			recon.ClassIndeterminate},
		"a kind without a status": {200, `{"id":"tr_1","object":"transfer"}`, recon.ClassSucceeded, recon.ClassSucceeded, recon.ClassSucceeded},
		"a status nobody knows": {200, `{"id":"po_1","object":"payout","status":"in_transit"}`, recon.ClassAccepted, recon.ClassAccepted,
			recon.ClassAccepted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var replayed atomic.Bool
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Request-Id", "req_1")
				if replayed.Load() {
					w.Header().Set("Idempotent-Replayed", "true")
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}))
			defer srv.Close()
			c := stripeClient(t, srv.URL, writeKey, 0)
			for _, situation := range []struct {
				inDoubt, replayed bool
				want              recon.AttemptClass
			}{{false, false, test.first}, {true, false, test.repeat}, {true, true, test.stored}} {
				replayed.Store(situation.replayed)
				got := refund(t.Context(), c, situation.inDoubt, nil)
				if got.Class != situation.want || got.RequestID != "req_1" {
					t.Errorf("%+v: %+v", situation, got)
				}
				if test.status == 402 && got.Class == recon.ClassRefused && got.EffectID != "pi_1" {
					t.Errorf("the declined payment intent is not named: %+v", got)
				}
			}
		})
	}
}

func TestWhatWasNotWrittenIsNotSent(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String()
	closed.Close()
	for name, url := range map[string]string{
		"nobody listens":             nobody,
		"the name is not known":      "http://no-such-host.invalid",
		"the TLS handshake fails":    "https://" + strings.TrimPrefix(newShop(t).srv.URL(), "http://"),
		"the address cannot be read": "http://127.0.0.1:99999",
	} {
		for _, inDoubt := range []bool{false, true} {
			if r := refund(t.Context(), stripeClient(t, url, writeKey, 0), inDoubt, nil); r.Class != recon.ClassNotSent {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

func TestADeadlineDuringTheCallIsIndeterminate(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	hold := make(chan struct{})
	defer close(hold)
	s.srv.Script(stripetest.Fault{Kind: stripetest.Slow, Method: "POST", Hold: hold})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if r := refund(ctx, s.client, false, nil); r.Class != recon.ClassIndeterminate {
		t.Errorf("%+v", r)
	}
}

// TestTheClientsOwnRetriesHideNothing: with its default of two retries stripe-go would
// send again and show only the last answer.
func TestTheClientsOwnRetriesHideNothing(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.srv.Script(
		stripetest.Fault{Kind: stripetest.Closed, Method: "POST", Executed: true},
		stripetest.Fault{Kind: stripetest.RateLimited, Method: "POST", Times: stripetest.Always})
	r := refund(t.Context(), stripeClient(t, s.srv.URL(), writeKey, 2), false, nil)
	if r.Class != recon.ClassIndeterminate || s.srv.Writes() != 1 {
		t.Errorf("%+v after %d requests: the first one's answer was lost, and nothing else may be sent", r, s.srv.Writes())
	}
}

func TestAKeptConnectionThatDiesDoesNotSendTwice(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if _, err := s.client.V1Refunds.Retrieve(t.Context(), "re_none", nil); err == nil {
		t.Fatal("there is no such refund")
	}
	s.srv.Script(stripetest.Fault{Kind: stripetest.Closed, Method: "POST", Executed: true})
	r := refund(t.Context(), s.client, false, nil)
	if r.Class != recon.ClassIndeterminate || s.srv.Writes() != 1 {
		t.Errorf("%+v after %d requests", r, s.srv.Writes())
	}
}

func TestACallThatIsNotItsAttemptsDoesNotLeave(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*stripego.RefundCreateParams){
		"no key, so that the client makes one up": func(p *stripego.RefundCreateParams) { p.IdempotencyKey = nil },
		"another key":                func(p *stripego.RefundCreateParams) { p.SetIdempotencyKey("k-2") },
		"no marker":                  func(p *stripego.RefundCreateParams) { p.Metadata = nil },
		"another operation's marker": func(p *stripego.RefundCreateParams) { p.AddMetadata("operation_id", "op_2") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			r := refund(t.Context(), s.client, false, change)
			if r.Class != recon.ClassNotSent || r.ErrorCode != "refused_here" || s.srv.Writes() != 0 {
				t.Errorf("%+v after %d writes", r, s.srv.Writes())
			}
		})
	}
}

func TestB67_MetadataThatStripeRefusesDoesNotLeave(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for n := range 50 {
		many[fmt.Sprint("key", n)] = "x"
	}
	for name, test := range map[string]struct {
		metadata map[string]string
		refused  bool
	}{
		"a key of 40 characters":     {map[string]string{strings.Repeat("ü", 40): "x"}, false},
		"a key of 41 characters":     {map[string]string{strings.Repeat("k", 41): "x"}, true},
		"51 keys with the marker":    {many, true},
		"an empty value":             {map[string]string{"note": ""}, true},
		"a value of 500 characters":  {map[string]string{"note": strings.Repeat("x", 500)}, false},
		"a value of 501 characters":  {map[string]string{"note": strings.Repeat("x", 501)}, true},
		"a square bracket in a name": {map[string]string{"a[b]": "x"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			r := refund(t.Context(), s.client, false, func(p *stripego.RefundCreateParams) {
				for k, v := range test.metadata {
					p.AddMetadata(k, v)
				}
			})
			want := recon.ClassSucceeded
			if test.refused {
				want = recon.ClassNotSent
			}
			if r.Class != want || test.refused != (s.srv.Writes() == 0) {
				t.Errorf("%+v after %d writes, want %s", r, s.srv.Writes(), want)
			}
			if err := stripe.CheckMetadata(test.metadata); name != "51 keys with the marker" && (err != nil) != test.refused {
				t.Errorf("CheckMetadata: %v", err)
			}
		})
	}
}

func TestAClientWithoutTheTransportIsNotTrusted(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	bare := stripego.NewClient(writeKey, stripego.WithBackends(stripego.NewBackendsWithConfig(&stripego.BackendConfig{
		URL: stripego.String(s.srv.URL()), LeveledLogger: &stripego.LeveledLogger{Level: stripego.LevelNull}})))
	if r := refund(t.Context(), bare, false, nil); r.Class != recon.ClassIndeterminate || r.ErrorCode != "unwatched" {
		t.Errorf("%+v: it may have been sent any number of times", r)
	}
}

func TestWhatIsKeptOfAnAnswerIsTheAllowList(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	r := refund(t.Context(), s.client, false, func(p *stripego.RefundCreateParams) { p.AddMetadata("customer_name", "Jane Roe") })
	if r.Class != recon.ClassSucceeded || strings.Contains(string(r.Result), "Jane") {
		t.Errorf("result %s", r.Result)
	}
}

func FuzzReportOfAnyAnswer(f *testing.F) {
	f.Add(200, `{"id":"re_1","object":"refund","status":"succeeded"}`, true)
	f.Add(402, `{"error":{"type":"card_error","payment_intent":{"id":"pi_1"}}}`, false)
	f.Add(500, `{"error":{"type":"api_error"}}`, true)
	f.Fuzz(func(t *testing.T, status int, body string, inDoubt bool) {
		r := stripe.ReportOf(status, []byte(body), inDoubt)
		if r.Class == "" || r.Class != recon.ClassSucceeded && r.Class != recon.ClassAccepted && r.ErrorCode == "" {
			t.Errorf("%d %q: %+v", status, body, r)
		}
		if (r.Class == recon.ClassSucceeded || r.Class == recon.ClassAccepted) && (r.EffectID == "" || status < 200 || status > 299) {
			t.Errorf("%d %q: %+v", status, body, r)
		}
		if inDoubt && r.Class == recon.ClassRefused && status >= 400 && status != 402 {
			t.Errorf("%d %q: a refusal of a repeat that is not stored was taken for the first's", status, body)
		}
	})
}
