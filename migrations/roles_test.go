package migrations_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/migrations"
)

// rights asks the catalogue what each role may really do, by whatever way it came by it:
// one line for each object, one column for each role. Letters are select, insert, update,
// delete, and truncate, references, trigger (t, r, g), which nobody has; U and C are usage
// and create on the schema, x is execute. Columns that may be updated alone are named, and
// after ! those that may be read or inserted alone. The owner, who may
// do everything and as whom nobody logs in, has no column; public is everybody.
const rights = `
WITH role AS (
	SELECT * FROM unnest(ARRAY['public', 'reconciler_agent', 'reconciler_daemon', 'reconciler_viewer', 'reconciler_operator', 'reconciler_approver'])
		WITH ORDINALITY AS r (name, place)
), may AS (
	SELECT 0 AS kind, 'schema' AS object, r.place,
		concat(CASE WHEN has_schema_privilege(r.name, 'reconciler', 'USAGE') THEN 'U' END,
			CASE WHEN has_schema_privilege(r.name, 'reconciler', 'CREATE') THEN 'C' END) AS what
	FROM role r
	UNION ALL
	SELECT 1, c.relname, r.place, concat((
			SELECT string_agg(p.letter, '' ORDER BY p.place) FROM (VALUES (1, 's', 'SELECT'), (2, 'i', 'INSERT'), (3, 'u', 'UPDATE'),
				(4, 'd', 'DELETE'), (5, 't', 'TRUNCATE'), (6, 'r', 'REFERENCES'), (7, 'g', 'TRIGGER')) AS p (place, letter, name)
			WHERE CASE WHEN c.relkind = 'S' THEN p.letter IN ('s', 'u') AND has_sequence_privilege(r.name, c.oid, p.name)
				ELSE has_table_privilege(r.name, c.oid, p.name) END
		), (
			SELECT 'u(' || string_agg(a.attname, ',' ORDER BY a.attnum) || ')' FROM pg_attribute a
			WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind <> 'S'
				AND has_column_privilege(r.name, c.oid, a.attnum, 'UPDATE') AND NOT has_table_privilege(r.name, c.oid, 'UPDATE')
		), (
			SELECT '!' || string_agg(a.attname, ',' ORDER BY a.attnum) FROM pg_attribute a
			WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind <> 'S'
				AND (has_column_privilege(r.name, c.oid, a.attnum, 'SELECT') AND NOT has_table_privilege(r.name, c.oid, 'SELECT')
					OR has_column_privilege(r.name, c.oid, a.attnum, 'INSERT') AND NOT has_table_privilege(r.name, c.oid, 'INSERT'))
		))
	FROM pg_class c, role r WHERE c.relnamespace = 'reconciler'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
	UNION ALL
	SELECT 2, p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', r.place,
		CASE WHEN has_function_privilege(r.name, p.oid, 'EXECUTE') THEN 'x' END
	FROM pg_proc p, role r WHERE p.pronamespace = 'reconciler'::regnamespace
)
SELECT m.object || ' ' || string_agg(coalesce(nullif(m.what, ''), '-'), ' ' ORDER BY m.place)
FROM may m GROUP BY m.kind, m.object
HAVING m.kind < 2 OR bool_or(m.what <> '') -- a function that nobody may call needs no line
ORDER BY m.kind, m.object`

// A table or a function that is new gets a line here, and with it a decision. The daemon
// may also do what an agent may, since programs that act often log in as it; that gives
// it nothing, as it writes operations anyway.
const decided = `
object                        public agent daemon viewer operator approver

schema                        -      U     U      U      U        U

allocations                   -      -     siud   s      s        s
audit_lists                   -      -     siu    s      s        s
blobs                         -      -     siu    -      -        -
checks                        -      -     siu    s      s        s
coverage                      -      -     si     s      s        s
effect_changes                -      -     siu(before,after) s s  s
effects                       -      -     siu    s      s        s
events                        -      -     siu    s      s        s
feeds                         -      -     siu    s      s        s
findings                      -      -     siu    s      s        s
incidents                     -      -     siu    s      s        s
journal                       -      -     si     s      s        s
looks                         -      -     si     s      s        s
matches                       -      -     siu    s      s        s
notices                       -      -     siu    s      s        s
operations                    -      -     siu    s      s        s
people                        -      -     siu    s      s        s
person_actions                -      -     s      s      s        s
policies                      -      -     siu    s      s        s
repeats                       -      -     sd     s      s        s
repeats_repeat_id_seq         -      -     -      -      -        -
runs                          -      -     siud   s      s        s
schema_lock                   -      -     -      -      -        -
schema_version                -      s     s      s      s        s
schema_version_id_seq         -      -     -      -      -        -
source_state                  -      -     siu    s      s        s
tallies                       -      -     siu    s      s        s
tally_marks                   -      -     siu    s      s        s
wanted                        -      -     siud   s      s        s

act(input jsonb)              -      -     x      -      x        -
appeared(my_tenant text, since timestamp with time zone, most i - - x - - -
approve(input jsonb)          -      -     x      -      -        x
claim_operation(input jsonb)  -      x     x      -      -        -
clock()                       -      -     x      x      x        x
finish_attempt(input jsonb)   -      x     x      -      -        -
open_operation(input jsonb)   -      x     x      -      -        -
receive_events(my_tenant text, systems text[], accounts text[], - - x - - -
`

func TestEveryRightOfEveryRoleIsDecided(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	wantRights(t, conn)
}

func wantRights(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	rows, err := conn.Query(t.Context(), rights)
	must(t, err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	var want []string
	for _, line := range strings.Split(strings.TrimSpace(decided), "\n")[1:] {
		if line != "" {
			want = append(want, strings.Join(strings.Fields(line), " "))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rights (-decided +of the catalogue):\n%s", diff)
	}
}

// What an older version gave, or somebody by hand, does not outlive a migration.
func TestAMigrationTakesBackWhatARoleNeedsNot(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn := connect(t, url)
	exec(t, conn, `GRANT DELETE, TRUNCATE ON reconciler.journal TO reconciler_daemon`)
	exec(t, conn, `GRANT SELECT (bytes) ON reconciler.blobs TO reconciler_viewer`)
	exec(t, conn, `GRANT EXECUTE ON FUNCTION reconciler.settle TO reconciler_operator`)
	exec(t, conn, `GRANT CREATE ON SCHEMA reconciler TO reconciler_agent`)
	exec(t, conn, `REVOKE SELECT ON reconciler.runs FROM reconciler_viewer`)
	must(t, migrations.Up(t.Context(), url))
	wantRights(t, conn)
}

// On a server where nothing is prepared, by a user who may make no roles: what is told to
// the administrator is enough.
func TestTheStatementsForAnAdministratorAreEnough(t *testing.T) {
	t.Parallel()
	server, err := localpg.Start(t.Context(), localpg.Options{Throwaway: true})
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	admin := connect(t, server.URL("postgres"))
	exec(t, admin, `CREATE ROLE migrator`)
	exec(t, admin, `GRANT CREATE ON DATABASE postgres TO migrator`)
	url := server.URL("postgres")
	asUser := url + map[bool]string{true: "&", false: "?"}[strings.Contains(url, "?")] + "options=-c%20role%3Dmigrator"
	must(t, migrations.Up(t.Context(), asUser))
	statements, err := migrations.RoleStatements(t.Context(), asUser)
	must(t, err)
	if want := 6 + 1 + 2; len(statements) != want { // roles, the owner's member, two viewers
		t.Errorf("%d statements, want %d: %q", len(statements), want, statements)
	}
	for _, statement := range statements {
		exec(t, admin, statement)
	}
	must(t, migrations.Up(t.Context(), asUser))
	wantRights(t, admin)
	if statements, err = migrations.RoleStatements(t.Context(), asUser); err != nil || len(statements) > 0 {
		t.Errorf("still to be run: %q, %v", statements, err)
	}
}
