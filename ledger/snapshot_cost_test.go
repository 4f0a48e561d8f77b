package ledger

import (
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

// oldLedgerSQL is what a ledger has gathered over the years beside operations: effects of
// them and of customers, findings that are over, runs that ended, entries that are folded.
var oldLedgerSQL = []string{
	`INSERT INTO reconciler.effects (tenant, system, account, mode, id, source, kind, status, created_at, owner, first_seen_at, seen_at)
		SELECT 'default', 'stripe', 'acct_1', 'live', 'e-' || i, 'stripe-main', CASE WHEN i % 2 = 0 THEN 'charge' ELSE 'refund' END, 'completed', now(),
			CASE WHEN i % 2 <> 0 AND i % 1000 <> 1 THEN 'op-' || i END, now(), now() FROM generate_series(1, 20000) i`,
	`INSERT INTO reconciler.findings (tenant, finding_id, fingerprint, kind, certainty, state, source, reason, opened_at, tallied)
		SELECT 'default', 'f-' || i, 'f-' || i, 'mismatch', 'proof', CASE WHEN i % 500 = 0 THEN 'open' ELSE 'ended' END, 'stripe-main', '', now(), 1
		FROM generate_series(1, 20000) i`,
	`INSERT INTO reconciler.runs (tenant, run_id, name, tick, holder, token, lease_until, heartbeat_at, started_at, finished_at, outcome, tallied)
		SELECT 'default', 'r-' || i, 'sweep/' || i % 3, 't-' || i, '', '', now(), now(), now() + make_interval(mins => i), now(), 'done', true
		FROM generate_series(1, 20000) i`,
	`INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
		SELECT 'default', 'op-' || i, 1, 'opened', now(), '{}', sha256('') FROM generate_series(1, 20000) i`,
	`INSERT INTO reconciler.tally_marks VALUES ('default', pg_snapshot_xmax(pg_current_snapshot()), now())`,
	`INSERT INTO reconciler.policies (tenant, action, version, body, active, created_at)
		VALUES ('default', 'refund.create', 1, '{"source": "stripe-main", "effect": "refund"}', true, now())`,
	`VACUUM ANALYZE`,
}

func TestASnapshotCostsTheSameHoweverMuchIsOver(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	if _, err := db.Exec(t.Context(), fillChecksSQL, 20_000, at0, 10, 1); err != nil {
		t.Fatal(err)
	}
	for _, sql := range oldLedgerSQL {
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	l := &Ledger{tenant: "default"}
	mark, err := l.tallyMark(t.Context(), db, tallyMarkSQL)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		sql  string
		args []any
		most int // shared buffers; a table of these has 300 and more
	}{
		{"2,000 open operations of 20,000", operationGaugesSQL, []any{"default", at0}, 80},
		{"40 open findings of 20,000", findingGaugesSQL, []any{"default"}, 50},
		{"10 of our effects without owner, of 10,010", unownedGaugesSQL, []any{"default"}, 40},
		{"the newest of 20,000 runs", runGaugesSQL, []any{"default"}, 60},
		{"entries since the fold, of 20,000", tallyEntriesSQL, []any{"default", mark.to, nil, nil}, 20},
		{"openings since the fold, of 20,000", tallyFindingsSQL, []any{"default"}, 10},
		{"runs since the fold, of 20,000", tallyRunsSQL, []any{"default"}, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			buffers, _, plan := explain(t, db, tt.sql, tt.args...)
			t.Logf("%d shared buffers", buffers)
			if buffers > tt.most {
				t.Errorf("%d shared buffers, want at most %d\n%s", buffers, tt.most, plan)
			}
		})
	}
}
