package daemon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v82/webhook"
	"golang.org/x/time/rate"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

const (
	hookSecret  = "whsec_TESTONLY"
	otherSecret = "whsec_OTHER"
	// hooked is a source that takes deliveries, and one that does not.
	hooked = `
listen: {public: "127.0.0.1:0", private: "127.0.0.1:0"}
schedule: {sweep: "off", reverify: "off", audit: "off"}
sources:
  - name: stripe-main
    kind: stripe
    settings: {system: stripe, account: acct_1, api_key: "${KEY}", api_url: "${STRIPE_URL}", marker: op_id,
               webhook: {secrets: ["${OLD}", "${SECRET}"]}}
  - {name: stripe-quiet, kind: stripe, settings: {account: acct_9, api_key: "${KEY}", api_url: "${STRIPE_URL}"}}
actions:
  refund.create: {source: stripe-main, effect: refund, class: irreversible}
`
)

func hookedConfig(t *testing.T, stripeURL string) *config.Config {
	t.Helper()
	return parse(t, hooked, map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripeURL, "SECRET": hookSecret, "OLD": "whsec_OLD"})
}

// delivery is a body as Stripe's own library signs it.
type delivery struct {
	path   string
	body   []byte
	secret string
	at     time.Time // zero: now
}

// refundEvent is an event of Stripe about a refund that somebody made for an operation.
func refundEvent(id, refund, operation string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"object":"event","api_version":"2025-08-27.basil","type":"refund.created","livemode":true,"created":%d,
		"request":{"id":"req_1","idempotency_key":"k-%s"},
		"data":{"object":{"id":%q,"object":"refund","amount":1000,"currency":"eur","status":"succeeded","created":%d,
		"charge":%q,"payment_intent":null,"reason":null,"balance_transaction":null,"metadata":{"op_id":%q}}}}`,
		id, time.Now().Unix(), operation, refund, time.Now().Unix(), "ch_"+operation, operation)
}

func (d delivery) header() string {
	at := d.at
	if at.IsZero() {
		at = time.Now()
	}
	secret := d.secret
	if secret == "" {
		secret = hookSecret
	}
	return webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: d.body, Secret: secret, Timestamp: at}).Header
}

// post delivers and gives status and answer.
func (d delivery) post(t testing.TB, base string) (int, string) {
	t.Helper()
	path := d.path
	if path == "" {
		path = "/webhooks/stripe-main"
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+path, bytes.NewReader(d.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Stripe-Signature", d.header())
	return do(t, req)
}

func do(t testing.TB, req *http.Request) (int, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Errorf("%s: %v", req.URL.Path, err)
		return 0, ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(body))
}

// box opens the inbox of a database behind the daemon's back.
func box(t *testing.T, url string) *inbox.Store {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return inbox.Open(l)
}

func events(t *testing.T, b *inbox.Store, f inbox.Filter) []inbox.Row {
	t.Helper()
	rows, err := b.List(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestEveryDeliveryIsAnsweredAsItDeserves(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	d := start(t, hookedConfig(t, "http://127.0.0.1:1"), url)
	d.await("/readyz", http.StatusOK, "ready")
	good := refundEvent("evt_good", "re_1", "op_1")
	with := func(old, new string) []byte { return bytes.Replace(good, []byte(old), []byte(new), 1) }
	named := func(id string, body []byte) []byte { return bytes.Replace(body, []byte("evt_good"), []byte(id), 1) }
	nested := named("evt_deep", with(`"metadata":`, `"deep":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`,"metadata":`))
	for _, c := range []struct {
		name   string
		d      delivery
		status int
		answer string
	}{
		{"good", delivery{body: good}, 200, "stored"},
		{"the same once more", delivery{body: good}, 200, "repeated"},
		{"signed with the secret before", delivery{body: named("evt_rolled", good), secret: "whsec_OLD"}, 200, "stored"},
		{"another source's secret", delivery{body: named("evt_x", good), secret: otherSecret}, 400, "bad_signature"},
		{"no JSON", delivery{body: []byte("refund=1")}, 400, "not_readable"},
		{"JSON, and no event", delivery{body: []byte(`[1,2]`)}, 400, "not_readable"},
		{"nothing", delivery{body: nil}, 400, "not_readable"},
		{"deeply nested", delivery{body: nested}, 400, "not_readable"},
		{"a megabyte and more", delivery{body: bytes.Repeat([]byte("x"), maxDelivery+1)}, 413, "at most 1048576 bytes"},
		{"B71 NUL in a text", delivery{body: named("evt_nul", with(`"balance_transaction":null`, `"d":"a\u0000b","e":"\\u0000","f":"\ud800"`))}, 200, "stored"},
		{"NUL in the id", delivery{body: named(`evt_\u0000`, good)}, 200, "stored"}, // under a name of our making
		{"B99 301 s old", delivery{body: named("evt_old", good), at: time.Now().Add(-301 * time.Second)}, 400, "too_old"},
		{"B99 six minutes ahead", delivery{body: named("evt_ahead", good), at: time.Now().Add(6 * time.Minute)}, 400, "too_old"},
		{"B99 290 s old", delivery{body: named("evt_late", good), at: time.Now().Add(-290 * time.Second)}, 200, "stored"},
		{"B99 290 s ahead", delivery{body: named("evt_early", good), at: time.Now().Add(290 * time.Second)}, 200, "stored"},
		{"B27 of test mode", delivery{body: named("evt_test", with(`"livemode":true`, `"livemode":false`))}, 200, "foreign"},
		{"of another account", delivery{body: named("evt_acct", with(`"object":"event"`, `"object":"event","account":"acct_stranger"`))}, 200, "foreign"},
		{"of a type that nobody knows", delivery{body: named("evt_new", with("refund.created", "tax.form.invented"))}, 200, "stored"},
		{"B48 of a version to come", delivery{body: named("evt_next", with("2025-08-27.basil", "2026-03-25.dahlia"))}, 200, "stored"},
		{"B48 of no version", delivery{body: named("evt_none", with(`"2025-08-27.basil"`, `"'; drop"`))}, 200, "stored"},
		{"unknown source", delivery{path: "/webhooks/nobody", body: good}, 404, "no such source"},
		{"a source that takes none", delivery{path: "/webhooks/stripe-quiet", body: good}, 404, "takes no deliveries"},
		{"no source", delivery{path: "/webhooks/", body: good}, 404, ""},
	} {
		status, answer := c.d.post(t, d.public)
		if status != c.status || !strings.Contains(answer, c.answer) {
			t.Errorf("%s: %d %q, want %d %q", c.name, status, answer, c.status, c.answer)
		}
	}
	hashed := fmt.Sprintf("sha256:%x", sha256.Sum256(named(`evt_\u0000`, good)))
	wantInbox(t, box(t, url), map[string]inbox.State{
		"evt_good": "", "evt_next": "", "evt_none": "", "evt_rolled": "", "evt_nul": "", "evt_late": "", "evt_early": "", "evt_new": "",
		"evt_test": inbox.Ignored, "evt_acct": inbox.Ignored, hashed: "",
	})
	body := d.await("/metrics", 200, `^reconciler_inbox_events_total\{result="stored",source="stripe-main"\} 9$`)
	for _, want := range []string{
		`result="repeated",source="stripe-main"} 1`, `result="foreign",source="stripe-main"} 2`, `result="too_old",source="stripe-main"} 2`,
		`result="bad_signature",source="stripe-main"} 1`, `result="not_readable",source="stripe-main"} 4`, `result="too_large",source="stripe-main"} 1`,
		`result="limited",source="stripe-main"} 0`,
	} {
		if !strings.Contains(body, "reconciler_inbox_events_total{"+want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
	for _, want := range []string{`version="2025-08-27.basil"} 9`, `version="2026-03-25.dahlia"} 1`, `version="unknown"} 1`} { // B48
		if !strings.Contains(body, `reconciler_inbox_versions_total{source="stripe-main",`+want+"\n") {
			t.Errorf("metrics lack %s", want)
		}
	}
	if log := d.log.String(); strings.Contains(log, "TESTONLY") || strings.Contains(log, "whsec") {
		t.Error("the log shows a secret")
	}
}

// wantInbox compares which events are stored; a state other than empty too.
func wantInbox(t *testing.T, b *inbox.Store, want map[string]inbox.State) {
	t.Helper()
	got := map[string]inbox.State{}
	for _, r := range events(t, b, inbox.Filter{}) {
		got[r.ID] = r.State
		if want[r.ID] == "" {
			got[r.ID] = ""
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inbox (-want +got):\n%s", diff)
	}
}

func TestOnlyPostsAreTakenAndABodyWithoutLengthIsBoundedToo(t *testing.T) {
	t.Parallel()
	d := start(t, hookedConfig(t, "http://127.0.0.1:1"), pgtest.URL(t))
	d.await("/readyz", http.StatusOK, "ready")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.public+"/webhooks/stripe-main", nil)
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := do(t, req); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", status)
	}
	endless := io.MultiReader(bytes.NewReader(bytes.Repeat([]byte("x"), maxDelivery)), bytes.NewReader([]byte("xx")))
	if req, err = http.NewRequestWithContext(t.Context(), http.MethodPost, d.public+"/webhooks/stripe-main", endless); err != nil {
		t.Fatal(err)
	}
	if status, _ := do(t, req); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of unknown length: %d", status)
	}
	if status, _ := do(t, mustGet(t, d.public+"/metrics")); status != http.StatusNotFound {
		t.Errorf("metrics on the public listener: %d", status)
	}
}

func mustGet(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func TestB05_FiftyPostsOfOneEventAreOneRowAndAllAreTaken(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	first := start(t, hookedConfig(t, "http://127.0.0.1:1"), url)
	second := start(t, hookedConfig(t, "http://127.0.0.1:1"), url)
	first.await("/readyz", http.StatusOK, "ready")
	second.await("/readyz", http.StatusOK, "ready")
	body := refundEvent("evt_2", "re_2", "op_2")
	var all sync.WaitGroup
	for n := range 50 {
		all.Go(func() {
			if status, answer := (delivery{body: body}).post(t, []*running{first, second}[n%2].public); status != http.StatusOK {
				t.Errorf("%d %s", status, answer)
			}
		})
	}
	all.Wait()
	rows := events(t, box(t, url), inbox.Filter{})
	if len(rows) != 1 || rows[0].Deliveries != 50 {
		t.Errorf("rows %+v", rows)
	}
}

// What is not on disk is not acknowledged: not while the database has never answered,
// and not while it is away.
func TestB52_NothingIsAcknowledgedWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	direct := pgtest.URL(t)
	gate, url := newGate(t, direct)
	d := start(t, hookedConfig(t, "http://127.0.0.1:1"), url)
	one := delivery{body: refundEvent("evt_1", "re_1", "op_1")}
	if status, _ := one.post(t, d.public); status != http.StatusServiceUnavailable {
		t.Errorf("before the database answered: %d", status)
	}
	if status, _ := (delivery{body: []byte("x")}).post(t, d.public); status != http.StatusBadRequest {
		t.Errorf("what can never be stored: %d", status)
	}
	gate.open()
	d.await("/readyz", http.StatusOK, "ready")
	if status, _ := one.post(t, d.public); status != http.StatusOK {
		t.Errorf("with the database: %d", status)
	}
	gate.close()
	two := delivery{body: refundEvent("evt_2", "re_2", "op_2")}
	if status, _ := two.post(t, d.public); status != http.StatusServiceUnavailable {
		t.Errorf("while the database is away: %d", status)
	}
	gate.open()
	d.await("/readyz", http.StatusOK, "ready")
	// Connections from before may lie in the pool for a second: what meets one is sent again.
	status, _ := two.post(t, d.public)
	for deadline := time.Now().Add(10 * time.Second); status == http.StatusServiceUnavailable && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
		status, _ = two.post(t, d.public)
	}
	if status != http.StatusOK {
		t.Errorf("when it is back: %d", status)
	}
	wantInbox(t, box(t, direct), map[string]inbox.State{"evt_1": "", "evt_2": ""})
}

// unopened is where deliveries come to before the inbox is open: what passes is answered 503.
func unopened(t *testing.T) (*webhooks, *receiver) {
	t.Helper()
	c := hookedConfig(t, "http://127.0.0.1:1")
	all, err := receivers(c)
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{Options: Options{Config: c, Log: slog.New(slog.DiscardHandler)}, metrics: newMetrics(c), bell: newBell(), receivers: all}
	return d.webhooks(), all["stripe-main"]
}

// to hands a delivery over without a network between.
func (d delivery) to(t *testing.T, h *webhooks) *recorder {
	t.Helper()
	w := &recorder{header: http.Header{}}
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), http.MethodPost, "/webhooks/stripe-main", bytes.NewReader(d.body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Stripe-Signature", d.header())
	req.SetPathValue("source", "stripe-main")
	h.ServeHTTP(w, req)
	return w
}

func TestTooManyDeliveriesAreToldToComeLater(t *testing.T) {
	t.Parallel()
	for name, hinder := range map[string]func(*webhooks, *receiver){
		"by the second": func(_ *webhooks, r *receiver) { r.limit = rate.NewLimiter(0, 0) },
		"at once": func(h *webhooks, _ *receiver) {
			for range maxDeliveries {
				h.places <- struct{}{}
			}
		},
	} {
		h, r := unopened(t)
		hinder(h, r)
		w := delivery{body: refundEvent("evt_1", "re_1", "op_1")}.to(t, h)
		if w.status != http.StatusTooManyRequests || w.header.Get("Retry-After") == "" {
			t.Errorf("%s: %d, Retry-After %q", name, w.status, w.header.Get("Retry-After"))
		}
	}
}

// Who cannot sign cannot spend what the provider may send.
func TestForgedDeliveriesDoNotHoldUpTrueOnes(t *testing.T) {
	t.Parallel()
	h, r := unopened(t)
	r.limit = rate.NewLimiter(0, 1)
	for range 20 {
		if w := (delivery{body: refundEvent("evt_0", "re_0", "op_0"), secret: otherSecret}).to(t, h); w.status != http.StatusBadRequest {
			t.Fatalf("a forged one: %d", w.status)
		}
	}
	genuine := delivery{body: refundEvent("evt_1", "re_1", "op_1")}
	if w := genuine.to(t, h); w.status != http.StatusServiceUnavailable {
		t.Errorf("a true one after them: %d, want 503 since the inbox is not open", w.status)
	}
	if w := genuine.to(t, h); w.status != http.StatusTooManyRequests {
		t.Errorf("a second true one: %d, want 429 since one was allowed", w.status)
	}
}

// Who sends the beginning of a body and no more cannot hold up who sends a whole one.
func TestSlowDeliveriesDoNotHoldUpTrueOnes(t *testing.T) {
	t.Parallel()
	d := start(t, hookedConfig(t, "http://127.0.0.1:1"), pgtest.URL(t))
	d.await("/readyz", http.StatusOK, "ready")
	address := strings.TrimPrefix(d.public, "http://")
	begun := "POST /webhooks/stripe-main HTTP/1.1\r\nHost: x\r\nStripe-Signature: t=1,v1=aa\r\nContent-Length: 1000\r\n\r\n{"
	var first net.Conn
	for n := range maxDeliveries + 20 {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, begun); err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			first = conn
			time.Sleep(50 * time.Millisecond) // so that it is the one that came first
		}
	}
	for n := range 3 {
		if status, text := (delivery{body: refundEvent(fmt.Sprintf("evt_%d", n), "re_1", "op_1")}).post(t, d.public); status != http.StatusOK {
			t.Errorf("delivery %d: %d %q, want 200", n, status, text)
		}
	}
	_ = first.SetReadDeadline(time.Now().Add(5 * time.Second))
	got, err := io.ReadAll(first)
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 429 ") {
		t.Errorf("the first slow one got %q, %v", got, err)
	}
}

// recorder keeps an answer.
type recorder struct {
	header http.Header
	status int
	body   strings.Builder
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
