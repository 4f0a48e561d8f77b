package ledger

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// ruleLeaseOver names in the journal what moved an operation whose worker is gone.
const ruleLeaseOver = "lease_over"

const overLeasesSQL = `
SELECT o.operation_id FROM reconciler.operations o
WHERE o.tenant = $1 AND o.source = $2 AND o.state = 'in_progress' AND o.lease_until <= $3
ORDER BY o.lease_until, o.operation_id
LIMIT $4`

// The condition is repeated under the lock: the worker may have finished meanwhile.
const lockOverSQL = `
SELECT o.operation_id, o.source, o.action, o.lease_holder, o.lease_until, o.attempts, o.policy_version
FROM reconciler.operations o
WHERE o.tenant = $1 AND o.operation_id = ANY ($2::text[]) AND o.state = 'in_progress' AND o.lease_until <= $3
ORDER BY o.operation_id
FOR NO KEY UPDATE OF o`

//go:embed sql/expire.sql
var expireSQL string

// expireRow ends one lease.
type expireRow struct {
	Operation string    `json:"operation_id"`
	Source    string    `json:"source"`
	Next      time.Time `json:"next_check"`
	Body      string    `json:"body"`
}

// ExpireLeases sets operations that are in progress under a lease that is over to
// unknown, at most limit of them, earliest lease first, and says how many. They are
// unknown from now on, and looked at as their policy says from there, as when a claim
// finds the lease over. The database's clock judges the lease, never now.
func (l *Ledger) ExpireLeases(ctx context.Context, source recon.SourceName, now time.Time, limit int) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	op := "end the leases at " + string(source)
	clock, err := clock(ctx, l.pool)
	if err != nil {
		return 0, l.fault(op, err)
	}
	rows, err := l.pool.Query(ctx, overLeasesSQL, l.tenant, string(source), clock, min(max(limit, 0), maxDue))
	if err != nil {
		return 0, l.fault(op, err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(ids) == 0 {
		return 0, l.fault(op, err)
	}
	var n int
	err = l.inTx(ctx, func(tx pgx.Tx) error {
		n, err = l.expire(ctx, tx, ids, clock, now)
		return err
	})
	return n, l.fault(op, err)
}

func (l *Ledger) expire(ctx context.Context, tx pgx.Tx, ids []string, clock, now time.Time) (int, error) {
	rows, err := tx.Query(ctx, lockOverSQL, l.tenant, ids, clock)
	if err != nil {
		return 0, err
	}
	type over struct {
		row     expireRow
		until   time.Time
		action  string
		holder  string
		attempt int
		policy  int
	}
	var o over
	var all []over
	actions, versions := map[string]bool{}, map[int]bool{}
	_, err = pgx.ForEachRow(rows, []any{&o.row.Operation, &o.row.Source, &o.action, text(&o.holder), instant(&o.until), number(&o.attempt), &o.policy}, func() error {
		all = append(all, o)
		actions[o.action], versions[o.policy] = true, true
		return nil
	})
	if err != nil || len(all) == 0 {
		return 0, err
	}
	active, older, err := l.policiesIn(ctx, tx, keys(actions), keys(versions))
	if err != nil {
		return 0, err
	}
	expired := make([]expireRow, 0, len(all))
	for _, o := range all {
		p, ok := active[o.action]
		if !ok {
			if p, ok = older[policyKey{o.action, o.policy}]; !ok {
				p = recon.DefaultPolicy()
			}
		}
		o.row.Next = stored(now.Add(p.CheckAfter.Std()))
		body, err := encode(entryBody{
			Kind: recon.EntryDecision, At: stored(now), By: byReconciler, Rule: ruleLeaseOver,
			Reason: "The lease ended and nobody told how the attempt went.", PolicyVersion: p.Version,
			From: recon.InProgress, To: recon.Unknown, Attempt: o.attempt, Holder: o.holder, LeaseUntil: &o.until,
		})
		if err != nil {
			return 0, err
		}
		o.row.Body = string(body)
		expired = append(expired, o.row)
	}
	b, err := encode(expired)
	if err != nil {
		return 0, err
	}
	var n int
	err = tx.QueryRow(ctx, expireSQL, l.tenant, stored(now), b).Scan(&n)
	return n, err
}
