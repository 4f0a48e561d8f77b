package ledger_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

// seedGaugesSQL makes a ledger as it is after years: of every hundred operations one is
// stuck, the others are closed, and each has its effect; every tenth effect more is a
// customer's payment that no action made. $1 from  $2 to  $3 when
const seedGaugesSQL = `
WITH made AS (
	INSERT INTO reconciler.operations (tenant, operation_id, source, action, target, key, state, created_at, mode, policy_version, unknown_since, key_expires_at,
		closed_at, effect_id)
	SELECT 'default', 'op-' || i, 'stripe-main', 'refund.create', 'order:' || i, 'k-' || i, CASE WHEN i % 100 = 0 THEN 'unknown' ELSE 'succeeded' END,
		$3::timestamptz, 'live', 1, $3, $3 + interval '1 day', CASE WHEN i % 100 = 0 THEN NULL ELSE $3 END, CASE WHEN i % 100 = 0 THEN NULL ELSE 're_' || i END
	FROM generate_series($1::int, $2::int) i
	RETURNING operation_id
), told AS (
	INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
	SELECT 'default', m.operation_id, 1, 'opened', $3, '{"kind": "opened", "to": "pending"}', sha256('{}') FROM made m
)
INSERT INTO reconciler.effects (tenant, system, account, mode, id, source, kind, status, created_at, owner, first_seen_at, seen_at)
SELECT 'default', 'stripe', 'acct_1', 'live', 're_' || i, 'stripe-main', CASE WHEN i % 10 = 0 THEN 'charge' ELSE 'refund' END, 'completed', $3,
	CASE WHEN i % 10 <> 0 THEN 'op-' || i END, $3, $3
FROM generate_series($1::int, $2::int) i`

// BenchmarkSnapshot reads the gauges and counters of a ledger of 100,000 operations, or of
// as many as SNAPSHOT_ROWS says: right after a fold, and with 2,000 entries to count, which
// is when the daemon folds. The budget is 100 ms at 10 million.
func BenchmarkSnapshot(b *testing.B) {
	n := 100_000
	if text := os.Getenv("SNAPSHOT_ROWS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatalf("SNAPSHOT_ROWS: %v", err)
		}
	}
	led, db := benchLedger(b)
	run := func(sql string, args ...any) {
		b.Helper()
		if _, err := db.Exec(b.Context(), sql, args...); err != nil {
			b.Fatal(err)
		}
	}
	const chunk = 100_000
	for i := 0; i < n; i += chunk {
		run(seedGaugesSQL, i+1, min(i+chunk, n), t0)
	}
	for _, table := range []string{"operations", "effects", "journal"} {
		run(`VACUUM ANALYZE reconciler.` + table)
	}
	if err := led.FoldTallies(b.Context()); err != nil {
		b.Fatal(err)
	}
	var s ledger.Snapshot
	snapshots := func(b *testing.B) {
		for b.Loop() {
			var err error
			if s, err = led.Snapshot(b.Context(), t0); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(s.NotFolded), "counted")
	}
	b.Run(fmt.Sprintf("folded-%d", n), snapshots)
	run(seedGaugesSQL, n+1, n+2000, t0)
	b.Run(fmt.Sprintf("2000-entries-later-%d", n), snapshots)
}
