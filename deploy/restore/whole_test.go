//go:build e2e

package restore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-1c4f4dc2/reconciler/internal/world"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

// A ledger in which two days of trouble happened comes back on a fresh server with every
// row, every function, trigger and right, and its counters go on.
func TestALedgerIsRestoredAsItWas(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	old, fresh := newServer(t), newServer(t)
	if err := old.CreateDatabase(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	from, to := old.URL(database), fresh.URL(database)
	v, err := world.Run(t.Context(), world.Options{Seed: 5, Operations: 60, DatabaseURL: from})
	if err != nil || v.Wrong != 0 {
		t.Fatalf("%v, %v", err, v.Faults)
	}
	must(t, from, `CREATE ROLE shop LOGIN PASSWORD 'unguessable' IN ROLE reconciler_agent`)
	must(t, from, `ALTER ROLE shop SET reconciler.tenant = 'default'`)
	fold(t, from)
	d.env = []string{"SERVER=" + old.URL("postgres"), "NEW_SERVER=" + fresh.URL("postgres"), "RECONCILER_DATABASE_URL=" + from}
	d.follow(stepBackup)
	d.follow(stepRestore)

	rows := content(t, from)
	for _, table := range []string{"operations", "journal", "looks", "effects", "findings", "notices", "runs", "tallies", "blobs"} {
		if strings.HasPrefix(rows[table], "0 ") {
			t.Errorf("the ledger has nothing in %s: this test shows nothing of it", table)
		}
	}
	differ(t, "rows", rows, content(t, to))
	differ(t, "roles", roles(t, from), roles(t, to))
	differ(t, "schema", schema(d, from), schema(d, to))
	before := counters(t, from)
	differ(t, "counters", before, counters(t, to))
	fold(t, to)
	differ(t, "counters once folded", before, counters(t, to))

	d.env = append(d.env, "RECONCILER_DATABASE_URL="+to)
	status := d.reconciler("migrate status --format json")
	if said := d.follow(stepCheck); !strings.Contains(said, "0 broken") {
		t.Errorf("the chains do not verify:\n%s", said)
	}
	differ(t, "applied migrations", status, d.reconciler("migrate status --format json"))

	// Who had rights has them, and no more.
	shop := as("shop", to)
	must(t, to, `UPDATE reconciler.simulated_time SET at = at + interval '1 minute'`)
	opening := ask(t, shop, `SELECT reconciler.open_operation('{"action": "refund.create", "target": "order:new", "parent": "ch_new",
		"amount": 500, "currency": "EUR", "request": {}}') ->> 'verdict'`)
	differ(t, "verdicts", []string{"new"}, opening)
	if err := do(t, shop, `SELECT * FROM reconciler.operations`); !denied(err) {
		t.Errorf("an agent reads the ledger: %v", err)
	}
	if err := do(t, to, `DELETE FROM reconciler.journal`); err == nil {
		t.Error("evidence can be deleted from the restored ledger")
	}
	fold(t, to)
	const opened = "operations_opened stripe-main refund.create"
	if got := counters(t, to)[opened]; got != before[opened]+1 {
		t.Errorf("%s is %d after one more, it was %d", opened, got, before[opened])
	}
}

func differ(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s are others than before (-before +restored):\n%s", what, diff)
	}
}

func denied(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.Code == "42501"
}

// schema is what pg_dump says of everything but the rows, less what it draws by lot.
func schema(d *desk, url string) string {
	d.Helper()
	out, err := d.sh(`pg_dump --schema-only --dbname='` + url + `' | grep -v '^\\\(un\)\?restrict '`)
	if err != nil || len(out) < 10_000 {
		d.Fatalf("%v\n%s", err, out)
	}
	return out
}

func open(t *testing.T, url string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), ledger.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func fold(t *testing.T, url string) {
	t.Helper()
	if err := open(t, url).FoldTallies(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// counters are those of the ledger, by name and labels.
func counters(t *testing.T, url string) map[string]int64 {
	t.Helper()
	s, err := open(t, url).Snapshot(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int64{}
	for _, c := range s.Tallies {
		all[strings.Join(append([]string{c.Name}, c.Labels...), " ")] = c.N
	}
	return all
}
