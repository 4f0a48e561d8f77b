package pgtest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
	"github.com/seed-1c4f4dc2/reconciler/migrations"
)

// Waiting is a server of a test's own, with the schema, whose commits wait for a standby that
// does not come, where they wait for one at all: under synchronous_commit = on, which is not
// this server's default.
type Waiting struct {
	t     testing.TB
	URL   string
	admin *pgx.Conn
}

// WaitForStandby starts such a server. It ends with the test.
func WaitForStandby(t testing.TB) *Waiting {
	t.Helper()
	server, err := localpg.Start(t.Context(), localpg.Options{Throwaway: true})
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	w := &Waiting{t: t, URL: server.URL("postgres")}
	if err := migrations.Up(t.Context(), w.URL); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if w.admin, err = pgx.Connect(t.Context(), w.URL); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() { _ = w.admin.Close(context.WithoutCancel(t.Context())) }) // the server ends anyway
	w.exec(`ALTER SYSTEM SET synchronous_standby_names = 'nobody'`)
	w.exec(`SELECT pg_reload_conf()`)
	w.await(`SELECT current_setting('synchronous_standby_names') = 'nobody'`)
	w.exec(`CHECKPOINT`) // it is the checkpointer that tells everybody to wait, once it has read the setting too
	return w
}

// Arrive lets all commits go that wait, and those that come, as a standby does that has
// caught up.
func (w *Waiting) Arrive() {
	w.t.Helper()
	w.exec(`ALTER SYSTEM RESET synchronous_standby_names`)
	w.exec(`SELECT pg_reload_conf()`)
	w.await(`SELECT current_setting('synchronous_standby_names') = ''`)
}

// End waits for a commit that waits, and ends its wait: how is pg_cancel_backend, which
// somebody calls to whom it seems to hang, or pg_terminate_backend.
func (w *Waiting) End(how string) {
	w.t.Helper()
	w.await(`SELECT count(` + how + `(a.pid)) > 0 FROM pg_stat_activity a WHERE a.wait_event = 'SyncRep'`)
}

func (w *Waiting) exec(sql string) {
	w.t.Helper()
	if _, err := w.admin.Exec(w.t.Context(), sql); err != nil {
		w.t.Fatalf("pgtest: %s: %v", sql, err)
	}
}

func (w *Waiting) await(sql string) {
	w.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var is bool
		if err := w.admin.QueryRow(w.t.Context(), sql).Scan(&is); err != nil {
			w.t.Fatalf("pgtest: %s: %v", sql, err)
		}
		if is {
			return
		}
	}
	w.t.Fatalf("pgtest: not within half a minute: %s", sql)
}
