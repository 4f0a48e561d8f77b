package ledger

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
)

// BenchmarkIdleSweep reads what is due where nothing is: of 2 million operations, or as
// many as IDLE_ROWS says, 100,000 are stuck, each planned anew thirty times, and 1 million
// are closed and on the ladder. The budget is 50 shared buffers for either question.
func BenchmarkIdleSweep(b *testing.B) {
	n := 2_000_000
	if text := os.Getenv("IDLE_ROWS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatalf("IDLE_ROWS: %v", err)
		}
	}
	db := pgtest.Pool(b)
	exec := func(sql string, args ...any) {
		b.Helper()
		if _, err := db.Exec(b.Context(), sql, args...); err != nil {
			b.Fatal(err)
		}
	}
	start := at0
	exec(fillChecksSQL, n, start, max(20, n/100_000), max(2, n/1_000_000))
	for n := range 30 {
		start = start.Add(time.Hour)
		exec(planAnewSQL, start)
		if n%5 == 4 {
			exec(`VACUUM reconciler.checks`) // as autovacuum does meanwhile, with the settings that ship with the table
		}
	}
	exec(`VACUUM ANALYZE reconciler.checks`)
	exec(`VACUUM ANALYZE reconciler.operations`)
	most := 0
	for b.Loop() {
		open, rows, plan := explain(b, db, dueOpenSQL, "default", "stripe-main", start, 500)
		if rows != 0 {
			b.Fatalf("%v are due: %s", rows, plan)
		}
		closed, rows, plan := explain(b, db, dueClosedSQL, "default", "stripe-main", at0.Add(-time.Second), 500)
		if rows != 0 {
			b.Fatalf("%v are due: %s", rows, plan)
		}
		most = max(most, open, closed)
	}
	b.ReportMetric(float64(most), "buffers")
}
