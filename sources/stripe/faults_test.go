package stripe_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
)

// scripted is a server that answers as a test says, and counts what it is asked.
type scripted struct {
	*httptest.Server
	hits atomic.Int64
}

func serve(t *testing.T, answer http.HandlerFunc) *scripted {
	t.Helper()
	s := &scripted{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.hits.Add(1)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// one gives the settings of a source of one account whose name is no id of Stripe's,
// so that it is not asked for.
func (s *scripted) one() stripe.Settings {
	return stripe.Settings{APIURL: s.URL, APIKey: recon.NewSecret(liveKey), Marker: marker, PerSecond: 100_000}
}

const (
	page    = `{"object":"list","url":"/v1/refunds","has_more":false,"data":[%s]}`
	aRefund = `{"id":"re_1","object":"refund","amount":500,"currency":"eur","status":"succeeded","created":1772442000,"charge":"ch_1","metadata":{"op_id":"op-1"}}`
)

// ways are the three ways to ask for a refund, and what each is answered when all is
// well.
func ways() map[string]struct {
	question sources.Question
	good     string
} {
	q := sources.Question{Operation: "op-1", Kind: "refund", Account: "default", Mode: "live",
		Marks: []recon.Mark{recon.MarkReference}, From: newClock().now.Add(-time.Hour)}
	byID, byParent := q, q
	byID.EffectID, byParent.Parent = "re_1", "ch_1"
	return map[string]struct {
		question sources.Question
		good     string
	}{
		"by id":         {byID, aRefund},
		"by parent":     {byParent, fmt.Sprintf(page, aRefund)},
		"in the window": {q, fmt.Sprintf(page, aRefund)},
	}
}

func ask(t *testing.T, src *stripe.Source, batch ...sources.Question) sources.Answer {
	t.Helper()
	ans, err := src.Ask(context.Background(), batch, newClock().Now)
	if err != nil {
		t.Fatal(err)
	}
	return ans
}

func TestAnyReplyThatIsNotStripesAnswerIsBlindAfterOneRequest(t *testing.T) {
	t.Parallel()
	const private = "jane@example.com"
	apiError := func(typ, code, param string) string {
		b, err := json.Marshal(map[string]any{"error": map[string]string{"type": typ, "code": code, "param": param, "message": "No such customer: " + private}})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	tests := []struct {
		name   string
		status int
		body   string
		header map[string]string
		want   sources.Kind
	}{
		{"500 with Stripe's error", 500, apiError("api_error", "", ""), nil, sources.Unavailable},
		{"503 that says retry", 503, apiError("api_error", "", ""), map[string]string{"Stripe-Should-Retry": "true"}, sources.Unavailable},
		{"500 without body", 500, "", nil, sources.Unavailable},
		{"502 of a proxy", 502, "<html>" + private + "</html>", nil, sources.Unavailable},
		{"409", 409, apiError("invalid_request_error", "lock_timeout", ""), nil, sources.Unavailable},
		{"424", 424, apiError("api_error", "", ""), nil, sources.Unavailable},
		{"429 rate limit", 429, apiError("invalid_request_error", "rate_limit", ""), nil, sources.RateLimited},
		{"429 lock timeout, which stripe-go would retry", 429, apiError("invalid_request_error", "lock_timeout", ""), nil, sources.RateLimited},
		{"429 of a proxy", 429, "slow down " + private, nil, sources.RateLimited},
		{"401", 401, apiError("invalid_request_error", "api_key_expired", ""), nil, sources.BadCredentials},
		{"403", 403, apiError("invalid_request_error", "more_permissions_required", ""), nil, sources.BadCredentials},
		{"403 for another account", 403, apiError("invalid_request_error", "account_invalid", ""), nil, sources.WrongAccount},
		{"400", 400, apiError("invalid_request_error", "parameter_unknown", "created[gte]"), nil, sources.OwnBug},
		{"400 that names a person as parameter", 400, apiError("invalid_request_error", private, private), nil, sources.OwnBug},
		{"400 of a proxy", 400, "<html>bad</html>", nil, sources.Malformed},
		{"404 of a proxy", 404, "<html>" + private + "</html>", nil, sources.Malformed},
		{"404 for an unknown address", 404, apiError("invalid_request_error", "", ""), nil, sources.OwnBug},
		{"302", 302, "", map[string]string{"Location": "/elsewhere"}, sources.Malformed},
		{"204", 204, "", nil, sources.Malformed},
		{"206 with a page", 206, fmt.Sprintf(page, aRefund), nil, sources.Malformed},
		{"200 without body", 200, "", nil, sources.Malformed},
		{"200 with HTML", 200, "<html>" + private + "</html>", nil, sources.Malformed},
		{"200 {}", 200, "{}", nil, sources.Malformed},
		{"200 null", 200, "null", nil, sources.Malformed},
		{"200 that says retry", 200, "{}", map[string]string{"Stripe-Should-Retry": "true"}, sources.Malformed},
		{"200 list without has_more", 200, `{"object":"list","data":[]}`, nil, sources.Malformed},
		{"200 list without data", 200, `{"object":"list","has_more":false}`, nil, sources.Malformed},
		{"200 list that promises more after nothing", 200, `{"object":"list","has_more":true,"data":[]}`, nil, sources.Malformed},
		{"200 list of null", 200, fmt.Sprintf(page, "null"), nil, sources.Malformed},
		{"200 list of text", 200, fmt.Sprintf(page, `"re_1"`), nil, sources.Malformed},
		{"200 refund without id", 200, fmt.Sprintf(page, strings.Replace(aRefund, "re_1", "", 1)), nil, sources.Malformed},
		{"200 with an amount as text", 200, fmt.Sprintf(page, strings.Replace(aRefund, "500", `"500"`, 1)), nil, sources.Malformed},
		{"200 with a status of tomorrow", 200, fmt.Sprintf(page, strings.Replace(aRefund, "succeeded", "evaporated", 1)), nil, sources.Malformed},
		{"200 larger than any page", 200, `{"object":"list","has_more":false,"data":[],"x":"` + strings.Repeat("x", 9<<20) + `"}`, nil, sources.Malformed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for way, w := range ways() {
				srv := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
					for name, value := range tt.header {
						rw.Header().Set(name, value)
					}
					rw.Header().Set("Request-Id", "req_abc")
					rw.WriteHeader(tt.status)
					if tt.status != 204 {
						_, _ = rw.Write([]byte(tt.body))
					}
				})
				ans := ask(t, open(t, srv.one(), stripe.Options{}), w.question)
				if len(ans.Looks) != 1 {
					t.Fatalf("%s: %d looks, want 1", way, len(ans.Looks))
				}
				l := ans.Looks[0]
				if l.Outcome != recon.Blind || l.Complete || l.Fault != string(tt.want) {
					t.Errorf("%s: look is %s (complete %t) %q, want blind %q", way, l.Outcome, l.Complete, l.Fault, tt.want)
				}
				if l.RequestID != "req_abc" || len(l.ReplyHash) != 32 {
					t.Errorf("%s: request id %q and hash of %d bytes; both are evidence", way, l.RequestID, len(l.ReplyHash))
				}
				if all := fmt.Sprintf("%+v", ans); strings.Contains(all, private) {
					t.Errorf("%s: B100: personal data in the answer: %s", way, all)
				}
				if n := srv.hits.Load(); n != 1 {
					t.Errorf("%s: %d requests, want 1: nothing is retried", way, n)
				}
			}
		})
	}
}

func TestAConnectionThatBreaksIsBlindAfterOneRequest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		answer http.HandlerFunc
		want   sources.Kind
	}{
		{"before a reply", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, sources.Unavailable},
		{"in the middle of a reply", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5000")
			_, _ = w.Write([]byte(fmt.Sprintf(page, aRefund)))
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, sources.Truncated},
		{"in the middle of a 503", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5000")
			w.WriteHeader(503)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, sources.Unavailable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for way, w := range ways() {
				srv := serve(t, tt.answer)
				ans := ask(t, open(t, srv.one(), stripe.Options{}), w.question)
				if l := ans.Looks[0]; len(ans.Looks) != 1 || l.Outcome != recon.Blind || l.Fault != string(tt.want) {
					t.Errorf("%s: looks %+v, want one, blind %q", way, ans.Looks, tt.want)
				}
				if n := srv.hits.Load(); n != 1 {
					t.Errorf("%s: %d requests, want 1", way, n)
				}
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		srv := serve(t, nil)
		set := srv.one()
		srv.Close()
		for way, w := range ways() {
			if l := ask(t, open(t, set, stripe.Options{}), w.question).Looks[0]; l.Fault != string(sources.Unavailable) || strings.Contains(l.Detail, "127.0.0.1") {
				t.Errorf("%s: %q, detail %q", way, l.Fault, l.Detail)
			}
		}
	})
}

func TestOnlyAMissingIdIsAbsent(t *testing.T) {
	t.Parallel()
	const missing = `{"error":{"type":"invalid_request_error","code":"resource_missing","param":"id","message":"No such refund: 're_1'"}}`
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(404)
		_, _ = w.Write([]byte(missing))
	})
	l := ask(t, open(t, srv.one(), stripe.Options{}), ways()["by id"].question).Looks[0]
	if l.Method != recon.ByID || l.Outcome != recon.Absent || !l.Complete {
		t.Errorf("look is %s %s %q, want by_id absent", l.Method, l.Outcome, l.Fault)
	}
}

func TestAMissingParentIsNoAbsenceAndTheWindowIsListedInstead(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 404} {
		srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("charge") != "" {
				w.WriteHeader(status)
				_, _ = w.Write([]byte(`{"error":{"type":"invalid_request_error","code":"resource_missing","param":"charge","message":"No such charge: 'ch_1'"}}`))
				return
			}
			_, _ = fmt.Fprintf(w, page, strings.Replace(aRefund, "ch_1", "ch_2", 1))
		})
		ans := ask(t, open(t, srv.one(), stripe.Options{}), ways()["by parent"].question)
		if len(ans.Looks) != 1 || ans.Looks[0].Window.IsZero() || ans.Looks[0].Calls != 2 || len(ans.Effects) != 1 {
			t.Errorf("status %d: looks %+v with %d effects, want one of the window, and the refund under the other charge", status, ans.Looks, len(ans.Effects))
		}
	}
}

func TestB100_NoSecretAndNoTextOfStripesLeaves(t *testing.T) {
	t.Parallel()
	const secret, private = "rk_live_VERYSECRET", "jane@example.com"
	bad := `{"error":{"type":"invalid_request_error","code":"resource_missing","param":"customer","message":"No such customer: ` + private + `"}}`
	charge := `{"id":"ch_1","object":"charge","livemode":true,"amount":500,"currency":"eur","status":"failed","created":1772442000,"captured":false,` +
		`"description":"` + private + `","receipt_email":"` + private + `","billing_details":{"name":"Jane","email":"` + private + `"},` +
		`"failure_code":"` + private + `","failure_message":"` + private + `","metadata":{"op_id":"op-1","email":"` + private + `"},"customer":{"id":"cus_1","email":"` + private + `"}}`
	for _, reply := range []struct {
		status int
		body   string
	}{{404, bad}, {400, bad}, {401, bad}, {500, bad}, {200, private}, {200, fmt.Sprintf(page, charge)}} {
		srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Request-Id", private)
			w.WriteHeader(reply.status)
			_, _ = w.Write([]byte(reply.body))
		})
		set := srv.one()
		set.APIKey = recon.NewSecret(secret)
		var labels strings.Builder
		src := open(t, set, stripe.Options{OnRequest: func(endpoint, code string) { fmt.Fprintln(&labels, endpoint, code) }})
		q := ways()["in the window"].question
		q.Kind = "charge"
		ans := ask(t, src, q)
		raw, err := json.Marshal(ans)
		if err != nil {
			t.Fatal(err)
		}
		out := fmt.Sprintf("%+v\n%s\n%s\n%+v\n", ans, raw, labels.String(), set)
		for _, r := range ans.Raw {
			out += string(r.Bytes)
		}
		if err := src.Probe(context.Background()); err != nil {
			out += err.Error() + fmt.Sprintf("%+v", errors.Unwrap(err))
		}
		for _, word := range []string{secret, private, "Jane"} {
			if strings.Contains(out, word) {
				t.Errorf("%d %.20s: %q shows in %s", reply.status, reply.body, word, out)
			}
		}
	}
}

func TestRetryAfterIsHonouredAndBounded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, retryAfter string
		silentFor        time.Duration // at least
		asksAfter        time.Duration // at most
	}{
		{"seconds", "7", 6 * time.Second, 8 * time.Second},
		{"an hour is cut to two minutes", "3600", 119 * time.Second, 121 * time.Second},
		{"no header", "", 4 * time.Second, 6 * time.Second},
		{"no number", "soon", 4 * time.Second, 6 * time.Second},
		{"negative", "-7", 4 * time.Second, 6 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if tt.retryAfter != "" {
					w.Header().Set("Retry-After", tt.retryAfter)
				}
				w.WriteHeader(429)
			})
			c := newClock()
			src := open(t, srv.one(), stripe.Options{})
			q := ways()["by id"].question
			var last recon.Look
			for _, wait := range []time.Duration{0, tt.silentFor, tt.asksAfter - tt.silentFor} {
				c.Add(wait)
				ans, err := src.Ask(context.Background(), []sources.Question{q}, c.Now)
				if err != nil {
					t.Fatal(err)
				}
				last = ans.Looks[0]
				if last.Fault != string(sources.RateLimited) {
					t.Errorf("fault %q, want rate_limited also while silent", last.Fault)
				}
				if wait == tt.silentFor && last.Calls != 0 {
					t.Errorf("asked again after %s, though silence was asked for", wait)
				}
			}
			if n := srv.hits.Load(); n != 2 || last.Calls != 1 {
				t.Errorf("%d requests, want 2: one before and one after the silence", n)
			}
			var told *sources.Error
			if err := src.Probe(context.Background()); !errors.As(err, &told) || told.RetryAfter <= 0 || told.RetryAfter > 2*time.Minute {
				t.Errorf("Probe gives %v, want rate_limited with a bounded wait", err)
			}
		})
	}
}

func TestABatchIsGivenUpWhereItBringsNothing(t *testing.T) {
	t.Parallel()
	for status, most := range map[int]int64{429: 1, 503: 2, 401: 1, 403: 1, 200: 5, 400: 5} {
		srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		var batch []sources.Question
		for i := range 50 {
			q := ways()["by id"].question
			q.EffectID, q.From = fmt.Sprint("re_", i), q.From.Add(time.Duration(i)*time.Minute)
			batch = append(batch, q)
		}
		ans := ask(t, open(t, srv.one(), stripe.Options{}), batch...)
		if n := srv.hits.Load(); n > most {
			t.Errorf("status %d: %d requests, want at most %d", status, n, most)
		}
		if len(ans.Looks) > 6 {
			t.Errorf("status %d: %d looks for one outage; an outage of an hour must not fill the ledger", status, len(ans.Looks))
		}
		for _, q := range batch {
			o := recon.Operation{EffectID: q.EffectID, Account: "default", Mode: "live", SentAt: q.From.Add(recon.ClockSkew)}
			covered := false
			for _, l := range ans.Looks {
				covered = covered || l.Covers(o, "refund")
			}
			if !covered {
				t.Errorf("status %d: no look covers %s", status, q.EffectID)
			}
		}
	}
}

func TestNothingButAGetLeavesTheTransport(t *testing.T) {
	t.Parallel()
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("a %s reached the provider", r.Method)
		}
		w.WriteHeader(500)
	})
	if err := stripe.TryToWrite(srv.URL); err == nil {
		t.Error("a refund could be created through the source's transport")
	}
	if n := srv.hits.Load(); n != 0 {
		t.Errorf("%d requests reached the provider", n)
	}
}
