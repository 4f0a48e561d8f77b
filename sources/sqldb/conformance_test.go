package sqldb_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/sourcetest"
	"github.com/seed-1c4f4dc2/reconciler/sources/sqldb"
)

var (
	home = recon.Account{Account: "shop", Mode: "live"}
	away = recon.Account{Account: "shop", Mode: "test"}
)

// server is a database of another system, with a role that can only read.
type server struct {
	url, reader string
	pool        *pgxpool.Pool
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{url: pgtest.EmptyURL(t), reader: "reader_" + strings.ToLower(rand.Text()[:12])}
	var err error
	if s.pool, err = pgxpool.New(t.Context(), s.url); err != nil {
		t.Fatal(err)
	}
	s.exec(t, "CREATE ROLE "+s.reader+" LOGIN")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		for _, statement := range []string{"DROP OWNED BY " + s.reader, "DROP ROLE " + s.reader} {
			if _, err := s.pool.Exec(ctx, statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
		s.pool.Close()
	})
	return s
}

func (s *server) exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// shop is another system's table in a schema of its own, on a clock of its own.
type shop struct {
	*server
	*proxy
	schema string
	change func(*sqldb.Settings)

	mu   sync.Mutex // guards what follows
	now  time.Time
	lag  time.Duration
	made int
	due  []due
}

// due is a row that becomes visible later.
type due struct {
	at     time.Time
	insert func()
}

func newShop(t testing.TB, s *server, change func(*sqldb.Settings)) *shop {
	t.Helper()
	sh := &shop{server: s, proxy: startProxy(t, s.url), schema: "s_" + strings.ToLower(rand.Text()[:12]), change: change,
		now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
	s.exec(t, "CREATE SCHEMA "+sh.schema)
	s.exec(t, "CREATE TABLE "+sh.table()+` (id text PRIMARY KEY, made timestamptz NOT NULL, state text NOT NULL, gone_at timestamptz,
		total numeric(12, 3), cur text, "order" text, op text, idem text, shop text NOT NULL, live boolean NOT NULL, note text)`)
	for _, column := range []string{"made, id", `"order"`, "op", "idem"} {
		s.exec(t, "CREATE INDEX ON "+sh.table()+" ("+column+")")
	}
	s.exec(t, "GRANT USAGE ON SCHEMA "+sh.schema+" TO "+s.reader)
	s.exec(t, "GRANT SELECT ON "+sh.table()+" TO "+s.reader)
	return sh
}

func (s *shop) table() string { return s.schema + ".payouts" }

func (s *shop) settings(t *testing.T) sqldb.Settings {
	set := sqldb.Settings{
		URL: recon.NewSecret(s.through(t, s.url, s.reader)), PerSecond: 100_000,
		Accounts: []sqldb.AccountSettings{{Account: home.Account, Mode: home.Mode}, {Account: away.Account, Mode: away.Mode}},
		Effects: []sqldb.EffectSettings{{
			Kind: "payout", Schema: s.schema, Table: "payouts", Unit: "major", Consistency: "strong",
			Columns: sqldb.ColumnSettings{
				ID: "id", CreatedAt: "made", Status: "state", Deleted: "gone_at", Amount: "total", Currency: "cur", Parent: "order",
				Reference: "op", Key: "idem", Account: "shop", Mode: "live",
			},
			Statuses: map[string]string{"done": "completed", "undone": "reversed", "open": "in_flight"},
			Modes:    map[string]string{"true": "live", "false": "test"},
		}},
	}
	if s.change != nil {
		s.change(&set)
	}
	return set
}

func (s *shop) open(t *testing.T, o sqldb.Options) *sqldb.Source {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	src, err := sqldb.New("erp", s.settings(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func (s *shop) Source(t *testing.T, pageSize int) sources.Source {
	return s.open(t, sqldb.Options{PageSize: pageSize})
}

func (s *shop) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *shop) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
	for len(s.due) > 0 && !s.due[0].at.After(s.now) {
		s.due[0].insert()
		s.due = s.due[1:]
	}
}

func (s *shop) SetLag(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag = d
}

func (s *shop) Make(t *testing.T, e sourcetest.Effect) string {
	t.Helper()
	return s.make(t, e)
}

func (s *shop) make(t testing.TB, e sourcetest.Effect) string {
	at := e.At
	if at == (recon.Account{}) {
		at = home
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	id, made := fmt.Sprintf("po_%d", s.made), s.now
	insert := func() {
		s.exec(t, "INSERT INTO "+s.table()+` (id, made, state, total, cur, "order", op, idem, shop, live) VALUES
			($1, $2, 'done', $3::bigint / 100.0, $4, nullif($5, ''), nullif($6, ''), nullif($7, ''), $8, $9)`,
			id, made, e.Money.Minor, strings.ToLower(e.Money.Currency), e.Parent, e.Reference, e.Key, at.Account, at.Mode == "live")
	}
	if s.lag == 0 {
		insert()
	} else {
		s.due = append(s.due, due{s.now.Add(s.lag), insert})
	}
	return id
}

func (s *shop) FailLate(t *testing.T, _ sourcetest.Effect, id string) {
	s.exec(t, "UPDATE "+s.table()+" SET gone_at = $2 WHERE id = $1", id, s.Now())
}

func TestConformance(t *testing.T) {
	s := newServer(t)
	sourcetest.Exercise(t, sourcetest.Harness{
		Open: func(t *testing.T) sourcetest.Provider { return newShop(t, s, nil) },
		Kind: "payout", Home: home, Away: away, Stranger: recon.Account{Account: "other", Mode: "live"},
		Parent: func(n int) string { return fmt.Sprintf("ord_%d", n) }, Currency: "EUR",
	})
}
