package sweep

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/internal/turns"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// fillSQL makes unknown operations as the acting side leaves them. $1 how many  $2 when
// they became unknown
const fillSQL = `
WITH made AS (
	INSERT INTO reconciler.operations (tenant, operation_id, source, action, target, key, amount, currency, state, created_at, sent_at,
		account, mode, marks, policy_version, attempts, in_doubt, unknown_since, chain_seq, chain_head)
	SELECT 'default', 'op_' || i, 'stripe-main', 'refund.create', 'order:' || i, 'k-' || i, 4200, 'EUR', 'unknown', $2, $2,
		'acct_1', 'live', '{key,reference}', 1, 1, true, $2, 1, sha256(convert_to('{}', 'UTF8'))
	FROM generate_series(1, $1::int) i
	RETURNING operation_id
), told AS (
	INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
	SELECT 'default', m.operation_id, 1, 'opened', $2, '{}', sha256(convert_to('{}', 'UTF8')) FROM made m RETURNING seq
)
INSERT INTO reconciler.checks (tenant, operation_id, source, closed, next_check)
SELECT 'default', m.operation_id, 'stripe-main', false, $2 FROM made m`

// setBasedSQL is the limit that a sweep is held against: the same rows updated and the
// same evidence inserted by SQL alone, which is told the answer. $1 now  $2 batch
const setBasedSQL = `
WITH due AS MATERIALIZED (
	SELECT c.operation_id FROM reconciler.checks c
	WHERE c.tenant = 'default' AND c.source = 'stripe-main' AND NOT c.closed AND c.next_check <= $1
	ORDER BY c.next_check, c.operation_id LIMIT $2
), found AS (
	INSERT INTO reconciler.effects (tenant, system, account, mode, id, source, kind, status, amount, currency, parent, reference, created_at, metadata, owner, first_seen_at, seen_at)
	SELECT 'default', 'stripe-main', 'acct_1', 'live', 're_' || d.operation_id, 'stripe-main', 'refund', 'completed', 4200, 'EUR', 'ch_1',
		d.operation_id, $1, jsonb_build_object('op_id', d.operation_id), d.operation_id, $1, $1 FROM due d
), kept AS (
	INSERT INTO reconciler.blobs (tenant, id, salt, bytes)
	SELECT 'default', gen_random_uuid()::text, sha256(convert_to(d.operation_id, 'UTF8')), convert_to(repeat('x', 300), 'UTF8') FROM due d
), linked AS (
	INSERT INTO reconciler.matches (tenant, system, account, mode, effect_id, operation_id, basis, certainty, role, at)
	SELECT 'default', 'stripe-main', 'acct_1', 'live', 're_' || d.operation_id, d.operation_id, 'reference', 'proof', 'main', $1 FROM due d
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

// BenchmarkSweep concludes due operations from one list of the window, end to end
// through the real source over HTTP, beside the set-based SQL that does the same to the
// rows and is told the answer. x-sql is the ratio without the time spent asking, which
// is the fake provider's; calls-ratio holds the calls against the pages that there are.
func BenchmarkSweep(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var rounds turns.Rounds
			var asked time.Duration
			var calls, statements int
			for b.Loop() {
				b.StopTimer()
				bySQL := setBased(b, n)
				s := benchSweep(b, n)
				b.StartTimer()
				began := time.Now()
				out, err := s.sweep.Run(b.Context(), Options{Now: func() time.Time { return s.now }})
				swept := time.Since(began)
				if err != nil || out.Succeeded != n {
					b.Fatalf("%+v, %v", out, err)
				}
				rounds.Add(swept-s.source.took, bySQL)
				asked += s.source.took
				calls += out.ProviderCalls
				statements += s.statements.take()
			}
			rounds.Report(b, "x-sql")
			b.ReportMetric(asked.Seconds()/float64(b.N), "s-asking")
			b.ReportMetric(float64(calls)/float64(b.N*((n+99)/100)), "calls-ratio")
			b.ReportMetric(float64(statements)/float64(b.N*((n+defaultBatch-1)/defaultBatch)), "statements/batch")
		})
	}
}

type benchStand struct {
	sweep      *Sweep
	source     *timed
	statements *counter
	now        time.Time
}

// timed is a source whose time is told apart.
type timed struct {
	sources.Source
	took time.Duration
}

func (t *timed) Ask(ctx context.Context, batch []sources.Question, now func() time.Time) (sources.Answer, error) {
	began := time.Now()
	defer func() { t.took += time.Since(began) }()
	return t.Source.Ask(ctx, batch, now)
}

func setBased(b *testing.B, n int) time.Duration {
	b.Helper()
	db, _ := benchDatabase(b, n)
	began := time.Now()
	for done := 0; done < n; {
		tag, err := db.Exec(b.Context(), setBasedSQL, monday.Add(time.Hour), defaultBatch)
		if err != nil || tag.RowsAffected() == 0 {
			b.Fatalf("%d rows: %v", tag.RowsAffected(), err)
		}
		done += int(tag.RowsAffected())
	}
	return time.Since(began)
}

func benchDatabase(b *testing.B, n int) (*pgxpool.Pool, string) {
	b.Helper()
	url := pgtest.URL(b)
	db, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(db.Close)
	policy := recon.DefaultPolicy()
	policy.Action, policy.Source, policy.Effect, policy.Class, policy.System = "refund.create", testSource, "refund", recon.Irreversible, string(testSource)
	body, err := json.Marshal(policy)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := db.Exec(b.Context(), `INSERT INTO reconciler.policies (tenant, action, version, body, created_at) VALUES ('default', 'refund.create', 1, $1, $2)`, body, monday); err != nil {
		b.Fatal(err)
	}
	if _, err := db.Exec(b.Context(), fillSQL, n, monday); err != nil {
		b.Fatal(err)
	}
	for _, table := range []string{"operations", "checks", "journal"} {
		if _, err := db.Exec(b.Context(), `VACUUM ANALYZE reconciler.`+table); err != nil {
			b.Fatal(err)
		}
	}
	return db, url
}

func benchSweep(b *testing.B, n int) *benchStand {
	b.Helper()
	_, url := benchDatabase(b, n)
	s := &benchStand{statements: &counter{}, now: monday.Add(time.Hour)}
	l, err := ledger.Open(b.Context(), ledger.Options{URL: url, Tracer: s.statements})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(l.Close)
	server, err := stripetest.Start(stripetest.Options{
		Now: func() time.Time { return s.now }, Seed: 1, Accounts: []stripetest.Account{{ID: testAccount, Mode: "live", Key: "sk_live_testonly"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(server.Close)
	effects := make([]recon.Effect, n)
	for i := range effects {
		effects[i] = recon.Effect{
			ID: fmt.Sprintf("re_%d", i+1), Kind: "refund", Status: recon.Completed, Parent: "ch_1", Account: testAccount, Mode: "live",
			Money: recon.Money{Minor: 4200, Currency: "EUR"}, Reference: fmt.Sprintf("op_%d", i+1), CreatedAt: monday.Add(time.Duration(i) * time.Millisecond),
		}
	}
	if _, err := server.Load(effects, testMarker); err != nil {
		b.Fatal(err)
	}
	settings := stripe.Settings{Account: testAccount, Mode: "live", APIURL: server.URL(), Marker: testMarker, PerSecond: 1_000_000}
	if err := settings.APIKey.UnmarshalText([]byte("sk_live_testonly")); err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{}
	b.Cleanup(transport.CloseIdleConnections)
	client, err := stripe.New(testSource, settings, stripe.Options{Transport: transport})
	if err != nil {
		b.Fatal(err)
	}
	s.source = &timed{Source: client}
	s.sweep = &Sweep{Ledger: l, Source: s.source, Holder: "bench"}
	return s
}
