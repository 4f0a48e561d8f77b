package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/jackc/pgx/v5"
	"github.com/stripe/stripe-go/v82/webhook"

	"github.com/seed-1c4f4dc2/reconciler/internal/loopback"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// killedAfter is when an orchestrator kills what it asked to end.
const killedAfter = 10 * time.Second

// served is the real program, serving a ledger and a fake Stripe.
type served struct {
	*program
	url, public, private string
	stripe               *stripetest.Server
	log                  string // its file
}

func serve(t *testing.T) *served {
	t.Helper()
	s := &served{url: pgtest.URL(t), public: loopback.FreeAddress(t), private: loopback.FreeAddress(t)}
	var err error
	s.stripe, err = stripetest.Start(stripetest.Options{
		Now: time.Now, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_TESTONLY"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stripe.Close)
	config, lines := filepath.Join(t.TempDir(), "reconciler.yaml"), filepath.Join(t.TempDir(), "operations.jsonl")
	writeText(t, config, fmt.Sprintf(`
database: {url: %q}
listen: {public: %q, private: %q}
schedule: {audit: off}
sources:
  - {name: stripe-main, kind: stripe, settings: {account: acct_1, api_key: "${KEY}", api_url: %q, marker: op_id, webhook: {secrets: ["${HOOK}"]}}}
actions:
  refund.create: {source: stripe-main, effect: refund, class: irreversible}
`, s.url, s.public, s.private, s.stripe.URL()))
	var text strings.Builder
	for _, id := range []string{"op_right", "op_lost"} {
		fmt.Fprintf(&text, `{"id":%q,"source":"stripe-main","action":"refund.create","target":"order:1","parent":"ch_%[1]s","amount":4200,"currency":"EUR","state":"unknown","created_at":%q,"marks":["reference"]}`+"\n",
			id, time.Now().Add(-time.Hour).Format(time.RFC3339))
	}
	writeText(t, lines, text.String())
	if _, err := s.stripe.AddRefund(stripetest.Refund{
		Account: "acct_1", Mode: "live", Charge: "ch_op_right", Amount: 4200, Currency: "eur",
		Created: time.Now().Add(-time.Hour), Metadata: map[string]string{"op_id": "op_right"},
	}); err != nil {
		t.Fatal(err)
	}
	for _, verb := range [][]string{{"policy", "apply"}, {"operations", "import", lines}} {
		var said bytes.Buffer
		if err := newProgram(t, &said, append(verb, "--config", config)...).cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", verb, err, &said)
		}
	}
	s.log = filepath.Join(t.TempDir(), "log")
	s.program = newProgram(t, nil, "serve", "--config", config)
	return s
}

func writeText(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// begin starts the program with its log in a file, and waits until it is ready.
func (s *served) begin() {
	s.Helper()
	log, err := os.Create(s.log)
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close() // the program has its own
	s.cmd.Stderr = log
	s.start()
	s.await("to be ready", func() bool {
		resp, err := http.Get("http://" + s.private + "/readyz")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func (s *served) await(what string, is func() bool) {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if is() {
			return
		}
	}
	s.Fatalf("waited a minute for it %s:\n%s", what, s.said())
}

func (s *served) said() string {
	s.Helper()
	text, err := os.ReadFile(s.log)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

// deliver posts events one after another until ctx ends, and gives those that were
// acknowledged.
func (s *served) deliver(ctx context.Context, name string) (acked []string) {
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprintf("evt_%s_%d", name, n)
		body := fmt.Appendf(nil, `{"id":%q,"object":"event","api_version":"2025-08-27.basil","type":"customer.created","livemode":true,"created":%d,"data":{"object":{"id":"cus_1","object":"customer"}}}`,
			id, time.Now().Unix())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.public+"/webhooks/stripe-main", bytes.NewReader(body))
		if err != nil {
			return acked
		}
		req.Header.Set("Stripe-Signature", webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: "whsec_TESTONLY", Timestamp: time.Now()}).Header)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			time.Sleep(10 * time.Millisecond) // it is ending
			continue
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			acked = append(acked, id)
		}
	}
	return acked
}

// While deliveries come in from all sides, the provider hangs and the database holds a lock
// against it, the program ends within the time that an orchestrator gives, and what it
// acknowledged is stored.
func TestItEndsBeforeItIsKilledWhateverHangs(t *testing.T) {
	t.Parallel()
	s := serve(t)
	hold := make(chan struct{})
	defer close(hold)
	s.stripe.Script(stripetest.Fault{Kind: stripetest.Slow, Hold: hold, Times: stripetest.Always})
	s.begin()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var acked [4][]string
	var load sync.WaitGroup
	for n := range acked {
		load.Go(func() { acked[n] = s.deliver(ctx, fmt.Sprint(n)) })
	}
	s.await("to ask", func() bool { return len(s.stripe.Calls()) > 0 })
	release := lockRuns(t, s.url)
	took, err := s.stop()
	if err != nil || took > killedAfter {
		t.Errorf("it ended after %s with %v:\n%s", took, err, s.said())
	}
	release()
	stop()
	load.Wait()
	stored := events(t, s.url)
	count := 0
	for _, ids := range acked {
		count += len(ids)
		for _, id := range ids {
			if !stored[id] {
				t.Errorf("%s was acknowledged and is lost", id)
			}
		}
	}
	if count == 0 {
		t.Error("nothing was delivered")
	}
}

// An orderly end that hangs is cut short by another signal.
func TestASecondSignalEndsItAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t)
	hold := make(chan struct{})
	defer close(hold)
	s.stripe.Script(stripetest.Fault{Kind: stripetest.Slow, Hold: hold, Times: stripetest.Always})
	s.begin()
	s.await("to ask", func() bool { return len(s.stripe.Calls()) > 0 })
	defer lockRuns(t, s.url)() // the run that asks cannot be ended in order
	s.signal(syscall.SIGTERM)
	s.await("to be told", func() bool { return strings.Contains(s.said(), `"told to stop"`) })
	again := time.AfterFunc(100*time.Millisecond, func() { s.signal(syscall.SIGTERM) }) // the first may still be under way
	defer again.Stop()
	_, err := s.stop()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v, not by the second signal:\n%s", err, s.said())
	}
}

// lockRuns lets nobody write how runs end, until the returned function is called.
func lockRuns(t *testing.T, url string) (release func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(ctx, `BEGIN; LOCK TABLE reconciler.runs IN SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := conn.Close(ctx); err != nil {
			t.Error(err)
		}
	}
}

func events(t *testing.T, url string) map[string]bool {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), `SELECT id FROM reconciler.events`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]bool{}
	for _, id := range all {
		stored[id] = true
	}
	return stored
}

// Each line of the log is one JSON object where nobody looks at a terminal. A run that
// changed something is one line that says what; one that changed nothing is none.
func TestTheLogIsOneJSONLineForEachRunThatChangedSomething(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.begin()
	s.await("to sweep and to look back", func() bool {
		conn, err := pgx.Connect(t.Context(), s.url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		var done int
		err = conn.QueryRow(t.Context(), `SELECT count(DISTINCT r.name) FROM reconciler.runs r WHERE r.outcome = 'done' AND r.name IN ('sweep/stripe-main', 'reverify/stripe-main')`).Scan(&done)
		if err != nil {
			t.Fatal(err)
		}
		return done == 2
	})
	if took, err := s.stop(); err != nil || took > killedAfter {
		t.Errorf("it ended after %s with %v", took, err)
	}
	runs := map[string][]map[string]any{}
	for line := range strings.Lines(s.said()) {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry["time"] == nil || entry["level"] == nil || entry["msg"] == nil {
			t.Errorf("a line that is no entry: %s", line)
		}
		if entry["msg"] == "run done" {
			runs[entry["run"].(string)] = append(runs[entry["run"].(string)], entry)
		}
	}
	swept := runs["sweep/stripe-main"]
	// The one that happened may be closed by what the feed tells before, or meanwhile.
	if len(swept) == 0 || swept[0]["claimed"] != 1+swept[0]["succeeded"].(float64)+swept[0]["lost"].(float64) || swept[0]["kept"] != 1.0 || swept[0]["took"] == nil {
		t.Errorf("what the sweep says: %v", swept)
	}
	if back := runs["reverify/stripe-main"]; len(back) > 0 {
		t.Errorf("a run that changed nothing speaks: %v", back)
	}
	if strings.Contains(s.said(), "TESTONLY") {
		t.Error("the log shows a secret")
	}
}

// On a terminal the log is text.
func TestTheLogIsTextOnATerminal(t *testing.T) {
	t.Parallel()
	s := serve(t)
	terminal, screen := openTerminal(t)
	s.cmd.Stderr = screen
	s.start()
	if err := screen.Close(); err != nil {
		t.Fatal(err)
	}
	shown, text := make([]byte, 4096), ""
	for !strings.Contains(text, "msg=running") {
		n, err := terminal.Read(shown)
		if err != nil {
			t.Fatalf("it shows %q: %v", text, err)
		}
		text += string(shown[:n])
	}
	if strings.Contains(text, `"msg"`) {
		t.Errorf("it shows JSON: %s", text)
	}
}

// openTerminal makes a terminal: what is written to the screen is read from the other end.
func openTerminal(t *testing.T) (terminal, screen *os.File) {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() }) // of no use any more
	var number, unlock uint32
	for request, value := range map[uintptr]*uint32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &unlock} {
		if _, _, fault := syscall.Syscall(syscall.SYS_IOCTL, terminal.Fd(), request, uintptr(unsafe.Pointer(value))); fault != 0 {
			t.Fatal(fault)
		}
	}
	if screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	return terminal, screen
}
