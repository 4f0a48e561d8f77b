package daemon

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

// childDatabase tells the test's own program that it is to be a daemon.
const childDatabase = "DAEMON_TEST_DATABASE"

func TestMain(m *testing.M) {
	if url := os.Getenv(childDatabase); url != "" {
		os.Exit(beDaemon(url))
	}
	os.Exit(m.Run())
}

// beDaemon runs a daemon that says on standard output where it listens.
func beDaemon(url string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	environ := map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": "http://127.0.0.1:1", "SECRET": hookSecret, "OLD": "whsec_OLD"}
	c, err := config.Parse("child.yaml", []byte(hooked), func(name string) (string, bool) { v, ok := environ[name]; return v, ok })
	if err == nil {
		err = Run(ctx, Options{
			Config: c, DatabaseURL: url, Holder: "child", Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
			ReadyPublic: func(a string) { fmt.Println("public http://" + a) },
		})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is a daemon in a process of its own.
type process struct {
	cmd    *exec.Cmd
	public string
}

func startProcess(t testing.TB, url string) *process {
	t.Helper()
	p := &process{cmd: exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^$")}
	p.cmd.Env = append(os.Environ(), childDatabase+"="+url)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill(t) })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the daemon says nothing: %v", err)
	}
	p.public = strings.TrimSpace(strings.TrimPrefix(line, "public "))
	return p
}

// kill ends the process without a word.
func (p *process) kill(t testing.TB) {
	t.Helper()
	if p.cmd.ProcessState != nil {
		return // it was killed before
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait() // it was killed, which is an error
}

// provider posts events until each is acknowledged, as Stripe does, and notes what was.
type provider struct {
	client *http.Client
	base   atomic.Pointer[string]
	acked  sync.Map // id of the event
	count  atomic.Int64
}

// deliver posts one event until it is taken.
func (p *provider) deliver(ctx context.Context, id string) {
	body := refundEvent(id, "re_"+id, "op_"+id)
	header := delivery{body: body}.header()
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, *p.base.Load()+"/webhooks/stripe-main", bytes.NewReader(body))
		if err != nil {
			return
		}
		req.Header.Set("Stripe-Signature", header)
		resp, err := p.client.Do(req)
		if err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be used again
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			p.acked.Store(id, true)
			p.count.Add(1)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// killInTheMiddle posts n events to a daemon that is killed several times meanwhile, and
// gives how many were acknowledged and are not stored.
func killInTheMiddle(t testing.TB, n, kills int) (lost int) {
	t.Helper()
	url := pgtest.URL(t)
	alive := startProcess(t, url)
	p := &provider{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: 10 * time.Second}}
	defer p.client.CloseIdleConnections()
	p.base.Store(&alive.public)
	ids := make(chan string)
	var posters sync.WaitGroup
	for range 16 {
		posters.Go(func() {
			for id := range ids {
				p.deliver(t.Context(), id)
			}
		})
	}
	go func() {
		defer close(ids)
		for i := range n {
			ids <- fmt.Sprintf("evt_%06d", i)
		}
	}()
	for k := 1; k <= kills; k++ {
		for p.count.Load() < int64(n*k/(kills+1)) {
			time.Sleep(time.Millisecond)
		}
		alive.kill(t)
		alive = startProcess(t, url)
		p.base.Store(&alive.public)
	}
	posters.Wait()
	alive.kill(t)
	stored := storedEvents(t, url)
	p.acked.Range(func(id, _ any) bool {
		if !stored[id.(string)] {
			lost++
		}
		return true
	})
	if len(stored) != n {
		t.Errorf("%d events are stored, want %d", len(stored), n)
	}
	return lost
}

func storedEvents(t testing.TB, url string) map[string]bool {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	rows, err := conn.Query(t.Context(), `SELECT e.id FROM reconciler.events e JOIN reconciler.blobs b ON b.tenant = e.tenant AND b.id = e.blob_id`)
	if err != nil {
		t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]bool{}
	for _, id := range ids {
		stored[id] = true
	}
	return stored
}

func TestNoAcknowledgedEventIsLostWhenTheDaemonIsKilled(t *testing.T) {
	t.Parallel()
	if lost := killInTheMiddle(t, 1500, 3); lost != 0 {
		t.Errorf("%d acknowledged events are lost", lost)
	}
}

// The same with 100,000 events: go test -run='^$' -bench=KilledDaemon -benchtime=1x ./daemon
func BenchmarkKilledDaemon(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(float64(killInTheMiddle(b, 100_000, 5)), "lost")
	}
}
