package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/escalation/webhook"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const secret = "a-secret-of-the-tests-alone"

// receiver keeps what verify lets through.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex // guards what follows
	keys   []string
	bodies []string
	faults []error
	status int
	header map[string]string
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{status: http.StatusNoContent}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		body, err := verify(q, secret)
		if err != nil {
			r.faults = append(r.faults, err)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		r.keys, r.bodies = append(r.keys, q.Header.Get("Idempotency-Key")), append(r.bodies, string(body))
		for k, v := range r.header {
			w.Header().Set(k, v)
		}
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

func notifier(t *testing.T, url string, s string) *webhook.Notifier {
	t.Helper()
	n, err := webhook.New("pager", webhook.Settings{URL: url, Secret: recon.NewSecret(s)})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func at(s string) time.Time {
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err) // a slip in a test's own text
	}
	return v
}

func message() escalation.Message {
	f := recon.Finding{ID: "f1", Kind: recon.FindUnresolved, Certainty: recon.Proof, Source: "stripe-main", Operations: []recon.OperationID{"op-1"},
		Reason: "its answer was lost", Money: recon.Money{Minor: 4200, Currency: "EUR"}, State: recon.FindingOpen, Version: 3, OpenedAt: at("2026-03-01T02:13:32Z")}
	p := recon.DefaultPolicy()
	p.Effect, p.KeyLifetime = "refund", recon.Duration(24*time.Hour)
	return escalation.Message{Notice: "n1", Edition: 1, Act: recon.ActTell, Step: "after 15 min", Reason: escalation.StepDue, Now: at("2026-03-01T03:14:00+01:00"), About: f,
		Story: recon.Story{Policy: p, Findings: []recon.Finding{f}, Operation: recon.Operation{ID: "op-1", Action: "refund.create", Target: "order:4417", State: recon.Unknown,
			Money: f.Money, Key: "a-key-of-nobody", Metadata: json.RawMessage(`{"customer":"jane@example.com"}`), KeyExpiresAt: at("2026-03-02T01:58:02Z")}}}
}

func TestANoticeIsSignedAndTellsAllThatAPersonMustKnow(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	receipt, err := notifier(t, r.URL, secret).Send(t.Context(), message())
	if err != nil || receipt.IsZero() {
		t.Fatalf("receipt %v, %v", receipt, err)
	}
	want := `{"type":"told","notice":"n1","step":"after 15 min","reason":"step_due","at":"2026-03-01T02:14:00Z",` +
		`"finding":{"id":"f1","kind":"unresolved","text":"nobody knows yet whether it happened","advice":"Tell nobody yes or no, and do not send it under a new key: that could do it twice. It is asked again by itself; look at the provider if it cannot wait.",` +
		`"certainty":"proof","state":"open","version":3,"source":"stripe-main","reason":"its answer was lost","operation_ids":["op-1"],"effect_ids":[],"money":{"amount":4200,"currency":"EUR"},"opened_at":"2026-03-01T02:13:32Z"},` +
		`"operation":{"id":"op-1","title":"refund of 42.00 EUR for order:4417","action":"refund.create","target":"order:4417","state":"unknown","safe_retry_until":"2026-03-02T01:28:02Z"}}`
	if d := cmp.Diff([]string{want}, r.bodies); d != "" {
		t.Error(d)
	}
}

func TestEveryTryOfOneEventHasOneKey(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	n := notifier(t, r.URL, secret)
	m := message()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	send := func(m escalation.Message) error { _, err := n.Send(t.Context(), m); return err }
	do(send(m))
	m.Repeat = true
	do(send(m))
	other := message()
	other.Notice = "n2"
	_, err := n.Reply(t.Context(), recon.Receipt{Channel: "pager", TS: "n1"}, other)
	do(err)
	edit := message()
	edit.Notice, edit.Act, edit.Reason, edit.About.State, edit.About.Ending = "n3", recon.ActEdit, escalation.HasEnded, recon.FindingEnded, "it was found"
	for _, edition := range []int{1, 1, 2} {
		edit.Edition = edition
		do(n.Edit(t.Context(), recon.Receipt{}, edit))
	}
	if d := cmp.Diff([]string{"n1", "n1", "n2", "n3/1", "n3/1", "n3/2"}, r.keys); d != "" {
		t.Error(d)
	}
	if !strings.Contains(r.bodies[1], `"repeat":true`) || strings.Contains(r.bodies[0], "repeat") {
		t.Error("the second try must say that it is one, the first must not")
	}
	if last := r.bodies[5]; !strings.Contains(last, `"type":"changed"`) || !strings.Contains(last, `"state":"ended"`) || !strings.Contains(last, `"ending":"it was found"`) {
		t.Errorf("the end is not told: %s", last)
	}
}

func TestIncidentsAndDigestsAreToldAsSuch(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	n := notifier(t, r.URL, secret)
	m := escalation.Message{Notice: "n1", Act: recon.ActTell, Now: at("2026-03-01T02:14:00Z"), Reason: escalation.StepDue, Step: "after 0 s", Incident: &recon.Incident{
		ID: "i1", Kind: recon.FindBlind, Source: "stripe-main", Open: 2, Total: 2, OpenedAt: at("2026-03-01T02:13:00Z"), DownSince: at("2026-03-01T02:00:00Z"),
		Money: []recon.Money{{Minor: 5, Currency: "EUR"}}, Top: []recon.Member{{Operation: "op-1"}, {Finding: "f2"}}}}
	if _, err := n.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	m.Incident, m.Step = nil, ""
	m.Digest = &recon.Digest{Day: "2026-03-01", From: at("2026-02-28T08:00:00Z"), Kinds: []recon.DigestKind{{Kind: recon.FindMissing, Open: 1}}}
	if _, err := n.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	m.Digest = nil
	m.Report = &recon.DayReport{Day: "2026-02-28", Zone: "UTC", Verdict: "All.", Operations: 2, Effects: 3, Page: "/srv/r.html", MoreGaps: 1, Gaps: []string{"Down: x"},
		Findings: []recon.DayFindings{{Kind: recon.FindMissing, Open: 1, Over: 2}}, Money: []recon.DayMoney{{Currency: "EUR", Count: 2, Minor: 5, DoneCount: 1, DoneMinor: 3}}}
	if _, err := n.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"type":"told","notice":"n1","step":"after 0 s","reason":"step_due","at":"2026-03-01T02:14:00Z","incident":{"id":"i1","kind":"blind","source":"stripe-main","open":2,"total":2,"succeeded":0,"money":[{"amount":5,"currency":"EUR"}],"opened_at":"2026-03-01T02:13:00Z","down_since":"2026-03-01T02:00:00Z","top":["op-1","f2"]}}`,
		`{"type":"digest","notice":"n1","reason":"step_due","at":"2026-03-01T02:14:00Z","digest":{"day":"2026-03-01","from":"2026-02-28T08:00:00Z","opened":0,"ended":0,"undelivered":0,"down":[],"kinds":[{"kind":"missing","open":1,"assigned":0,"money":[],"opened":0,"ended":0}]}}`,
		`{"type":"report","notice":"n1","reason":"step_due","at":"2026-03-01T02:14:00Z","report":{"day":"2026-02-28","zone":"UTC","verdict":"All.","operations":2,"effects":3,"findings":[{"kind":"missing","open":1,"over":2}],"money":[{"currency":"EUR","count":2,"amount":5,"done_count":1,"done_amount":3}],"gaps":["Down: x"],"more_gaps":1,"page":"/srv/r.html"}}`,
	}
	if d := cmp.Diff(want, r.bodies); d != "" {
		t.Error(d)
	}
}

func TestAForgedRequestIsRefused(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	if _, err := notifier(t, r.URL, "another-secret-of-somebody").Send(t.Context(), message()); !errors.Is(err, escalation.Refused) {
		t.Errorf("got %v, want refused", err)
	}
	now := time.Now()
	stamp := func(t time.Time) string { return jsonNumber(t.Unix()) }
	good := webhook.Sign(secret, stamp(now), []byte("body"))
	old := webhook.Sign(secret, stamp(now.Add(-6*time.Minute)), []byte("body"))
	tests := []struct{ name, at, signature, body string }{
		{"another body", stamp(now), "v1=" + good, "Body"},
		{"another time", stamp(now.Add(time.Second)), "v1=" + good, "body"},
		{"too old", stamp(now.Add(-6 * time.Minute)), "v1=" + old, "body"},
		{"no signature", stamp(now), "", "body"},
		{"no time", "", "v1=" + good, "body"},
		{"an empty one", stamp(now), "v1=", "body"},
	}
	for _, tt := range tests {
		q := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tt.body))
		q.Header.Set(webhook.HeaderTimestamp, tt.at)
		q.Header.Set(webhook.HeaderSignature, tt.signature)
		if _, err := verify(q, secret); err == nil {
			t.Errorf("%s: let through", tt.name)
		}
	}
	q := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("body"))
	q.Header.Set(webhook.HeaderTimestamp, stamp(now))
	q.Header.Set(webhook.HeaderSignature, "v1=00,v1="+good)
	if _, err := verify(q, secret); err != nil {
		t.Errorf("one of two secrets: %v", err)
	}
}

func jsonNumber(n int64) string {
	b, err := json.Marshal(n)
	if err != nil {
		panic(err) // unreachable: a number
	}
	return string(b)
}

// Everything that a receiver can answer, and what it means for the next try.
func TestEveryAnswerIsJudged(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status int
		header map[string]string
		kind   escalation.Kind
		after  time.Duration
	}{
		{200, nil, "", 0}, {202, nil, "", 0}, {204, nil, "", 0},
		{429, map[string]string{"Retry-After": "7"}, escalation.RateLimited, 7 * time.Second},
		{429, nil, escalation.RateLimited, 0},
		{429, map[string]string{"Retry-After": "Sun, 01 Mar 2026 00:00:00 GMT"}, escalation.RateLimited, 0},
		{503, map[string]string{"Retry-After": "30"}, escalation.RateLimited, 30 * time.Second},
		{503, nil, escalation.Lost, 0}, {500, nil, escalation.Lost, 0}, {502, nil, escalation.Lost, 0}, {408, nil, escalation.Lost, 0},
		{400, nil, escalation.Rejected, 0}, {413, nil, escalation.Rejected, 0}, {422, nil, escalation.Rejected, 0},
		{401, nil, escalation.Refused, 0}, {404, nil, escalation.Refused, 0}, {410, nil, escalation.Refused, 0},
		{302, map[string]string{"Location": "http://127.0.0.1:1/"}, escalation.Refused, 0},
	}
	for _, tt := range tests {
		r := newReceiver(t)
		r.status, r.header = tt.status, tt.header
		_, err := notifier(t, r.URL, secret).Send(t.Context(), message())
		var e *escalation.Error
		if tt.kind == "" && err != nil || tt.kind != "" && (!errors.As(err, &e) || e.Kind != tt.kind || e.RetryAfter != tt.after) {
			t.Errorf("%d %v: %v, want %s after %s", tt.status, tt.header, err, tt.kind, tt.after)
		}
		if err != nil && strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%v tells an address", err)
		}
		if len(r.bodies) != 1 {
			t.Errorf("%d: %d requests, want one", tt.status, len(r.bodies))
		}
	}
}

func TestATryIsOneRequestAlsoWhereTheConnectionBreaks(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if requests++; requests > 1 {
			panic(http.ErrAbortHandler) // on the connection that was kept open
		}
	}))
	t.Cleanup(server.Close)
	n := notifier(t, server.URL, secret)
	if _, err := n.Send(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Send(t.Context(), message()); !errors.Is(err, escalation.Lost) {
		t.Errorf("got %v, want lost", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if requests != 2 {
		t.Errorf("%d requests, want 2", requests)
	}
}

func TestATimeoutIsALostAnswerAndADialThatFailsIsNot(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(stop) })
	n, err := webhook.New("pager", webhook.Settings{URL: server.URL, Secret: recon.NewSecret(secret), Timeout: recon.Duration(50 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Send(t.Context(), message()); !errors.Is(err, escalation.Lost) {
		t.Errorf("a timeout: %v, want lost", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := n.Send(ctx, message()); !errors.Is(err, escalation.Lost) {
		t.Errorf("told to stop: %v, want lost", err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if _, err := notifier(t, gone.URL, secret).Send(t.Context(), message()); !errors.Is(err, escalation.Unavailable) {
		t.Errorf("nobody listens: %v, want unavailable", err)
	}
}

func TestB100_NoKeyAndNoPersonalDataIsSent(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	if _, err := notifier(t, r.URL, secret).Send(t.Context(), message()); err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{"a-key-of-nobody", "jane", secret} {
		if strings.Contains(r.bodies[0], leak) {
			t.Errorf("%q is sent", leak)
		}
	}
}

func TestANewSecretNeedsNoRestart(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	file := filepath.Join(t.TempDir(), "secret")
	write := func(s string) {
		if err := os.WriteFile(file, []byte(s+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("the-secret-of-yesterday")
	n, err := webhook.New("pager", webhook.Settings{APIURL: r.URL, SecretFile: file})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Send(t.Context(), message()); !errors.Is(err, escalation.Refused) {
		t.Errorf("the old one: %v, want refused", err)
	}
	write(secret)
	if _, err := n.Send(t.Context(), message()); err != nil {
		t.Errorf("the new one: %v", err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Send(t.Context(), message()); !errors.Is(err, escalation.Refused) || strings.Contains(err.Error(), file) {
		t.Errorf("without the file: %v, want refused and no path", err)
	}
}

func TestSettingsNameTheirFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		s    webhook.Settings
		want string
	}{
		{"good", webhook.Settings{URL: "https://pager.example/x?team=a", SecretFile: "/run/secrets/pager"}, ""},
		{"a gateway", webhook.Settings{APIURL: "http://127.0.0.1:1", Secret: recon.NewSecret(secret)}, ""},
		{"nothing", webhook.Settings{}, "url secret_file"},
		{"no address", webhook.Settings{URL: "pager.example", SecretFile: "x"}, "url"},
		{"with a user", webhook.Settings{URL: "https://u:p@pager.example", APIURL: "ftp://x", SecretFile: "x"}, "url api_url"},
		{"a short secret", webhook.Settings{URL: "https://pager.example", Secret: recon.NewSecret("short")}, "secret_file"},
		{"a long time", webhook.Settings{URL: "https://pager.example", SecretFile: "x", Timeout: recon.Duration(time.Minute)}, "timeout"},
	}
	for _, tt := range tests {
		var got []string
		for _, f := range tt.s.Validate() {
			got = append(got, f.Path)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: faults at %v, want %q", tt.name, got, tt.want)
		}
		if _, err := webhook.New("pager", tt.s); (err != nil) != (tt.want != "") {
			t.Errorf("%s: New says %v", tt.name, err)
		}
	}
}

// The page shows the code that these tests run.
func TestThePageShowsTheCodeThatIsTested(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/webhook.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, ok := strings.Cut(string(source), "stands in docs/webhook.md as well.\n\n")
	if !ok || !strings.Contains(string(page), "```go\n"+code+"```") {
		t.Error("docs/webhook.md shows another verify than example_test.go")
	}
	for _, name := range []string{webhook.HeaderKey, webhook.HeaderTimestamp, webhook.HeaderSignature} {
		if !strings.Contains(string(page), name) {
			t.Errorf("docs/webhook.md does not tell the header %s", name)
		}
	}
}
