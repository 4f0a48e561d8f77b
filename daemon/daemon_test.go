package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

func parse(t *testing.T, text string, environ map[string]string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte(text), func(name string) (string, bool) {
		v, ok := environ[name]
		return v, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const oneSource = `
listen: {private: "127.0.0.1:0"}
sources:
  - {name: stripe-main, kind: stripe, settings: {account: acct_1, api_key: "${KEY}", api_url: "${STRIPE_URL}", marker: op_id}}
actions:
  refund.create: {source: stripe-main, effect: refund, class: irreversible}
`

// running is a daemon in this process.
type running struct {
	*testing.T
	base   string // of the private listener
	public string // of the public one; empty: there is none
	stop   func() error
	log    *lockedBuffer
}

func start(t *testing.T, c *config.Config, url string, change ...func(*Options)) *running {
	t.Helper()
	r := &running{T: t, log: &lockedBuffer{}}
	ctx, cancel := context.WithCancel(t.Context())
	address, public, ended := make(chan string, 1), make(chan string, 1), make(chan error, 1)
	o := Options{
		Config: c, DatabaseURL: url, Holder: "test/" + t.Name(), Ready: func(a string) { address <- a }, ReadyPublic: func(a string) { public <- a },
		Log: slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range change {
		f(&o)
	}
	go func() { ended <- Run(ctx, o) }()
	select {
	case a := <-address:
		r.base = "http://" + a
		select { // told before the private one, if there is one
		case a := <-public:
			r.public = "http://" + a
		default:
		}
	case err := <-ended:
		t.Fatalf("the daemon ended: %v\n%s", err, r.log)
	}
	var once sync.Once
	r.stop = func() (err error) {
		once.Do(func() {
			cancel()
			select {
			case err = <-ended:
			case <-time.After(30 * time.Second):
				err = fmt.Errorf("the daemon does not end:\n%s", r.log)
			}
		})
		return err
	}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// get asks once.
func (r *running) get(path string) (int, string) {
	r.Helper()
	resp, err := http.Get(r.base + path)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// await asks until an answer comes.
func (r *running) await(path string, status int, pattern string) string {
	r.Helper()
	want := regexp.MustCompile("(?m)" + pattern)
	var code int
	var body string
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(30 * time.Millisecond) {
		if code, body = r.get(path); code == status && want.MatchString(body) {
			return body
		}
	}
	r.Fatalf("%s did not answer %d with %s; its last answer was %d\n%s\n%s", path, status, pattern, code, body, r.log)
	return ""
}

// gate is a way to a database that can be closed.
type gate struct {
	*testing.T
	address string
	to      *pgx.ConnConfig

	mu       sync.Mutex // guards what follows
	listener net.Listener
	conns    []net.Conn
}

func newGate(t *testing.T, url string) (*gate, string) {
	t.Helper()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{T: t, address: l.Addr().String(), to: cfg}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.close)
	return g, fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", cfg.User, g.address, cfg.Database)
}

func (g *gate) open() {
	g.Helper()
	l, err := net.Listen("tcp", g.address)
	if err != nil {
		g.Fatal(err)
	}
	g.mu.Lock()
	g.listener = l
	g.mu.Unlock()
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("unix", fmt.Sprintf("%s/.s.PGSQL.%d", g.to.Host, g.to.Port))
			if err != nil {
				_ = in.Close() // the daemon sees a broken connection, as it would
				continue
			}
			g.mu.Lock()
			g.conns = append(g.conns, in, out)
			g.mu.Unlock()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener != nil {
		_ = g.listener.Close()
	}
	for _, c := range g.conns {
		_ = c.Close()
	}
	g.conns = nil
}

func TestItStartsAndSaysSoWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	gate, url := newGate(t, pgtest.URL(t))
	c := parse(t, oneSource, map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": "http://127.0.0.1:1"})
	r := start(t, c, url)
	r.await("/healthz", 200, "alive")
	if code, body := r.get("/readyz"); code != 503 || !strings.Contains(body, "database has not answered") {
		t.Errorf("readyz %d %s", code, body)
	}
	first := r.await("/metrics", 200, `^reconciler_ledger_snapshot_timestamp_seconds 0$`)
	for _, want := range []string{
		`reconciler_operations{action="refund.create",source="stripe-main",state="unknown"} 0`,
		`reconciler_oldest_unknown_operation_timestamp_seconds{action="refund.create",source="stripe-main"} 0`,
		`reconciler_findings{kind="duplicate"} 0`,
		`reconciler_source_blind_since_timestamp_seconds{source="stripe-main"} 0`,
		`reconciler_run_last_success_timestamp_seconds{run="sweep/stripe-main"} 0`,
		`reconciler_run_last_success_timestamp_seconds{run="reverify/stripe-main"} 0`,
		`reconciler_looks_total{method="list",outcome="blind",source="stripe-main"} 0`,
		`reconciler_oldest_undelivered_notice_timestamp_seconds 0`,
	} {
		if !strings.Contains(first, want+"\n") {
			t.Errorf("the first scrape lacks %s", want)
		}
	}
	gate.open()
	r.await("/readyz", 200, "ready")
	r.await("/metrics", 200, `^reconciler_run_last_success_timestamp_seconds\{run="sweep/stripe-main"\}`)
	gate.close()
	r.await("/readyz", 503, "does not answer")
	r.await("/healthz", 200, "alive")
	gate.open()
	r.await("/readyz", 200, "ready")
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if strings.Contains(r.log.String(), "TESTONLY") {
		t.Error("the log shows a secret")
	}
}

// lockedBuffer takes the log of several goroutines.
type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
