package ledger

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

// neverAnalyzedSQL is a ledger that was filled just now, of which the planner knows
// nothing: operations with an effect each, effects of others, and old entries. $1 now
var neverAnalyzedSQL = []string{
	`INSERT INTO reconciler.effects (tenant, system, account, mode, id, source, kind, status, amount, currency, reference, key, created_at, owner, first_seen_at, seen_at)
		SELECT 'default', 'stripe', 'acct_1', 'live', 'e-' || i, 'stripe-main', 'refund', 'completed', 100, 'EUR', CASE WHEN i % 2 = 0 THEN 'op-' || i END,
			'key-' || i, $1, CASE WHEN i % 2 = 0 THEN 'op-' || i END, $1, $1 FROM generate_series(1, 20000) i`,
	`INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
		SELECT 'default', 'op-' || i, 1, 'opened', $1::timestamptz - interval '1 hour', '{}', sha256('') FROM generate_series(1, 20000) i`,
	`INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
		SELECT 'default', 'op-' || i, 2, 'attempt_finished', $1, '{}', sha256('') FROM generate_series(1, 20000, 1000) i`,
	// One of them has an effect that came before it.
	`UPDATE reconciler.effects e SET owner = NULL, reference = 'op-1' WHERE e.tenant = 'default' AND e.id = 'e-1' AND e.created_at = $1`,
}

func TestWhatAppearedIsFoundAtTheSameCostWithAndWithoutStatistics(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	for _, table := range []string{"operations", "effects", "journal", "checks"} {
		if _, err := db.Exec(t.Context(), `ALTER TABLE reconciler.`+table+` SET (autovacuum_enabled = false)`); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Exec(t.Context(), fillChecksSQL, 20_000, at0, 10, 1); err != nil {
		t.Fatal(err)
	}
	for _, sql := range neverAnalyzedSQL {
		if _, err := db.Exec(t.Context(), sql, at0); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	for _, statistics := range []string{"SELECT 1", "ANALYZE"} {
		if _, err := db.Exec(t.Context(), statistics); err != nil {
			t.Fatal(err)
		}
		buffers, rows, plan := explain(t, db, appearedSQL, "default", at0.Add(-time.Second), 100)
		t.Logf("after %s: %d shared buffers", statistics, buffers)
		if rows != 1 || buffers > 400 { // a scan of the effects without owner takes 500 and more
			t.Errorf("after %s: %d shared buffers for %v of 20 operations that moved, want at most 400 for 1\n%s", statistics, buffers, rows, plan)
		}
	}
}
