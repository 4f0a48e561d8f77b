package ledger

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

// fillChecksSQL makes operations with a plan. Every $3rd is stuck, the others are closed,
// and every $4th is on the ladder. $1 how many  $2 next check of all
const fillChecksSQL = `
WITH made AS (
	INSERT INTO reconciler.operations (tenant, operation_id, source, action, target, state, created_at, mode, policy_version, unknown_since)
	SELECT 'default', 'op-' || i, 'stripe-main', 'refund.create', 'order:' || i, CASE WHEN i % $3::int = 0 THEN 'unknown' ELSE 'succeeded' END,
		$2, 'live', 1, $2
	FROM generate_series(1, $1::int) i
	RETURNING operation_id, state
)
INSERT INTO reconciler.checks (tenant, operation_id, source, closed, next_check)
SELECT 'default', m.operation_id, 'stripe-main', m.state = 'succeeded',
	CASE WHEN m.state = 'unknown' OR (substr(m.operation_id, 4)::int + 1) % $4::int = 0 THEN $2::timestamptz END
FROM made m`

// planAnewSQL plans every stuck operation anew, at some time of the hour after $1.
const planAnewSQL = `
UPDATE reconciler.checks SET next_check = $1::timestamptz + interval '1 hour' * random(), looks = looks + 1 WHERE NOT closed`

func TestB94_AnIdleSweepCostsTheSameForAnyBacklog(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	start := at0
	exec(fillChecksSQL, 20_000, start, 10, 1)
	for range 30 { // every stuck one is planned anew thirty times
		start = start.Add(time.Hour)
		exec(planAnewSQL, start)
	}
	// What autovacuum does by itself, with the settings that ship with the table.
	exec(`VACUUM ANALYZE reconciler.checks`)
	exec(`VACUUM ANALYZE reconciler.operations`)

	for _, tt := range []struct {
		name string
		sql  string
		now  time.Time
		most int // shared buffers
		rows float64
	}{
		{"nothing is due of 2,000 stuck ones", dueOpenSQL, start, 50, 0},
		{"nothing is due of 18,000 closed ones", dueClosedSQL, at0.Add(-time.Second), 50, 0},
		{"ten are read of 2,000 that are due", dueOpenSQL, start.Add(24 * time.Hour), 200, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			buffers, rows, plan := explain(t, db, tt.sql, "default", "stripe-main", tt.now, 10)
			if buffers > tt.most || rows != tt.rows {
				t.Errorf("%d shared buffers for %v rows, want at most %d for %v\n%s", buffers, rows, tt.most, tt.rows, plan)
			}
		})
	}
}

// explain runs a statement and gives the shared buffers that it touched.
func explain(t testing.TB, q querier, sql string, args ...any) (buffers int, rows float64, plan []byte) {
	t.Helper()
	args = append([]any{pgx.QueryExecModeCacheDescribe}, args...)
	if err := q.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+sql, args...).Scan(&plan); err != nil {
		t.Fatal(err)
	}
	var out []struct {
		Plan struct {
			Hit  int     `json:"Shared Hit Blocks"`
			Read int     `json:"Shared Read Blocks"`
			Rows float64 `json:"Actual Rows"`
		}
	}
	if err := json.Unmarshal(plan, &out); err != nil || len(out) != 1 {
		t.Fatalf("plan %s: %v", plan, err)
	}
	p := out[0].Plan
	return p.Hit + p.Read, p.Rows, plan
}
