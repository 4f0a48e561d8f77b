package ledger_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

func TestWhatIsSaidOfADatabase(t *testing.T) {
	t.Parallel()
	type change func(*ledger.Durability)
	for name, c := range map[string]struct {
		change change
		direct bool
		want   []string // level, about, a part of the text
	}{
		"all is well": {func(*ledger.Durability) {}, false, nil},
		"without fsync a crash loses what was committed": {
			func(d *ledger.Durability) { d.Fsync = false }, false, []string{"fault fsync: lose or corrupt"}},
		"without full page writes a crash breaks pages": {
			func(d *ledger.Durability) { d.FullPageWrites = false }, false, []string{"fault full_page_writes: stays broken"}},
		"without a synchronous standby its promotion loses intents": {
			func(d *ledger.Durability) { d.StandbyNames = "" }, false, []string{"warning synchronous_standby_names: asynchronous standby"}},
		"commits that do not wait": {
			func(d *ledger.Durability) { d.SynchronousCommit = "off" }, false, []string{"warning synchronous_commit: is off for this role"}},
		"commits that wait for this machine only": {
			func(d *ledger.Durability) { d.SynchronousCommit = "local" }, false, []string{"warning synchronous_commit: is local for this role"}},
		"commits that wait for more":     {func(d *ledger.Durability) { d.SynchronousCommit = "remote_apply" }, false, nil},
		"a clock that is ahead":          {func(d *ledger.Durability) { d.ClockAhead = 90 * time.Second }, false, []string{"warning clock: 1m30s ahead of"}},
		"a clock that is behind":         {func(d *ledger.Durability) { d.ClockAhead = -90 * time.Second }, false, []string{"warning clock: 1m30s behind"}},
		"a clock that is a second ahead": {func(d *ledger.Durability) { d.ClockAhead = time.Second }, false, nil},
		"a difference that a slow answer explains": {
			func(d *ledger.Durability) { d.ClockAhead, d.ClockWithin = 3*time.Second, 2*time.Second }, false, nil},
		"a pooler without a way past it": {func(d *ledger.Durability) { d.Pooled = true }, false, []string{"fault direct_url: past the pooler"}},
		"a pooler and a way past it":     {func(d *ledger.Durability) { d.Pooled = true }, true, nil},
		"everything at once": {func(d *ledger.Durability) { *d = ledger.Durability{SynchronousCommit: "off"} }, false,
			[]string{"fault fsync:", "fault full_page_writes:", "warning synchronous_commit:", "warning synchronous_standby_names:"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := ledger.Durability{Fsync: true, FullPageWrites: true, SynchronousCommit: "on", StandbyNames: "ANY 1 (a, b)"}
			c.change(&d)
			got := d.Advise(c.direct)
			if len(got) != len(c.want) {
				t.Fatalf("got %+v, want %q", got, c.want)
			}
			for i, a := range got {
				head, part, _ := strings.Cut(c.want[i], ":")
				if string(a.Level)+" "+a.About != head || !strings.Contains(a.Text, strings.TrimSpace(part)) {
					t.Errorf("got %+v, want %q", a, c.want[i])
				}
			}
		})
	}
}

// The tests' server may lose data, and says so.
func TestDurabilityIsWhatTheServerSays(t *testing.T) {
	t.Parallel()
	led := openAt(t, pgtest.URL(t, pgtest.SimulatedTime(t0)))
	got, err := led.Durability(t.Context(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if off := got.ClockAhead.Abs() - got.ClockWithin; off > time.Second {
		t.Errorf("the clock of this very host differs by %v: a simulated clock must take no part", off)
	}
	if !strings.Contains(got.ServerVersion, ".") || got.ClockWithin <= 0 {
		t.Errorf("got %+v", got)
	}
	got.ClockAhead, got.ClockWithin, got.ServerVersion = 0, 0, ""
	if diff := cmp.Diff(ledger.Durability{SynchronousCommit: "off"}, got); diff != "" {
		t.Errorf("durability (-want +got):\n%s", diff)
	}
}

func TestTheDatabasesClockIsHeldAgainstTheHosts(t *testing.T) {
	t.Parallel()
	led := openAt(t, pgtest.URL(t))
	got, err := led.Durability(t.Context(), func() time.Time { return time.Now().Add(-time.Hour) })
	if err != nil {
		t.Fatal(err)
	}
	if off := got.ClockAhead - time.Hour; off.Abs() > time.Second+got.ClockWithin {
		t.Errorf("ahead by %v, want an hour", got.ClockAhead)
	}
}

func TestAPoolerIsToldFromTheServer(t *testing.T) {
	t.Parallel()
	led := openAt(t, greeter(t, pgtest.URL(t)))
	got, err := led.Durability(t.Context(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Pooled {
		t.Error("a greeting by another process than the one that runs the statements is a pooler's")
	}
}

func openAt(t *testing.T, url string) *ledger.Ledger {
	t.Helper()
	led, err := ledger.Open(t.Context(), ledger.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(led.Close)
	return led
}

// greeter stands before the server and, as a pooler does, gives clients a process number
// of its own; all else passes. It returns how to connect to it.
func greeter(t *testing.T, url string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // ends the loop below
	network, address := pgNetwork(cfg)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go greet(t.Context(), client, network, address)
		}
	}()
	return "postgres://" + cfg.User + "@" + listener.Addr().String() + "/" + cfg.Database + "?sslmode=disable"
}

func pgNetwork(cfg *pgx.ConnConfig) (network, address string) {
	port := strconv.Itoa(int(cfg.Port))
	if strings.HasPrefix(cfg.Host, "/") {
		return "unix", cfg.Host + "/.s.PGSQL." + port
	}
	return "tcp", net.JoinHostPort(cfg.Host, port)
}

// greet carries one connection and changes the number in the server's greeting.
func greet(ctx context.Context, client net.Conn, network, address string) {
	defer client.Close()
	var dialer net.Dialer
	server, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	for {
		var head [5]byte // kind, length
		if _, err := io.ReadFull(server, head[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(server, body); err != nil {
			return
		}
		if head[0] == 'K' {
			binary.BigEndian.PutUint32(body, 4_000_000_000)
		}
		if _, err := client.Write(append(head[:], body...)); err != nil {
			return
		}
	}
}
