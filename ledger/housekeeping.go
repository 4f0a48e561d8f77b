package ledger

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Every version counts, also of an action that is configured no more: operations were sent under it.
const keyLifetimesSQL = `
SELECT DISTINCT p.body ->> 'key_lifetime' FROM reconciler.policies p
WHERE p.tenant = $1 AND p.body ? 'key_lifetime'`

// LongestKey is how long the longest-lived idempotency key may live of whatever was ever sent.
func (l *Ledger) LongestKey(ctx context.Context) (time.Duration, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := l.pool.Query(ctx, keyLifetimesSQL, l.tenant)
	if err != nil {
		return 0, l.fault("read how long keys live", err)
	}
	lifetimes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, l.fault("read how long keys live", err)
	}
	var longest time.Duration
	for _, text := range lifetimes {
		var d recon.Duration
		if err := d.UnmarshalText([]byte(text)); err != nil {
			return 0, fmt.Errorf("read how long keys live: a stored policy has the key_lifetime %q: %w", text, err)
		}
		longest = max(longest, d.Std())
	}
	return longest, nil
}

// Locked in the order of every other writer of operations. What was opened again since it
// was chosen keeps its request.
const forgetRequestsSQL = `
WITH old AS MATERIALIZED (
	SELECT o.operation_id FROM reconciler.operations o
	WHERE o.tenant = $1 AND o.request IS NOT NULL AND o.state IN ('succeeded', 'failed') AND o.closed_at < $2
	ORDER BY o.closed_at
	LIMIT $3
), locked AS (
	SELECT o.operation_id FROM reconciler.operations o
	WHERE o.tenant = $1 AND o.operation_id IN (SELECT d.operation_id FROM old d)
		AND o.request IS NOT NULL AND o.state IN ('succeeded', 'failed') AND o.closed_at < $2
	ORDER BY o.operation_id
	FOR NO KEY UPDATE
)
UPDATE reconciler.operations o SET request = NULL, version = o.version + 1
FROM locked d WHERE o.tenant = $1 AND o.operation_id = d.operation_id`

// ForgetRequests erases what was sent of operations that were closed before an instant, at
// most limit of them, and says of how many. Its hash stays, so that a repeat of the intent
// still finds its operation; the journal has no entry, since this is the rule and nobody's
// decision.
func (l *Ledger) ForgetRequests(ctx context.Context, before time.Time, limit int) (int, error) {
	return l.tidy(ctx, "erase old requests", forgetRequestsSQL, stored(before), listLimit(limit))
}

// The id of bytes says when they were read.
const dropRepliesSQL = `
WITH old AS MATERIALIZED (
	SELECT b.id FROM reconciler.blobs b
	WHERE b.tenant = $1 AND b.bytes IS NOT NULL AND b.about IS NOT NULL AND b.id < $2
	ORDER BY b.id
	LIMIT $4
	FOR UPDATE
)
UPDATE reconciler.blobs b SET bytes = NULL, salt = NULL, erased_at = $3
FROM old d WHERE b.tenant = $1 AND b.id = d.id`

// DropReplies drops the bytes of effects as their provider sent them that were read before
// an instant, at most limit of them, and says how many. What they said stays, in columns.
func (l *Ledger) DropReplies(ctx context.Context, before, now time.Time, limit int) (int, error) {
	return l.tidy(ctx, "drop old replies", dropRepliesSQL, firstID(before), stored(now), listLimit(limit))
}

// CloseDeadRuns closes runs whose process died as abandoned, also those whose place nobody
// wants any more, and says how many.
func (l *Ledger) CloseDeadRuns(ctx context.Context) (int, error) {
	now, err := l.Now(ctx)
	if err != nil {
		return 0, err
	}
	return l.tidy(ctx, "close dead runs", abandonSQL, now, takeOvers)
}

// Of every name the newest tick stays, by which replicas know what was run, and the newest
// success, which the metrics tell. Audits and reports stay for ever: they are what a past
// day was said to be.
const dropRunsSQL = `
WITH RECURSIVE ` + runNamesSQL + `, kept AS MATERIALIZED (
	SELECT n.name,
		(SELECT r.run_id FROM reconciler.runs r
			WHERE r.tenant = $1 AND r.name = n.name AND r.outcome = 'done' ORDER BY r.started_at DESC LIMIT 1) AS done,
		(SELECT r.run_id FROM reconciler.runs r
			WHERE r.tenant = $1 AND r.name = n.name AND r.tick IS NOT NULL ORDER BY r.started_at DESC LIMIT 1) AS ticked
	FROM names n WHERE n.name IS NOT NULL
), old AS MATERIALIZED (
	SELECT r.run_id FROM reconciler.runs r JOIN kept k ON k.name = r.name
	WHERE r.tenant = $1 AND r.finished_at < $2 AND r.tallied AND r.name NOT LIKE 'audit/%' AND r.name NOT LIKE 'report%'
		AND r.run_id IS DISTINCT FROM k.done AND r.run_id IS DISTINCT FROM k.ticked
	ORDER BY r.finished_at
	LIMIT $3
)
DELETE FROM reconciler.runs r USING old o WHERE r.tenant = $1 AND r.run_id = o.run_id`

// DropRuns drops the rows of runs that ended before an instant, at most limit of them, and
// says of how many.
func (l *Ledger) DropRuns(ctx context.Context, before time.Time, limit int) (int, error) {
	return l.tidy(ctx, "drop old runs", dropRunsSQL, stored(before), listLimit(limit))
}

// tidy runs a statement and says how many rows it changed.
func (l *Ledger) tidy(ctx context.Context, op, sql string, args ...any) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	tag, err := l.pool.Exec(ctx, sql, append([]any{l.tenant}, args...)...)
	return int(tag.RowsAffected()), l.fault(op, err)
}

// firstID is at most every id that was made at an instant or later: ids begin with their
// milliseconds.
func firstID(at time.Time) string {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(0, at.UnixMilli())))
	var id uuid.UUID
	copy(id[:6], ms[2:])
	return id.String()
}
