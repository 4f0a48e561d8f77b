//go:build e2e

package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// pooled puts a PgBouncer in front of a database that gives every transaction whatever
// connection is free, two in all, and returns how to connect through it.
func pooled(t *testing.T, url string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		t.Fatal("pgbouncer was not found: `make deps` as root installs it, or: apt-get install pgbouncer")
	}
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	dir, err := os.MkdirTemp(localpg.ReachableTemp(), "pooler")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // of no use to anybody
	ini := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n%[1]s = host=%[2]s port=%[3]d user=%[4]s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %[5]d\nunix_socket_dir =\n"+
		"auth_type = any\npool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 100\n", cfg.Database, cfg.Host, cfg.Port, cfg.User, port)
	if err := errors.Join(os.WriteFile(ini, []byte(text), 0o644), os.Chmod(dir, 0o755), free.Close()); err != nil {
		t.Fatal(err)
	}
	args := []string{ini}
	if os.Getuid() == 0 { // it refuses root; the socket is open to the user who runs the server
		args = append([]string{"-u", ownerOf(t, cfg.Host)}, args...)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it holds nothing
		_ = cmd.Wait()         // it was killed, which is an error
	})
	through := fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", cfg.User, port, cfg.Database)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgx.Connect(t.Context(), through)
		if err == nil {
			if err := conn.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			return through
		}
		if time.Now().After(deadline) {
			t.Fatalf("pgbouncer does not answer: %v", err)
		}
	}
}

// ownerOf names the user whom a folder belongs to.
func ownerOf(t *testing.T, dir string) string {
	t.Helper()
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	u, err := user.LookupId(strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10))
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

// Behind a pooler that gives every transaction another connection, replicas sweep, take
// events in, keep house and share ticks as they do without one. Only the ringing for
// events goes past it.
func TestReplicasWorkBehindAPoolerOfTransactions(t *testing.T) {
	t.Parallel()
	stripe, err := stripetest.Start(stripetest.Options{
		Now: time.Now, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: "sk_live_TESTONLY"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stripe.Close)
	environ := map[string]string{"KEY": "sk_live_TESTONLY", "STRIPE_URL": stripe.URL(), "SECRET": hookSecret, "OLD": "whsec_OLD"}
	text := strings.Replace(hooked, `schedule: {sweep: "off", reverify: "off", audit: "off"}`, "", 1)
	direct := pgtest.URL(t)
	through := pooled(t, direct)
	wantPooled(t, through)
	c := parse(t, "database: {direct_url: \""+direct+"\"}\n"+text, environ)
	record(t, c.Policies, through)
	for id, amount := range map[string]int64{"op_right": 1000, "op_wrong": 1001} {
		_, err := stripe.AddRefund(stripetest.Refund{
			Account: "acct_1", Mode: "live", Charge: "ch_" + id, Amount: amount, Currency: "eur",
			Created: time.Now().Add(-time.Hour), Metadata: map[string]string{"op_id": id},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	first, second := start(t, c, through), start(t, c, through)
	for _, run := range []string{"sweep/stripe-main", "audit/stripe-main", "housekeeping"} {
		first.await("/metrics", 200, `^reconciler_run_last_success_timestamp_seconds\{run="`+run+`"\} [1-9]`)
	}
	if status, said := (delivery{body: refundEvent("evt_1", "re_1", "op_later")}).post(t, second.public); status != 200 {
		t.Errorf("a delivery: %d %s", status, said)
	}
	for deadline := time.Now().Add(20 * time.Second); len(events(t, box(t, through), inbox.Filter{States: []inbox.State{inbox.Done}})) == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the event is not taken in:\n%s", second.log)
		}
	}
	wantStates(t, direct, map[recon.OperationID]recon.State{"op_right": recon.Succeeded, "op_wrong": recon.ManualReview})
	for _, r := range []*running{first, second} {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		for line := range strings.Lines(r.log.String()) {
			if strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"level":"WARN"`) && strings.Contains(line, "database") {
				t.Error(line)
			}
		}
	}
}

// wantPooled makes sure that there is a pooler at all.
func wantPooled(t *testing.T, url string) {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if d, err := l.Durability(t.Context(), time.Now); err != nil || !d.Pooled {
		t.Fatalf("there is no pooler: %+v, %v", d, err)
	}
}
