package ledger_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
	"github.com/seed-1c4f4dc2/reconciler/internal/turns"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/migrations"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	bareInsertSQL = `
INSERT INTO reconciler.operations (tenant, operation_id, source, action, target, parent, key, amount, currency, state, created_at,
	account, mode, policy_version, request)
VALUES ('default', $1, 'stripe-main', 'refund.create', $2, $3, $4, 4200, 'EUR', 'pending', $5, 'acct_1', 'live', 1, '{"charge":"ch_1"}')`
	bareClaimSQL = `
UPDATE reconciler.operations SET state = 'in_progress', lease_until = $2, lease_token = 'token', sent_at = $3, version = version + 1
WHERE tenant = 'default' AND operation_id = $1 AND state = 'pending'`
	bareFinishSQL = `
UPDATE reconciler.operations SET state = 'succeeded', closed_at = $2, effect_id = $3, lease_token = NULL, version = version + 1
WHERE tenant = 'default' AND operation_id = $1 AND state = 'in_progress'`
)

// BenchmarkActing holds open, claim and finish against the three statements without
// which nothing could be remembered at all: an insert and two updates of the same table,
// in three commits. The server writes to its disk as a real one does. Rounds of both
// take turns; the ratio is the median over the rounds, and 2.5 is the budget.
func BenchmarkActing(b *testing.B) {
	const trios = 20 // a round
	led, db := durableLedger(b)
	for n := range 500 { // a table that is in use, and that the planner knows
		actingTrio(b, led, fmt.Sprintf("before-%d", n))
	}
	if _, err := db.Exec(b.Context(), `VACUUM ANALYZE`); err != nil {
		b.Fatal(err)
	}
	var ratios []float64
	var bare, acting time.Duration
	n := 0
	for b.Loop() {
		begin := time.Now()
		for range trios {
			n++
			bareTrio(b, db, fmt.Sprintf("bare-%d", n))
		}
		middle := time.Now()
		for range trios {
			n++
			actingTrio(b, led, fmt.Sprintf("op-%d", n))
		}
		end := time.Now()
		bare, acting = bare+middle.Sub(begin), acting+end.Sub(middle)
		ratios = append(ratios, end.Sub(middle).Seconds()/middle.Sub(begin).Seconds())
	}
	rounds := float64(len(ratios) * trios)
	b.ReportMetric(turns.Median(ratios), "ratio")
	b.ReportMetric(bare.Seconds()*1e6/rounds, "µs/bare")
	b.ReportMetric(acting.Seconds()*1e6/rounds, "µs/acting")
}

func bareTrio(b *testing.B, db *pgxpool.Pool, id string) {
	b.Helper()
	now := time.Now()
	for _, step := range []struct {
		sql  string
		args []any
	}{
		{bareInsertSQL, []any{id, "order:" + id, "ch_" + id, "k-" + id, now}},
		{bareClaimSQL, []any{id, now.Add(time.Minute), now}},
		{bareFinishSQL, []any{id, now, "re_" + id}},
	} {
		tag, err := db.Exec(b.Context(), step.sql, step.args...)
		if err != nil || tag.RowsAffected() != 1 {
			b.Fatalf("%d rows, %v", tag.RowsAffected(), err)
		}
	}
}

func actingTrio(b *testing.B, led *ledger.Ledger, id string) {
	b.Helper()
	opened, err := led.OpenOperation(b.Context(), intent(id))
	if err != nil || opened.Verdict != "new" {
		b.Fatalf("opened %+v, %v", opened, err)
	}
	claim, err := led.Claim(b.Context(), ledger.ClaimRequest{OperationID: opened.OperationID, Holder: "bench"})
	if err != nil || !claim.Claimed {
		b.Fatalf("claimed %+v, %v", claim, err)
	}
	done, err := led.Finish(b.Context(), ledger.FinishRequest{OperationID: opened.OperationID, Token: claim.Token,
		Class: recon.ClassSucceeded, EffectID: "re_" + id})
	if err != nil || done.State != recon.Succeeded {
		b.Fatalf("finished %+v, %v", done, err)
	}
}

// durableLedger is a ledger on a server of its own that loses nothing it has committed.
func durableLedger(b *testing.B) (*ledger.Ledger, *pgxpool.Pool) {
	b.Helper()
	// A folder inside b.TempDir() would be closed to the user who runs PostgreSQL for root.
	dir := filepath.Join(localpg.ReachableTemp(), "reconciler-bench-"+rand.Text())
	b.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			b.Error(err)
		}
	})
	server, err := localpg.Start(b.Context(), localpg.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := server.Stop(context.WithoutCancel(b.Context())); err != nil {
			b.Error(err)
		}
	})
	if err := server.CreateDatabase(b.Context(), "bench"); err != nil {
		b.Fatal(err)
	}
	url := server.URL("bench")
	if err := migrations.Up(b.Context(), url); err != nil {
		b.Fatal(err)
	}
	led, err := ledger.Open(b.Context(), ledger.Options{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(led.Close)
	if _, err := led.ApplyPolicies(b.Context(), []recon.Policy{repeatable()}, time.Now()); err != nil {
		b.Fatal(err)
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe // as the ledger's own pool
	db, err := pgxpool.NewWithConfig(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(db.Close)
	return led, db
}
