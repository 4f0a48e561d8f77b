package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// fillSQL makes unknown operations as the acting side leaves them, without a round
// trip each. $1 how many  $2 when they became unknown  $3 prefix of their ids
const fillSQL = `
WITH made AS (
	INSERT INTO reconciler.operations (tenant, operation_id, source, action, target, parent, key, amount, currency, state, created_at, sent_at,
		account, mode, marks, policy_version, attempts, in_doubt, unknown_since, chain_seq, chain_head)
	SELECT 'default', $3 || i, 'stripe-main', 'refund.create', 'order:' || i, 'pi_' || $3 || i, 'k-' || $3 || i, 4200, 'EUR', 'unknown', $2, $2,
		'acct_1', 'live', '{key,reference}', 1, 1, true, $2, 1, sha256(convert_to('{}', 'UTF8'))
	FROM generate_series(1, $1::int) i
	RETURNING operation_id
), told AS (
	INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
	SELECT 'default', m.operation_id, 1, 'opened', $2, '{}', sha256(convert_to('{}', 'UTF8')) FROM made m RETURNING seq
)
INSERT INTO reconciler.checks (tenant, operation_id, source, closed, next_check)
SELECT 'default', m.operation_id, 'stripe-main', false, $2 FROM made m`

// setBasedSQL is the limit that a sweep is held against: the same rows updated and
// the same evidence inserted by SQL alone, a batch at a time.
const setBasedSQL = `
WITH due AS MATERIALIZED (
	SELECT c.operation_id FROM reconciler.checks c
	WHERE c.tenant = 'default' AND c.source = 'stripe-main' AND NOT c.closed AND c.next_check <= $1
	ORDER BY c.next_check, c.operation_id LIMIT $2
), found AS (
	INSERT INTO reconciler.effects (tenant, system, account, mode, id, source, kind, status, amount, currency, parent, reference, created_at, metadata, owner, first_seen_at, seen_at)
	SELECT 'default', 'stripe', 'acct_1', 'live', 're_' || d.operation_id, 'stripe-main', 'refund', 'completed', 4200, 'EUR', 'pi_' || d.operation_id,
		d.operation_id, $1, jsonb_build_object('op_id', d.operation_id), d.operation_id, $1, $1 FROM due d
), linked AS (
	INSERT INTO reconciler.matches (tenant, system, account, mode, effect_id, operation_id, basis, certainty, role, at)
	SELECT 'default', 'stripe', 'acct_1', 'live', 're_' || d.operation_id, d.operation_id, 'reference', 'proof', 'main', $1 FROM due d
), moved AS (
	UPDATE reconciler.operations o SET state = 'succeeded', closed_at = $1, effect_id = 're_' || o.operation_id, version = o.version + 1,
		chain_seq = o.chain_seq + 1, chain_head = sha256(o.chain_head || convert_to('{"kind": "decision", "to": "succeeded"}', 'UTF8'))
	FROM due d WHERE o.tenant = 'default' AND o.operation_id = d.operation_id
	RETURNING o.operation_id, o.chain_seq, o.chain_head
), told AS (
	INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
	SELECT 'default', m.operation_id, m.chain_seq, 'decision', $1, '{"kind": "decision", "to": "succeeded"}', m.chain_head FROM moved m RETURNING seq
)
UPDATE reconciler.checks c SET closed = true, next_check = $1 + interval '1 day', looks = 1
FROM due d WHERE c.tenant = 'default' AND c.operation_id = d.operation_id`

const benchBatch = 2000

// BenchmarkRecordDue concludes due operations from one windowed list, beside the
// set-based SQL that does the same to its rows. Compare ns/op of the two.
func BenchmarkRecordDue(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("ledger-%d", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				led, db := benchLedger(b)
				fill(b, db, n, "op-")
				b.StartTimer()
				concludeAll(b, led, n)
			}
		})
		b.Run(fmt.Sprintf("set-based-%d", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				_, db := benchLedger(b)
				fill(b, db, n, "op-")
				b.StartTimer()
				for done := 0; done < n; {
					tag, err := db.Exec(b.Context(), setBasedSQL, t0.Add(time.Minute), benchBatch)
					if err != nil || tag.RowsAffected() == 0 {
						b.Fatalf("%d rows: %v", tag.RowsAffected(), err)
					}
					done += int(tag.RowsAffected())
				}
			}
		})
	}
}

func benchLedger(b *testing.B) (*ledger.Ledger, *pgxpool.Pool) {
	b.Helper()
	url := pgtest.URL(b)
	led, err := ledger.Open(b.Context(), ledger.Options{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(led.Close)
	db, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(db.Close)
	if _, err := db.Exec(b.Context(), `INSERT INTO reconciler.policies (tenant, action, version, body, active, created_at)
		VALUES ('default', 'refund.create', 1, $1, true, $2)`, policyBody(b, false), t0); err != nil {
		b.Fatal(err)
	}
	return led, db
}

func fill(b *testing.B, db *pgxpool.Pool, n int, prefix string) {
	b.Helper()
	if _, err := db.Exec(b.Context(), fillSQL, n, t0, prefix); err != nil {
		b.Fatal(err)
	}
	for _, table := range []string{"operations", "checks", "journal"} {
		if _, err := db.Exec(b.Context(), `VACUUM ANALYZE reconciler.`+table); err != nil {
			b.Fatal(err)
		}
	}
}

// concludeAll is a sweep without its source: what is due, one look for each batch,
// and the decisions.
func concludeAll(b *testing.B, led *ledger.Ledger, n int) {
	b.Helper()
	now := t0.Add(time.Minute)
	h, err := led.HoldSource(b.Context(), source, "bench", time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	for done := 0; done < n; {
		cases, err := led.Due(b.Context(), ledger.Scope{Source: source}, now, benchBatch)
		if err != nil || len(cases) == 0 {
			b.Fatalf("%d cases: %v", len(cases), err)
		}
		k := recon.Look{ID: newID(), Source: source, Method: recon.ByList, Outcome: recon.Found, Kind: "refund", Account: "acct_1", Mode: "live",
			Window: recon.Window{From: t0.Add(-time.Hour), To: now}, At: now, Complete: true, Calls: 20}
		batch := ledger.Batch{Hold: h, RunID: "run-1", Now: now, Versions: map[recon.OperationID]int64{}}
		for _, c := range cases {
			e := refund(c.Operation, "re_"+string(c.Operation.ID))
			k.Found = append(k.Found, e.Identity())
			batch.Effects = append(batch.Effects, e)
			batch.Decisions = append(batch.Decisions, succeed(c.Operation, e, k, now))
			batch.Versions[c.Operation.ID] = c.Operation.Version
		}
		batch.Looks = []recon.Look{k}
		got, err := led.Record(b.Context(), batch)
		if err != nil || len(got.Lost) > 0 {
			b.Fatalf("recorded %+v: %v", got, err)
		}
		done += len(cases)
	}
}
