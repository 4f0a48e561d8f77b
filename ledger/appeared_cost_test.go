package ledger

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

// movedSQL is a ledger in which all operations moved just now: each has an effect of its
// own, there are as many that belong to nobody, and one that belongs to nobody names the
// operation op-7. $1 the first  $2 the last  $3 now
var movedSQL = []string{
	`INSERT INTO reconciler.operations (tenant, operation_id, source, action, target, state, created_at, mode, policy_version, key, "group", effect_id, unknown_since)
		SELECT 'default', 'op-' || i, 'stripe-main', 'refund.create', 'order:' || i, (ARRAY['unknown', 'succeeded', 'failed'])[1 + i % 3],
			$3::timestamptz, 'live', 1, 'key-' || i, 'group-' || i, 'own-' || i, $3
		FROM generate_series($1::int, $2::int) i`,
	`INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
		SELECT 'default', 'op-' || i, seq, (ARRAY['opened', 'attempt_finished'])[seq], $3::timestamptz, '{}', sha256('')
		FROM generate_series($1::int, $2::int) i, generate_series(1, 2) seq`,
	`INSERT INTO reconciler.effects (tenant, system, account, mode, id, source, kind, status, amount, currency, key, reference, parent, created_at, owner, first_seen_at, seen_at)
		SELECT 'default', 'stripe', 'acct_1', 'live', whose || '-' || i, 'stripe-main', 'refund', CASE i % 3 WHEN 2 THEN 'failed' ELSE 'completed' END, 100, 'EUR',
			CASE whose WHEN 'own' THEN 'key-' || i END, CASE WHEN i = 7 OR whose = 'own' THEN 'op-' || i END, 'parent', $3::timestamptz,
			CASE whose WHEN 'own' THEN 'op-' || i END, $3, $3
		FROM generate_series($1::int, $2::int) i, unnest(ARRAY['own', 'other']) whose`,
}

// It is asked twice a second: were each operation that moved held against each, or against
// each effect, the first operations of a new ledger would wait for seconds. It costs the
// same whatever was known when the connection planned it.
func TestWhatAppearedIsFoundInALedgerThatJustBegan(t *testing.T) {
	t.Parallel()
	const all = 2000
	for _, tt := range []struct {
		name     string
		planned  int  // how many operations there were when the connection planned it
		analyzed bool // and whether the planner knew
	}{
		{"planned while it was empty", 0, false},
		{"planned while it was known to be empty", 0, true},
		{"planned when there was one", 1, true},
		{"planned when there were few", 60, true},
		{"nothing is known of many", all, false},
		{"all is known", all, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Pool(t)
			db, err := pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer db.Release()
			exec := func(sql string, args ...any) {
				t.Helper()
				if _, err := db.Exec(t.Context(), sql, args...); err != nil {
					t.Fatalf("%s: %v", sql, err)
				}
			}
			for _, table := range []string{"operations", "journal", "effects"} {
				exec("ALTER TABLE reconciler." + table + " SET (autovacuum_enabled = off)") // it would make the planner know
			}
			fill := func(first, last int) {
				t.Helper()
				for _, sql := range movedSQL {
					exec(sql, first, last, at0)
				}
			}
			fill(1, tt.planned)
			if tt.analyzed {
				exec("ANALYZE")
			}
			// A statement that a connection keeps may be planned before there is anything.
			exec("SET plan_cache_mode = force_generic_plan")
			exec("PREPARE kept (text, timestamptz, int) AS " + appearedSQL)
			kept := "EXECUTE kept ('default', '" + at0.Format(time.RFC3339) + "', 100)"
			explain(t, db, kept)
			fill(tt.planned+1, all)
			buffers, rows, plan := explain(t, db, kept)
			t.Logf("%d shared buffers", buffers)
			if rows != 1 || buffers > 60*all {
				t.Errorf("%v rows, want 1; %d shared buffers for %d operations that moved, want at most 60 for each\n%s", rows, buffers, all, plan)
			}
		})
	}
}
