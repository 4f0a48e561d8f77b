//go:build e2e

package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
)

// pair is a PostgreSQL and a synchronous standby of it: what was acknowledged is on both.
// Each is reached by a wire of its own.
type pair struct {
	*testing.T
	dir              string
	primary, standby *node
	made             int // servers so far
}

// node is one server and the wire that leads to it.
type node struct {
	*localpg.Server
	dir  string
	wire *wire
}

func newPair(t *testing.T, dir string) *pair {
	t.Helper()
	p := &pair{T: t, dir: dir, primary: &node{wire: newWire(t)}, standby: &node{wire: newWire(t)}}
	p.primary.dir = p.folder()
	p.start(p.primary)
	t.Cleanup(func() { p.stop(p.primary); p.stop(p.standby) })
	p.ask(p.primary, `ALTER DATABASE postgres SET synchronous_commit = 'on'`) // throwaway servers wait for nothing by themselves
	p.ask(p.primary, `ALTER SYSTEM SET wal_retrieve_retry_interval = '200ms'`)
	p.follow()
	return p
}

// url names both servers, of which the one that takes writes is meant.
func (p *pair) url() string {
	return fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable&target_session_attrs=read-write&connect_timeout=5",
		p.primary.wire.listener.Addr(), p.standby.wire.listener.Addr())
}

func (p *pair) folder() string {
	p.made++
	return filepath.Join(p.dir, fmt.Sprint("pg", p.made))
}

// start starts a server on its data. Throwaway is enough: only servers end here, never the
// machine.
func (p *pair) start(n *node) {
	p.Helper()
	server, err := localpg.Start(context.WithoutCancel(p.Context()), localpg.Options{Dir: n.dir, Throwaway: true})
	if err != nil {
		p.Fatal(err)
	}
	n.Server = server
	n.wire.lead(n.socket(p.T))
}

func (n *node) socket(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(n.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(u.Query().Get("host"), ".s.PGSQL."+u.Query().Get("port"))
}

// stop ends a server at once, as its machine's death would.
func (p *pair) stop(n *node) {
	p.Helper()
	if n.Server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), 30*time.Second)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		p.Error(err)
	}
}

// restart ends the primary and starts it again on the same data.
func (p *pair) restart() {
	p.Helper()
	p.stop(p.primary)
	p.start(p.primary)
}

// lose ends the primary for ever and promotes the standby, and gives it a new standby.
func (p *pair) lose() {
	p.Helper()
	p.stop(p.primary)
	p.primary.wire.cut()
	if err := os.RemoveAll(p.primary.dir); err != nil {
		p.Error(err)
	}
	p.primary, p.standby = p.standby, p.primary
	p.ask(p.primary, `SELECT pg_promote()`)
	p.ask(p.primary, `ALTER SYSTEM RESET synchronous_standby_names`) // there is none to wait for yet
	p.ask(p.primary, `SELECT pg_reload_conf()`)
	p.follow()
}

// follow makes a new standby of the primary, and lets commits wait for it from then on.
func (p *pair) follow() {
	p.Helper()
	p.standby.dir = p.folder()
	p.copyData(p.standby.dir)
	p.start(p.standby)
	p.ask(p.primary, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	p.ask(p.primary, `SELECT pg_reload_conf()`)
	p.await(p.primary, `SELECT EXISTS (SELECT FROM pg_stat_replication r WHERE r.sync_state = 'sync')`)
	p.ask(p.primary, `CHECKPOINT`) // it is the checkpointer that tells commits to wait, once it has read the setting too
}

// copyData copies the primary's data into a new folder, as that of a standby.
func (p *pair) copyData(dir string) {
	p.Helper()
	data := filepath.Join(dir, "data")
	owner, err := os.Stat(filepath.Join(p.primary.dir, "data"))
	if err == nil {
		err = errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(data, 0o700))
	}
	if err != nil {
		p.Fatal(err)
	}
	of := owner.Sys().(*syscall.Stat_t)
	if err := os.Chown(data, int(of.Uid), int(of.Gid)); err != nil {
		p.Fatal(err)
	}
	runtime.LockOSThread() // the program dies with the thread that starts it
	defer runtime.UnlockOSThread()
	cmd := p.primary.Command("pg_basebackup", "-d", p.primary.URL("postgres"), "-D", data, "-R", "-X", "stream", "-c", "fast", "--no-sync")
	if said, err := cmd.CombinedOutput(); err != nil {
		p.Fatalf("copy the primary: %v\n%s", err, said)
	}
}

func (p *pair) connect(ctx context.Context, n *node) *pgx.Conn {
	p.Helper()
	conn, err := pgx.Connect(ctx, n.URL("postgres"))
	if err != nil {
		p.Fatal(err)
	}
	return conn
}

// ask runs a statement at a server itself, past its wire.
func (p *pair) ask(n *node, sql string) {
	p.Helper()
	ctx := context.WithoutCancel(p.Context())
	conn := p.connect(ctx, n)
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		p.Fatalf("%s: %v", sql, err)
	}
}

// await asks until the answer is true.
func (p *pair) await(n *node, sql string) {
	p.Helper()
	ctx := context.WithoutCancel(p.Context())
	conn := p.connect(ctx, n)
	defer conn.Close(ctx)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		var is bool
		if err := conn.QueryRow(ctx, sql).Scan(&is); err != nil {
			p.Fatalf("%s: %v", sql, err)
		}
		if is {
			return
		}
	}
	p.Fatalf("not within a minute: %s", sql)
}
