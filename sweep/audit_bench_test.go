package sweep

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/internal/turns"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// fillAuditSQL makes operations that succeeded, with their effects. Ids are random, as
// imported ones are. $1 how many  $2 from when on
var fillAuditSQL = []string{`
INSERT INTO reconciler.operations (tenant, operation_id, source, action, target, parent, key, amount, currency, state, created_at, sent_at, closed_at,
	account, mode, effect_id, policy_version)
SELECT 'default', 'op_' || md5(i::text), 'stripe-main', 'refund.create', 'order:' || i, 'ch_' || i, 'k-' || i, 4200, 'EUR', 'succeeded',
	$2::timestamptz + i * interval '1 millisecond', $2::timestamptz + i * interval '1 millisecond', $2::timestamptz + i * interval '1 millisecond',
	'acct_1', 'live', 're_' || i, 1
FROM generate_series(1, $1::int) i`, `
INSERT INTO reconciler.effects (tenant, system, account, mode, id, source, kind, status, amount, currency, parent, reference, created_at, owner, first_seen_at, seen_at)
SELECT 'default', 'stripe-main', 'acct_1', 'live', 're_' || i, 'stripe-main', 'refund', 'completed', CASE WHEN i % 1000 = 0 THEN 4100 ELSE 4200 END, 'EUR', 'ch_' || i,
	'op_' || md5(i::text), $2::timestamptz + i * interval '1 millisecond', 'op_' || md5(i::text), $2, $2
FROM generate_series(1, $1::int) i`, `
INSERT INTO reconciler.matches (tenant, system, account, mode, effect_id, operation_id, basis, certainty, role, at)
SELECT 'default', 'stripe-main', 'acct_1', 'live', 're_' || i, 'op_' || md5(i::text), 'reference', 'proof', 'main', $2
FROM generate_series(1, $1::int) i`}

// fullJoinSQL is the limit that an audit is held against: one join that classes both
// sides, and tells what is wrong.
const fullJoinSQL = `
SELECT CASE WHEN e.id IS NULL THEN 'missing' WHEN o.operation_id IS NULL THEN 'orphan'
	WHEN e.amount <> o.amount OR e.currency <> o.currency OR e.parent <> o.parent THEN 'mismatch' WHEN e.status = 'completed' THEN 'matched' ELSE e.status END, count(*)
FROM (SELECT * FROM reconciler.operations WHERE tenant = 'default' AND source = 'stripe-main' AND created_at >= $1 AND created_at < $2) o
FULL JOIN (SELECT * FROM reconciler.effects WHERE tenant = 'default' AND source = 'stripe-main' AND created_at >= $1 AND created_at < $2) e ON e.owner = o.operation_id
GROUP BY 1`

// BenchmarkAudit accounts for a window that is in the database, beside the one join that
// only counts it. x-join is the ratio, MiB what our process holds at most.
func BenchmarkAudit(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var rounds turns.Rounds
			var most uint64
			for b.Loop() {
				joined, audited, held := auditOnce(b, n)
				rounds.Add(audited, joined)
				most = max(most, held)
			}
			rounds.Report(b, "x-join")
			b.ReportMetric(float64(most)/(1<<20), "MiB")
		})
	}
}

// auditOnce accounts for n operations beside as many effects in a new database, and gives
// how long the one join took, how long we did, and what we held at most.
func auditOnce(b *testing.B, n int) (joined, audited time.Duration, most uint64) {
	b.Helper()
	window := recon.Window{From: monday, To: monday.Add(time.Duration(n+1) * time.Millisecond)}
	db, l := auditDatabase(b, n)
	began := time.Now()
	if _, err := db.Exec(b.Context(), fullJoinSQL, window.From, window.To); err != nil {
		b.Fatal(err)
	}
	joined = time.Since(began)
	stop := watchMemory(&most)
	began = time.Now()
	r, err := benchAuditor(l).Run(b.Context(), AuditOptions{Now: func() time.Time { return window.To.Add(2 * time.Hour) }, Window: window})
	audited = time.Since(began)
	stop()
	if err != nil || r.Classes.Operations["matched"] != n-n/1000 || len(r.Findings) != n/1000 || r.Effects != n {
		b.Fatalf("%+v, %d findings, %v", r.Classes, len(r.Findings), err)
	}
	return joined, audited, most
}

// watchMemory notes the largest heap until it is stopped.
func watchMemory(most *uint64) (stop func()) {
	done := make(chan struct{})
	go func() {
		var m runtime.MemStats
		for {
			runtime.ReadMemStats(&m)
			*most = max(*most, m.HeapInuse+m.StackInuse)
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() { done <- struct{}{} }
}

// unlisted is a source whose provider cannot be listed.
type unlisted struct {
	sources.Source
	sheet recon.Sheet
}

func (s unlisted) Name() recon.SourceName      { return testSource }
func (s unlisted) Sheet() recon.Sheet          { return s.sheet }
func (s unlisted) Probe(context.Context) error { return nil }

func benchAuditor(l *ledger.Ledger) *Audit {
	s := unlisted{sheet: recon.Sheet{System: string(testSource), Kinds: []string{"refund"}, Accounts: []recon.Account{{Account: testAccount, Mode: "live"}}}}
	return &Audit{Sweep: &Sweep{Ledger: l, Source: s, Holder: "bench"}, Accounts: l, Policies: []recon.Policy{policyFor(s, "refund.create", "refund")}}
}

func auditDatabase(b *testing.B, n int) (*pgxpool.Pool, *ledger.Ledger) {
	b.Helper()
	url := pgtest.URL(b)
	db, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(db.Close)
	body, err := json.Marshal(policyFor(unlisted{sheet: recon.Sheet{System: string(testSource)}}, "refund.create", "refund"))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := db.Exec(b.Context(), `INSERT INTO reconciler.policies (tenant, action, version, body, created_at) VALUES ('default', 'refund.create', 1, $1, $2)`, body, monday); err != nil {
		b.Fatal(err)
	}
	for _, sql := range fillAuditSQL {
		if _, err := db.Exec(b.Context(), sql, n, monday); err != nil {
			b.Fatal(err)
		}
	}
	for _, table := range []string{"operations", "effects", "matches"} {
		if _, err := db.Exec(b.Context(), `VACUUM ANALYZE reconciler.`+table); err != nil {
			b.Fatal(err)
		}
	}
	l, err := ledger.Open(b.Context(), ledger.Options{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(l.Close)
	return db, l
}
