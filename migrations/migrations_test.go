package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/migrations"
)

func TestMigrationsAreNumberedDenselyFromOne(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Fatal("there are no migrations")
	}
	for i, name := range names {
		if want := fmt.Sprintf("%06d_", i+1); !strings.HasPrefix(name, want) || !strings.HasSuffix(name, ".sql") {
			t.Errorf("migration %d is called %s, want %s…", i+1, name, want)
		}
	}
}

var created = regexp.MustCompile(`(?m)^CREATE OR REPLACE FUNCTION reconciler\.(\w+)\(`)

func TestEveryFunctionHasAFileOfItsNameAndAComment(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(migrations.FS, "functions/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := migrations.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := created.FindAllStringSubmatch(string(text), -1)
		if len(found) != 1 || name != "functions/"+found[0][1]+".sql" {
			t.Errorf("%s creates %v, want one function of the file's name", name, found)
		}
		if !strings.Contains(string(text), "AS $$\n-- ") {
			t.Errorf("%s: its body does not begin with a comment that says why", name)
		}
	}
}

func TestUpDownUpLeavesTheSameSchema(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	ctx := t.Context()
	up := func() { must(t, migrations.Up(ctx, url)) }
	up()
	first := describe(t, url)
	if !strings.Contains(first, "operations_transition") || !strings.Contains(first, "claim_operation") {
		t.Fatalf("the description of the schema misses parts of it:\n%s", first)
	}
	downAll(t, url)
	if left := describe(t, url); strings.Contains(left, "operations") || strings.Contains(left, "function") {
		t.Errorf("after down there is still:\n%s", left)
	}
	up()
	if diff := cmp.Diff(first, describe(t, url)); diff != "" {
		t.Errorf("up, down, up (-first +second):\n%s", diff)
	}
	up()
	if diff := cmp.Diff(first, describe(t, url)); diff != "" {
		t.Errorf("up again (-first +second):\n%s", diff)
	}
}

func TestDownOfASimulatedDatabaseLeavesNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t, pgtest.SimulatedTime(start))
	downAll(t, url)
	if left := describe(t, url); strings.Contains(left, "simulated_time") {
		t.Errorf("after down there is still:\n%s", left)
	}
	err := migrations.Down(t.Context(), url)
	if err == nil || !strings.Contains(err.Error(), "no migration to take back") {
		t.Errorf("down of nothing: %v", err)
	}
}

// downAll takes back every migration that was applied, the newest first.
func downAll(t *testing.T, url string) {
	t.Helper()
	all, err := migrations.Status(t.Context(), url)
	must(t, err)
	for range all {
		must(t, migrations.Down(t.Context(), url))
	}
}

func TestUpsAtTheSameMomentAreOne(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	var wg sync.WaitGroup
	faults := make([]error, 4)
	for i := range faults {
		wg.Go(func() { faults[i] = migrations.Up(t.Context(), url) })
	}
	wg.Wait()
	if err := errors.Join(faults...); err != nil {
		t.Fatal(err)
	}
	applied, err := migrations.Status(t.Context(), url)
	must(t, err)
	for _, a := range applied {
		if age := time.Since(a.At); age < -time.Minute || age > time.Hour {
			t.Errorf("migration %d %s was applied at %v", a.Version, a.Name, a.At)
		}
	}
	var rows int
	scan(t, connect(t, url), `SELECT count(*) FROM reconciler.schema_version WHERE version_id > 0`, &rows)
	if rows != len(applied) {
		t.Errorf("%d rows in the version table for %d migrations", rows, len(applied))
	}
}

func TestCheckTellsSchemaThatIsNotThereOlderOrNewer(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := pgtest.EmptyURL(t)
	conn := connect(t, url)

	var behind *migrations.Behind
	if err := migrations.Check(ctx, conn); !errors.As(err, &behind) || behind.Have != 0 || !strings.Contains(err.Error(), "migrate up") {
		t.Errorf("empty database: %v, want Behind with the next step", err)
	}
	status, err := migrations.Status(ctx, url)
	must(t, err)
	if len(status) == 0 || !status[0].At.IsZero() {
		t.Errorf("status of an empty database: %v, want the migrations as not applied", status)
	}
	must(t, migrations.Up(ctx, url))
	must(t, migrations.Check(ctx, conn))

	exec(t, conn, `DROP FUNCTION reconciler.receive_events`)
	if err := migrations.Check(ctx, conn); !errors.As(err, &behind) || behind.Function != "receive_events" || !strings.Contains(err.Error(), "migrate up") {
		t.Errorf("a function that an earlier program did not know: %v, want Behind with the next step", err)
	}
	must(t, migrations.Up(ctx, url))
	must(t, migrations.Check(ctx, conn))

	exec(t, conn, `INSERT INTO reconciler.schema_version (version_id, is_applied) VALUES (999, true)`)
	for name, err := range map[string]error{
		"check": migrations.Check(ctx, conn),
		"up":    migrations.Up(ctx, url),
		"down":  migrations.Down(ctx, url),
	} {
		var newer *migrations.Newer
		if !errors.As(err, &newer) || newer.Have != 999 || !strings.Contains(err.Error(), "use the newer program") {
			t.Errorf("%s on a newer schema: %v, want Newer with the next step", name, err)
		}
	}
}

// References are compared in forms that only UTF-8 has, and ids are kept byte by byte: in
// another encoding nothing is begun, and everybody is told so.
func TestADatabaseOfAnotherEncodingIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"SQL_ASCII", "LATIN1"} {
		t.Run(encoding, func(t *testing.T) {
			t.Parallel()
			url := pgtest.EncodedURL(t, encoding)
			conn := connect(t, url)
			for name, err := range map[string]error{
				"up": migrations.Up(t.Context(), url), "down": migrations.Down(t.Context(), url), "check": migrations.Check(t.Context(), conn),
			} {
				var wrong *migrations.Encoding
				if !errors.As(err, &wrong) || wrong.Have != encoding || !strings.Contains(err.Error(), "ENCODING 'UTF8'") {
					t.Errorf("%s: %v, want the encoding and how to make another database", name, err)
				}
			}
			var made bool
			must(t, conn.QueryRow(t.Context(), `SELECT to_regnamespace('reconciler') IS NOT NULL`).Scan(&made))
			if made {
				t.Error("the schema was made")
			}
		})
	}
}

func TestConnectionErrorsHoldNoPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://ann:s3cret@127.0.0.1:1/db",
		"postgres://ann:s3cret@[broken",
		"s3cret",
	} {
		err := migrations.Up(t.Context(), url)
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("up of a database that is not there: %v", err)
		}
	}
}

func TestSimulatedTimeStandsStillAndIsRefusedOnceThereAreOperations(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t, pgtest.SimulatedTime(start))
	l := actor{t: t, pool: pool(t, url)}
	var at time.Time
	scan(t, l.pool, `SELECT reconciler.clock()`, &at)
	if !at.Equal(start) {
		t.Errorf("the clock says %v, want %v", at, start)
	}
	l.policy(policy())
	l.open(nil)
	err := migrations.SimulateTime(t.Context(), url, start)
	if err == nil || !strings.Contains(err.Error(), "make a new one") {
		t.Errorf("simulating time over operations: %v, want a refusal with the next step", err)
	}
}

func TestTheClockOfARealDatabaseRuns(t *testing.T) {
	t.Parallel()
	var at time.Time
	scan(t, connect(t, pgtest.URL(t)), `SELECT reconciler.clock()`, &at)
	if d := time.Since(at); d < -time.Minute || d > time.Minute {
		t.Errorf("the clock is %v off", d)
	}
}

// describe tells everything of the schema that a migration makes.
func describe(t *testing.T, url string) string {
	t.Helper()
	rows, err := connect(t, url).Query(t.Context(), `
		SELECT 'column ' || table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable
			|| coalesce(' ' || column_default, '')
		FROM information_schema.columns WHERE table_schema = 'reconciler' AND table_name NOT LIKE 'schema\_%'
		UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid)
		FROM pg_constraint WHERE connamespace = 'reconciler'::regnamespace AND conrelid::regclass::text NOT LIKE '%.schema\_%'
		UNION ALL SELECT 'index ' || indexdef FROM pg_indexes
		WHERE schemaname = 'reconciler' AND tablename NOT LIKE 'schema\_%'
		UNION ALL SELECT 'trigger ' || pg_get_triggerdef(oid) FROM pg_trigger
		WHERE NOT tgisinternal AND tgrelid::regclass::text LIKE 'reconciler.%'
		UNION ALL SELECT 'function ' || pg_get_userbyid(proowner) || coalesce(proacl::text, '') || pg_get_functiondef(oid)
		FROM pg_proc WHERE pronamespace = 'reconciler'::regnamespace
		UNION ALL SELECT 'table ' || relname || ' ' || pg_get_userbyid(relowner) || coalesce(relacl::text, '')
			|| coalesce(reloptions::text, '') || coalesce(obj_description(oid), '')
		FROM pg_class WHERE relnamespace = 'reconciler'::regnamespace AND relkind = 'r' AND relname NOT LIKE 'schema\_%'
		ORDER BY 1`)
	must(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	return strings.Join(lines, "\n")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// querier is what a pool, a connection and a transaction have in common.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), url)
	must(t, err)
	t.Cleanup(p.Close)
	return p
}

func scan(t testing.TB, q querier, sql string, to ...any) {
	t.Helper()
	must(t, q.QueryRow(t.Context(), sql).Scan(to...))
}

func exec(t testing.TB, q querier, sql string, args ...any) {
	t.Helper()
	rows, err := q.Query(t.Context(), sql, args...)
	must(t, err)
	rows.Close()
	must(t, rows.Err())
}
