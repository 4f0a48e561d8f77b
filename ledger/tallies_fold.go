package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	beginMarkSQL = `
INSERT INTO reconciler.tally_marks (tenant, folded_to, folded_at) VALUES ($1, '0', $2)
ON CONFLICT (tenant) DO NOTHING`

	// One fold at a time.
	lockMarkSQL = tallyMarkSQL + ` FOR NO KEY UPDATE`

	// The oldest transaction that may still write an entry: what earlier ones wrote is
	// there for every statement after this one. A mark beyond the newest is that of
	// another server, whose dump was restored here.
	horizonSQL = `
SELECT pg_snapshot_xmin(s.now)::text, $1::text::xid8 > pg_snapshot_xmax(s.now)
FROM (SELECT pg_current_snapshot() AS now) s`

	// The newest entry of the other server.
	restoredSQL = `
SELECT greatest(m.folded_at, (SELECT max(j.at) FROM reconciler.journal j WHERE j.tenant = $1 AND j.tx >= $2::text::xid8))
FROM reconciler.tally_marks m WHERE m.tenant = $1`

	moveMarkSQL = `
UPDATE reconciler.tally_marks m SET folded_to = $2::text::xid8, after = $3, folded_at = $4 WHERE m.tenant = $1`

	addTalliesSQL = `
INSERT INTO reconciler.tallies AS t (tenant, name, labels, n)
SELECT $1, r.name, r.labels, r.n
FROM json_to_recordset($2::json) AS r (name text, labels text[], n bigint)
ON CONFLICT (tenant, name, labels) DO UPDATE SET n = t.n + excluded.n`

	// Locked in the order of every other writer of findings.
	takeFindingsSQL = `
WITH taken AS (
	SELECT f.fingerprint, f.kind, f.openings - f.tallied AS n FROM reconciler.findings f
	WHERE f.tenant = $1 AND f.to_tally
	ORDER BY f.fingerprint FOR NO KEY UPDATE
), marked AS (
	UPDATE reconciler.findings f SET tallied = f.tallied + t.n
	FROM taken t WHERE f.tenant = $1 AND f.fingerprint = t.fingerprint
)
SELECT 'findings_opened', ARRAY[t.kind], sum(t.n)::bigint FROM taken t GROUP BY t.kind`

	takeRepeatsSQL = `
WITH taken AS (DELETE FROM reconciler.repeats r WHERE r.tenant = $1 RETURNING r.reason)
SELECT 'repeats_prevented', ARRAY[t.reason], count(*) FROM taken t GROUP BY t.reason`

	takeRunsSQL = `
WITH ended AS (` + newRunsSQL + ` ORDER BY r.run_id FOR NO KEY UPDATE), marked AS (
	UPDATE reconciler.runs r SET tallied = true FROM ended e WHERE r.tenant = $1 AND r.run_id = e.run_id
)` + runOutcomesSQL
)

// FoldTallies counts what came since the last fold into the tallies, in one transaction,
// so that the next readings have less to count. Any number of processes may do it at
// any time: nothing is counted twice or left out, and no reading changes by it.
func (l *Ledger) FoldTallies(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err := l.inTx(ctx, func(tx pgx.Tx) error {
		now, err := clock(ctx, tx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, beginMarkSQL, l.tenant, now); err != nil {
			return err
		}
		mark, err := l.tallyMark(ctx, tx, lockMarkSQL)
		if err != nil {
			return err
		}
		return l.fold(ctx, tx, mark, now)
	})
	return l.fault("fold the tallies", err)
}

// fold moves the mark to the horizon. Its row is locked.
func (l *Ledger) fold(ctx context.Context, tx pgx.Tx, mark tallyMark, now time.Time) error {
	to := tallyMark{after: mark.after}
	var restored bool
	if err := tx.QueryRow(ctx, horizonSQL, mark.to).Scan(&to.to, &restored); err != nil {
		return err
	}
	from := []counting{{tallyEntriesSQL, []any{l.tenant, mark.to, to.to, orNull(mark.after)}}}
	if restored {
		// The rest of the other server's entries, and then what was written here.
		if err := tx.QueryRow(ctx, restoredSQL, l.tenant, mark.to).Scan(instant(&to.after)); err != nil {
			return err
		}
		from = []counting{
			{tallyEntriesSQL, []any{l.tenant, mark.to, nil, orNull(mark.after)}},
			{tallyEntriesSQL, []any{l.tenant, "0", to.to, orNull(to.after)}},
		}
	}
	from = append(from, counting{takeFindingsSQL, []any{l.tenant}}, counting{takeRepeatsSQL, []any{l.tenant}}, counting{takeRunsSQL, []any{l.tenant}})
	if err := l.addTallies(ctx, tx, from); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, moveMarkSQL, l.tenant, to.to, orNull(to.after), now)
	return err
}

// addTallies adds what statements count.
func (l *Ledger) addTallies(ctx context.Context, tx pgx.Tx, from []counting) error {
	sum := tallies{}
	for _, c := range from {
		counts, err := collect(ctx, tx, scanTally, c.sql, c.args...)
		if err != nil {
			return err
		}
		sum.addAll(counts)
	}
	rows := make([]tallyRow, 0, len(sum))
	for _, t := range sum {
		rows = append(rows, tallyRow(t))
	}
	in, err := encode(rows)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, addTalliesSQL, l.tenant, in)
	return err
}

type tallyRow struct {
	Name   string   `json:"name"`
	Labels []string `json:"labels"`
	N      int64    `json:"n"`
}
