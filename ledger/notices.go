package ledger

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// stepFirst is the step that posts a message; every other step edits one.
const stepFirst = "first"

//go:embed sql/due_notices.sql
var dueNoticesSQL string

// DueNotices gives notices whose time has come, that are not delivered and that
// nobody holds: first steps before all others, then by due time. One that edits a
// message waits until that message is delivered.
func (l *Ledger) DueNotices(ctx context.Context, now time.Time, limit int) ([]recon.Notice, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	scan := func(row pgx.CollectableRow) (recon.Notice, error) {
		var n recon.Notice
		err := row.Scan(&n.ID, &n.Finding, text(&n.Operation), &n.Step, &n.Destination, &n.Reason, instant(&n.DueAt), number(&n.Tries),
			&n.Doubt, instant(&n.FirstTry), text(&n.Message), text(&n.Root.Channel), text(&n.Root.TS))
		return n, err
	}
	due, err := collect(ctx, l.pool, scan, dueNoticesSQL, l.tenant, stored(now), stepFirst, listLimit(limit))
	return due, l.fault("read due notices", err)
}

// A claim counts as a try whose outcome is not known until it is settled: that is how
// one looks whose process ended in between.
const claimNoticeSQL = `
UPDATE reconciler.notices n
SET claimed_until = $4, attempts = n.attempts + 1, first_try_at = coalesce(n.first_try_at, $3), outcome_unknown = true
WHERE n.tenant = $1 AND n.notice_id = $2 AND n.state <> 'delivered' AND n.due_at <= $3
	AND (n.claimed_until IS NULL OR n.claimed_until <= $3)`

// ClaimNotice takes the right to send one notice until a time; false when another
// has it, or it is done, or its next try is later.
func (l *Ledger) ClaimNotice(ctx context.Context, id string, now, until time.Time) (bool, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	tag, err := l.pool.Exec(ctx, claimNoticeSQL, l.tenant, id, stored(now), stored(until))
	return err == nil && tag.RowsAffected() == 1, l.fault("claim a notice", err)
}

const deliveredSQL = `
UPDATE reconciler.notices n
SET state = 'delivered', delivered_at = $3, channel = $4, ts = $5, claimed_until = NULL, outcome_unknown = false, last_error = NULL
WHERE n.tenant = $1 AND n.notice_id = $2`

// Held for ever is how a notice is kept that nobody tries again: it stays counted as
// undelivered and is never due.
const notDeliveredSQL = `
UPDATE reconciler.notices n
SET state = CASE WHEN $4 OR $3::timestamptz IS NULL THEN 'undelivered' ELSE 'due' END,
	due_at = coalesce($3, n.due_at), claimed_until = CASE WHEN $3::timestamptz IS NULL THEN timestamptz 'infinity' END,
	outcome_unknown = $5, last_error = nullif($6::text, '')
WHERE n.tenant = $1 AND n.notice_id = $2 AND n.state <> 'delivered'`

// SettleNotice records how a try went and gives the claim back. What was delivered
// once stays delivered, whoever reports later.
func (l *Ledger) SettleNotice(ctx context.Context, id string, d recon.Delivery, now time.Time) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var err error
	if d.Receipt.IsZero() {
		_, err = l.pool.Exec(ctx, notDeliveredSQL, l.tenant, id, orNull(d.Next), d.Undelivered, d.Doubt, d.Reason)
	} else {
		_, err = l.pool.Exec(ctx, deliveredSQL, l.tenant, id, stored(now), d.Receipt.Channel, d.Receipt.TS)
	}
	return l.fault("record a notice", err)
}
