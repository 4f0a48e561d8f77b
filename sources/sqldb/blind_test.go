package sqldb_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/sourcetest"
	"github.com/seed-1c4f4dc2/reconciler/sources/sqldb"
)

// question asks for an operation that sent its id alone.
func (s *shop) question(reference string) sources.Question {
	return sources.Question{
		Operation: recon.OperationID(reference), Kind: "payout", Account: home.Account, Mode: home.Mode,
		Marks: []recon.Mark{recon.MarkReference}, From: s.Now().Add(-time.Hour),
	}
}

// ask asks one question, whose only look it gives.
func (s *shop) ask(t *testing.T, q sources.Question) (recon.Look, []recon.Effect) {
	t.Helper()
	ans, err := s.open(t, sqldb.Options{}).Ask(t.Context(), []sources.Question{q}, s.Now)
	if err != nil {
		t.Fatal(err)
	}
	if len(ans.Looks) != 1 {
		t.Fatalf("looks are %+v, want one", ans.Looks)
	}
	return ans.Looks[0], ans.Effects
}

// mustBe fails the test unless a look is blind for the reason, or not blind at all.
func mustBe(t *testing.T, l recon.Look, kind sources.Kind, says string) {
	t.Helper()
	if (l.Outcome == recon.Blind) != (kind != "") || l.Fault != string(kind) || !strings.Contains(l.Detail, says) {
		t.Errorf("look is %s %q (%s), want %q (%s)", l.Outcome, l.Fault, l.Detail, kind, says)
	}
}

func TestWhatTheTableCannotSayIsBlindAndNeverAbsent(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	for name, test := range map[string]struct {
		spoil  string // done to the table {T} of schema {S} and its reader {R}
		change func(*sqldb.Settings)
		kind   sources.Kind
		says   string
	}{
		"nothing is wrong":               {"", nil, "", ""},
		"the table is gone":              {"DROP TABLE {T}", nil, sources.Malformed, `there is no table or view "payouts"`},
		"the schema is another":          {"", func(s *sqldb.Settings) { s.Effects[0].Schema = "elsewhere" }, sources.Malformed, `in schema "elsewhere"`},
		"a column is gone":               {"ALTER TABLE {T} DROP COLUMN op", nil, sources.Malformed, `has no column "op"`},
		"a column that only is by":       {"", func(s *sqldb.Settings) { s.Effects[0].Only = map[string]string{"sort": "payout"} }, sources.Malformed, `has no column "sort"`},
		"a reference in a binary column": {"ALTER TABLE {T} ALTER op TYPE bytea USING convert_to(op, 'UTF8')", nil, sources.Malformed, "has type bytea, and needs text"},
		"an amount as a binary fraction": {"ALTER TABLE {T} ALTER total TYPE double precision", nil, sources.Malformed, "has type double precision, and needs numeric"},
		"a creation time as text":        {"ALTER TABLE {T} ALTER made TYPE text", nil, sources.Malformed, "needs timestamp with time zone"},
		"a word without meaning":         {"UPDATE {T} SET state = 'odd'", nil, sources.Malformed, "columns.status: holds a word that statuses does not name"},
		"no time of creation":            {"ALTER TABLE {T} ALTER made DROP NOT NULL; UPDATE {T} SET made = NULL", nil, sources.Malformed, "columns.created_at: a row holds nothing there"},
		"a time that never ends":         {"UPDATE {T} SET made = 'infinity'", nil, sources.Malformed, ""},
		"a time of another age":          {"UPDATE {T} SET made = '1066-10-14'", nil, sources.Malformed, "not within the years"},
		"no account":                     {"ALTER TABLE {T} ALTER shop DROP NOT NULL; UPDATE {T} SET shop = NULL", nil, sources.Malformed, "columns.account"},
		"no mode":                        {"ALTER TABLE {T} ALTER live DROP NOT NULL; UPDATE {T} SET live = NULL", nil, sources.Malformed, "columns.mode"},
		"a mode without meaning":         {"", func(s *sqldb.Settings) { s.Effects[0].Modes = map[string]string{"t": "live", "false": "test"} }, sources.Malformed, "columns.mode: holds a word"},
		"an amount that is no number":    {"UPDATE {T} SET total = 'NaN'", nil, sources.Malformed, "columns.amount"},
		"a fraction of a cent":           {"UPDATE {T} SET total = 10.005", nil, sources.Malformed, "columns.amount"},
		"an amount without currency":     {"UPDATE {T} SET cur = NULL", nil, sources.Malformed, "no currency of three letters"},
		"two rows under one id":          {"ALTER TABLE {T} DROP CONSTRAINT payouts_pkey; INSERT INTO {T} SELECT * FROM {T}", nil, sources.Malformed, "several rows bear one id"},
		"a row of many megabytes":        {"ALTER TABLE {T} ADD why text; UPDATE {T} SET why = repeat('x', 17000000)", func(s *sqldb.Settings) { s.Effects[0].Columns.FailureReason = "why" }, sources.Truncated, "not all were read"},
		"no permission":                  {"REVOKE SELECT ON {T} FROM {R}", nil, sources.BadCredentials, "permission denied for table payouts"},
		"no permission for a column":     {"REVOKE SELECT ON {T} FROM {R}; GRANT SELECT (id, made) ON {T} TO {R}", nil, sources.BadCredentials, "permission denied"},
		"rows that are hidden":           {"ALTER TABLE {T} ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON {T} TO {R} USING (shop = 'another')", nil, sources.BadCredentials, "row-level security"},
		"a view that takes too long":     {"ALTER TABLE {T} RENAME TO slow; CREATE VIEW {T} AS SELECT s.* FROM {S}.slow s, pg_sleep(60); GRANT SELECT ON {T} TO {R}", func(s *sqldb.Settings) { s.StatementTimeout = recon.Duration(200 * time.Millisecond) }, sources.Timeout, "is what is looked for indexed?"},
		"a view that would write":        {"CREATE TABLE {S}.log (n int); CREATE FUNCTION {S}.note() RETURNS int LANGUAGE sql SECURITY DEFINER AS $$ INSERT INTO {S}.log VALUES (1) RETURNING n $$; ALTER TABLE {T} RENAME TO kept; CREATE VIEW {T} AS SELECT k.* FROM {S}.kept k WHERE {S}.note() = 1; GRANT SELECT ON {T} TO {R}", nil, sources.OwnBug, "read-only transaction"},
		"a collation that folds":         {"CREATE COLLATION {S}.folds (provider = icu, locale = 'und-u-ks-level1', deterministic = false); ALTER TABLE {T} ALTER op TYPE text COLLATE {S}.folds; UPDATE {T} SET op = 'öp-1'", nil, sources.Malformed, "collation"},
		"a role that is not there": {"", func(s *sqldb.Settings) {
			s.URL = recon.NewSecret(strings.Replace(s.URL.Reveal(), "reader_", "nobody_", 1))
		}, sources.BadCredentials, "nobody_"},
		"a database that is not there":      {"", func(s *sqldb.Settings) { s.URL = recon.NewSecret(strings.Replace(s.URL.Reveal(), "?", "_gone?", 1)) }, sources.Malformed, "does not exist"},
		"a server that refuses":             {"", func(s *sqldb.Settings) { s.URL = recon.NewSecret("postgres://u:TESTONLY@127.0.0.1:1/db") }, sources.Unavailable, "cannot be reached"},
		"an address that was never read":    {"", func(s *sqldb.Settings) { s.URL = recon.NewSecret("not read") }, sources.OwnBug, "no connection string"},
		"a reference that nothing can hold": {"ALTER TABLE {T} ALTER op TYPE uuid USING gen_random_uuid()", func(s *sqldb.Settings) { s.Effects[0].Columns.CreatedAt = "gone_at" }, sources.Malformed, "columns.created_at"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, srv, test.change)
			s.Make(t, sourcetest.Effect{Reference: "op-1", Money: recon.Money{Minor: 1250, Currency: "EUR"}})
			for statement := range strings.SplitSeq(test.spoil, "; ") {
				s.exec(t, strings.NewReplacer("{T}", s.table(), "{S}", s.schema, "{R}", s.reader).Replace(statement))
			}
			l, effects := s.ask(t, s.question("op-1"))
			mustBe(t, l, test.kind, test.says)
			if (len(effects) > 0) == (test.kind != "") {
				t.Errorf("%d effects came with a look that is %s", len(effects), l.Outcome)
			}
			if strings.Contains(l.Detail, "TESTONLY") || strings.Contains(l.Detail, "op-1") {
				t.Errorf("the fault tells what it must not: %s", l.Detail)
			}
		})
	}
}

func TestALockedTableIsBlindInTime(t *testing.T) {
	t.Parallel()
	s := newShop(t, newServer(t), func(s *sqldb.Settings) { s.LockTimeout = recon.Duration(50 * time.Millisecond) })
	s.Make(t, sourcetest.Effect{Reference: "op-1", Money: recon.Money{Minor: 1250, Currency: "EUR"}})
	holder, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), "LOCK TABLE "+s.table()+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	l, _ := s.ask(t, s.question("op-1"))
	mustBe(t, l, sources.Timeout, "a lock on the table")
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, _ = s.ask(t, s.question("op-1"))
	mustBe(t, l, "", "")
}

func TestAServerThatSaysNothingIsBlindInTime(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() }) // nobody is accepted, and everybody is connected
	s := newShop(t, newServer(t), func(s *sqldb.Settings) {
		s.URL = recon.NewSecret("postgres://reader@" + silent.Addr().String() + "/shop?sslmode=disable")
		s.ConnectTimeout = recon.Duration(100 * time.Millisecond)
	})
	l, _ := s.ask(t, s.question("op-1"))
	mustBe(t, l, sources.Timeout, "no answer in time")
	var fault *sources.Error
	if err := s.open(t, sqldb.Options{}).Probe(t.Context()); err == nil || !isFault(err, &fault) || fault.Kind != sources.Timeout {
		t.Errorf("the probe gives %v, want a time-out", err)
	}
}

func isFault(err error, into **sources.Error) bool {
	f, ok := err.(*sources.Error)
	*into = f
	return ok
}

// A list that breaks off answers for what it read, and is blind for the rest.
func TestAListThatBreaksOffAnswersForWhatItRead(t *testing.T) {
	t.Parallel()
	s := newShop(t, newServer(t), nil)
	for i := range 6 {
		s.Make(t, sourcetest.Effect{Reference: "op-" + string(rune('a'+i)), Money: recon.Money{Minor: 1250, Currency: "EUR"}})
		s.Advance(time.Minute)
	}
	q := s.question("op-a")
	q.Marks, q.From = nil, s.Now().Add(-10*time.Minute)
	s.Break(sourcetest.Broken, 2)
	ans, err := s.open(t, sqldb.Options{PageSize: 2}).Ask(t.Context(), []sources.Question{q}, s.Now)
	if err != nil {
		t.Fatal(err)
	}
	if len(ans.Looks) != 2 || len(ans.Effects) != 4 {
		t.Fatalf("%d effects and looks %+v, want 4 effects and what was read beside what was not", len(ans.Effects), ans.Looks)
	}
	read, rest := ans.Looks[0], ans.Looks[1]
	if read.Outcome != recon.Found || rest.Outcome != recon.Blind || !read.Window.From.Equal(rest.Window.To) || rest.Window.From.After(q.From) {
		t.Errorf("looks are %+v, want one that ends where the blind one begins", ans.Looks)
	}
}

// A row without a time of creation would be in no window.
func TestAListIsBlindWhileARowHasNoTime(t *testing.T) {
	t.Parallel()
	s := newShop(t, newServer(t), nil)
	s.Make(t, sourcetest.Effect{Reference: "op-1", Money: recon.Money{Minor: 1250, Currency: "EUR"}})
	s.exec(t, "ALTER TABLE "+s.table()+" ALTER made DROP NOT NULL")
	q := s.question("op-2")
	q.Marks = nil
	l, _ := s.ask(t, q)
	mustBe(t, l, "", "")
	s.exec(t, "UPDATE "+s.table()+" SET made = NULL")
	l, _ = s.ask(t, q)
	mustBe(t, l, sources.Malformed, "columns.created_at: a row holds nothing there")
}

func TestAStandbyThatIsFarBehindIsBlind(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	before := func(d time.Duration) *time.Time { at := now.Add(-d); return &at }
	for _, test := range []struct {
		replayed *time.Time
		blind    bool
	}{{before(0), false}, {before(time.Minute), false}, {before(time.Minute + time.Millisecond), true}, {before(time.Hour), true}, {nil, true}} {
		if err := sqldb.TooFarBehind(test.replayed, now, time.Minute); (err != nil) != test.blind {
			t.Errorf("replayed %v: %v", test.replayed, err)
		}
	}
	// A real one, that has nobody to follow.
	c, err := localpg.Prepare(t.Context(), localpg.Options{Dir: filepath.Join(localpg.ReachableTemp(), "standby-"+filepath.Base(t.TempDir())), Throwaway: true})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(c.LogPath())
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the standby: %v", err)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "data", "standby.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	server := c.Command("postgres", c.ServerArgs()...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt) // it may have ended
		_ = server.Wait()                       // as it was told
	})
	awaitAnswer(t, c)
	set := sqldb.Settings{URL: recon.NewSecret(c.URL("postgres")), Account: "shop", Effects: []sqldb.EffectSettings{{
		Kind: "payout", Table: "payouts", Consistency: "strong", Columns: sqldb.ColumnSettings{ID: "id", CreatedAt: "made", Reference: "op"},
	}}}
	src, err := sqldb.New("erp", set, sqldb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	q := sources.Question{Operation: "op-1", Kind: "payout", Account: "shop", Mode: "live", Marks: []recon.Mark{recon.MarkReference}, From: now}
	ans, err := src.Ask(t.Context(), []sources.Question{q}, time.Now)
	if err != nil || len(ans.Looks) != 1 {
		t.Fatalf("%+v, %v", ans.Looks, err)
	}
	mustBe(t, ans.Looks[0], sources.Unavailable, "a standby that has replayed nothing")
}

func awaitAnswer(t *testing.T, c *localpg.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, c.URL("postgres"))
		if err == nil {
			_ = conn.Close(ctx) // it answered
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the standby does not answer: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
