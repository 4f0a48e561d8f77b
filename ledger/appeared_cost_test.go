package ledger

import (
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

// justBegunSQL is the first minute of a ledger, of which the planner knows nothing yet: all
// operations moved just now, and the first effect came. $1 now
var justBegunSQL = []string{
	`INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
		SELECT 'default', 'op-' || i, 1, 'opened', $1, '{}', sha256('') FROM generate_series(1, 500) i`,
	`INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
		SELECT 'default', 'op-' || i, 2, 'attempt_finished', $1, '{}', sha256('') FROM generate_series(1, 500) i`,
	`INSERT INTO reconciler.effects (tenant, system, account, mode, id, source, kind, status, amount, currency, key, created_at, owner, first_seen_at, seen_at)
		VALUES ('default', 'stripe', 'acct_1', 'live', 'e-1', 'stripe-main', 'refund', 'completed', 100, 'EUR', 'key-1', $1, 'op-1', $1, $1)`,
}

// It is asked twice a second: were each operation that moved held against each, the first
// operations of a new ledger would wait for seconds.
func TestWhatAppearedIsFoundInALedgerThatJustBegan(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	if _, err := db.Exec(t.Context(), fillChecksSQL, 500, at0, 1, 1); err != nil {
		t.Fatal(err)
	}
	for _, sql := range justBegunSQL {
		if _, err := db.Exec(t.Context(), sql, at0); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	buffers, rows, plan := explain(t, db, appearedSQL, "default", at0, 100)
	t.Logf("%d shared buffers", buffers)
	if rows != 0 || buffers > 10_000 {
		t.Errorf("%d shared buffers for 500 operations that moved, want at most 20 for each\n%s", buffers, plan)
	}
}
