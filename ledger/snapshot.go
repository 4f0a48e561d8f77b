package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Open operations have a partial index, so closed ones cost nothing here. An
// operation in progress whose lease is over is as unknown as one that is said to be.
const operationGaugesSQL = `
SELECT o.source, o.action, o.state, count(*),
	min(CASE WHEN o.state = 'unknown' THEN o.unknown_since
		WHEN o.state = 'in_progress' AND o.lease_until <= $2 THEN coalesce(o.unknown_since, o.lease_until) END)
		FILTER (WHERE o.effect_id IS NULL),
	min(o.unknown_since) FILTER (WHERE o.state = 'unknown' AND o.effect_id IS NOT NULL),
	min(o.key_expires_at) FILTER (WHERE o.state IN ('unknown', 'in_progress') AND o.effect_id IS NULL AND o.key_expires_at > $2)
FROM reconciler.operations o
WHERE o.tenant = $1 AND o.state NOT IN ('succeeded', 'failed')
GROUP BY o.source, o.action, o.state
ORDER BY o.source, o.action, o.state`

const findingGaugesSQL = `
SELECT f.kind, count(*) FROM reconciler.findings f
WHERE f.tenant = $1 AND f.state NOT IN ('settled', 'ended')
GROUP BY f.kind`

const blindGaugesSQL = `
SELECT s.source, s.blind_since FROM reconciler.source_state s WHERE s.tenant = $1 AND s.blind_since IS NOT NULL`

// One step along the index for each name, instead of reading every run there was.
const runNamesSQL = `names AS (
	(SELECT r.name FROM reconciler.runs r WHERE r.tenant = $1 ORDER BY r.name LIMIT 1)
	UNION ALL
	SELECT (SELECT r.name FROM reconciler.runs r WHERE r.tenant = $1 AND r.name > n.name ORDER BY r.name LIMIT 1)
	FROM names n WHERE n.name IS NOT NULL
)`

// A kept report is no run that anybody misses.
const runGaugesSQL = `
WITH RECURSIVE ` + runNamesSQL + `
SELECT n.name, (SELECT r.finished_at FROM reconciler.runs r
	WHERE r.tenant = $1 AND r.name = n.name AND r.outcome = 'done' ORDER BY r.started_at DESC LIMIT 1)
FROM names n WHERE n.name <> '` + reportRun + `'`

const noticeGaugesSQL = `
SELECT min(n.planned_at) FILTER (WHERE n.due_at <= $2 OR n.attempts > 0), count(*) FILTER (WHERE n.state = 'undelivered')
FROM reconciler.notices n WHERE n.tenant = $1 AND n.state <> 'delivered'`

// Only of kinds that some action of the source makes: no other one waits for an
// operation, however many of them events tell of.
const unownedGaugesSQL = `
SELECT k.source, sum((SELECT count(*) FROM reconciler.effects e
	WHERE e.tenant = $1 AND e.source = k.source AND e.kind = k.kind AND e.owner IS NULL))::bigint
FROM (SELECT DISTINCT p.body ->> 'source' AS source, p.body ->> 'effect' AS kind
	FROM reconciler.policies p WHERE p.tenant = $1 AND p.active) k
GROUP BY k.source`

// Snapshot reads what the gauges and the ledger's counters show, in one transaction. now decides which notices
// are due; leases are judged by the database's clock, and At is its time.
func (l *Ledger) Snapshot(ctx context.Context, now time.Time) (Snapshot, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	s := Snapshot{
		Findings: map[recon.FindingKind]int64{}, BlindSince: map[recon.SourceName]time.Time{},
		RunLastSuccess: map[string]time.Time{}, EffectsUnowned: map[recon.SourceName]int64{},
	}
	tx, err := l.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return s, l.fault("read the gauges", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it only read
	if err := l.gauges(ctx, tx, now, &s); err != nil {
		return Snapshot{}, l.fault("read the gauges", err)
	}
	return s, nil
}

func (l *Ledger) gauges(ctx context.Context, tx pgx.Tx, now time.Time, s *Snapshot) (err error) {
	if s.At, err = clock(ctx, tx); err != nil {
		return err
	}
	operations := func(row pgx.CollectableRow) (g OperationGauge, err error) {
		return g, row.Scan(text(&g.Source), text(&g.Action), text(&g.State), &g.Count,
			instant(&g.OldestUnknown), instant(&g.OldestInFlight), instant(&g.NextKeyExpiry))
	}
	if s.Operations, err = collect(ctx, tx, operations, operationGaugesSQL, l.tenant, s.At); err != nil {
		return err
	}
	if err := fill(ctx, tx, s.Findings, findingGaugesSQL, l.tenant); err != nil {
		return err
	}
	if err := fill(ctx, tx, s.EffectsUnowned, unownedGaugesSQL, l.tenant); err != nil {
		return err
	}
	if err := fillTimes(ctx, tx, s.BlindSince, blindGaugesSQL, l.tenant); err != nil {
		return err
	}
	if err := fillTimes(ctx, tx, s.RunLastSuccess, runGaugesSQL, l.tenant); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, noticeGaugesSQL, l.tenant, stored(now)).Scan(instant(&s.OldestNotice), &s.UndeliveredOpen); err != nil {
		return err
	}
	s.Tallies, s.NotFolded, err = l.tallies(ctx, tx)
	return err
}

// fill reads counts by name.
func fill[K ~string](ctx context.Context, q querier, into map[K]int64, sql string, args ...any) error {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	var k K
	var n int64
	_, err = pgx.ForEachRow(rows, []any{text(&k), &n}, func() error { into[k] = n; return nil })
	return err
}

// fillTimes reads instants by name; a name without one gets the zero time.
func fillTimes[K ~string](ctx context.Context, q querier, into map[K]time.Time, sql string, args ...any) error {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	var k K
	var t time.Time
	_, err = pgx.ForEachRow(rows, []any{text(&k), instant(&t)}, func() error { into[k] = t; return nil })
	return err
}
