package ledger

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	// acrossTimeout bounds a statement that looks at a whole window at once.
	acrossTimeout = 30 * time.Minute
	// acrossSettings are for such a statement alone: what it may take at the server before it
	// writes to disk, and no machine code, which takes longer to make of its hundred
	// expressions than a million rows save.
	acrossSettings = `SELECT set_config('work_mem', '64MB', true), set_config('jit', 'off', true)`
	// maxGroup bounds what is held of one intent or one target at a time.
	maxGroup = 2000
	// overlapGroup is how much of a larger group is held again with its next part, so that
	// neighbours meet.
	overlapGroup = 32
)

//go:embed sql/audit_twins.sql
var auditTwinsSQL string

// AuditTwins gives, group by group, operations of a window that may be one intent done
// twice, with those up to within outside it. A group larger than some thousands comes in
// parts that overlap.
func (l *Ledger) AuditTwins(ctx context.Context, s AuditScope, within time.Duration, each func([]recon.OperationID) error) error {
	var group []recon.OperationID
	var last int64
	flush := func(keep int) error {
		if len(group) > 1 {
			if err := each(group); err != nil {
				return err
			}
		}
		group = append([]recon.OperationID(nil), group[len(group)-min(keep, len(group)):]...)
		return nil
	}
	var intent int64
	var id recon.OperationID
	err := l.across(ctx, auditTwinsSQL, []any{&intent, nil, text(&id)}, func() error {
		var err error
		if intent != last {
			err, last = flush(0), intent
		} else if len(group) >= maxGroup {
			err = flush(overlapGroup)
		}
		group = append(group, id)
		return err
	}, l.tenant, string(s.Source), stored(s.Window.From), stored(s.Window.To), within)
	if err == nil {
		err = flush(0)
	}
	return l.fault("look for suspected duplicates", err)
}

// across streams the rows of one statement over a window.
func (l *Ledger) across(ctx context.Context, sql string, into []any, each func() error, args ...any) error {
	if _, bound := ctx.Deadline(); !bound {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, acrossTimeout)
		defer cancel()
	}
	return l.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, acrossSettings); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		_, err = pgx.ForEachRow(rows, into, each)
		return err
	})
}

const reopenedSQL = `
SELECT DISTINCT j.operation_id FROM reconciler.journal j
WHERE j.tenant = $1 AND j.operation_id = ANY ($2::text[]) AND j.kind = 'decision'
	AND j.body::jsonb ->> 'from' = 'succeeded' AND j.body::jsonb ->> 'to' = 'manual_review'`

// Reopened tells which of the operations were succeeded before something of them turned
// out to be wrong.
func (l *Ledger) Reopened(ctx context.Context, ids []recon.OperationID) (map[recon.OperationID]bool, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	out := map[recon.OperationID]bool{}
	if len(ids) == 0 {
		return out, nil
	}
	rows, err := l.pool.Query(ctx, reopenedSQL, l.tenant, texts(ids))
	if err != nil {
		return nil, l.fault("read what was reopened", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, id := range list {
		out[recon.OperationID(id)] = true
	}
	return out, l.fault("read what was reopened", err)
}

// FailedEffect is a failed effect with what it was for.
type FailedEffect struct {
	Effect    recon.Effect
	Operation recon.OperationID
	Target    string // the operation's, else the effect's
}

// Effects of targets for which three and more failed.
const auditFailedSQL = `
SELECT f.target, f.operation_id, ` + effectColumns + `
FROM (
	SELECT e.*, coalesce(o.target, e.target) AS target_of, o.operation_id,
		count(*) OVER (PARTITION BY e.kind, e.mode, coalesce(o.target, e.target)) AS failures
	FROM reconciler.effects e
	LEFT JOIN reconciler.operations o ON o.tenant = $1 AND o.operation_id = e.owner
	WHERE e.tenant = $1 AND e.source = $2 AND e.status = 'failed' AND e.created_at >= $3 AND e.created_at < $4
		AND coalesce(o.target, e.target) IS NOT NULL
) e
CROSS JOIN LATERAL (SELECT e.target_of AS target, e.operation_id) f
WHERE e.failures >= 3
ORDER BY e.kind, e.mode, f.target, e.created_at, e.id`

// AuditFailed gives, target by target, the failed effects of a source in a window, of
// targets with three and more.
func (l *Ledger) AuditFailed(ctx context.Context, s AuditScope, each func([]FailedEffect) error) error {
	var group []FailedEffect
	var f FailedEffect
	into := append([]any{text(&f.Target), text(&f.Operation)}, effectFields(&f.Effect)...)
	other := func() bool {
		if len(group) == 0 {
			return false
		}
		was := group[0]
		return was.Target != f.Target || was.Effect.Kind != f.Effect.Kind || was.Effect.Mode != f.Effect.Mode
	}
	err := l.across(ctx, auditFailedSQL, into, func() error {
		var err error
		if other() {
			err, group = each(group), nil
		}
		if len(group) == maxGroup {
			group = group[:maxGroup-1] // the last one stays the latest
		}
		group = append(group, f)
		f.Effect = recon.Effect{} // its slices belong to what was kept
		return err
	}, l.tenant, string(s.Source), stored(s.Window.From), stored(s.Window.To))
	if err == nil && len(group) > 0 {
		err = each(group)
	}
	return l.fault("look for what keeps failing", err)
}

const childrenSQL = `
SELECT ` + effectColumns + `
FROM reconciler.effects e
WHERE e.tenant = $1 AND e.parent = ANY ($2::text[])
UNION
SELECT ` + effectColumns + `
FROM reconciler.effects e
WHERE e.tenant = $1 AND e.owner IS NULL AND e.other_parents <> '{}' AND e.other_parents && $2::text[]
LIMIT $3`

// Children gives the effects that hang under some objects, of whatever system.
func (l *Ledger) Children(ctx context.Context, parents []string) ([]recon.Effect, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := l.pool.Query(ctx, childrenSQL, l.tenant, parents, maxDue)
	if err != nil {
		return nil, l.fault("read what hangs under some objects", err)
	}
	effects, err := pgx.CollectRows(rows, scanEffect)
	return effects, l.fault("read what hangs under some objects", err)
}

// Parents of which an effect in the window shows the total, and which may differ: several
// effects hang under them, or the one that does is not all of it.
const auditTotalsSQL = `
SELECT e.parent, count(*) FROM reconciler.effects e
WHERE e.tenant = $1 AND e.source = $2 AND e.created_at >= $3 AND e.created_at < $4
	AND e.parent_total IS NOT NULL AND e.parent IS NOT NULL
GROUP BY e.parent
HAVING count(*) > 1 OR bool_or(e.parent_total IS DISTINCT FROM e.amount OR e.status NOT IN ('in_flight', 'completed'))
ORDER BY e.parent`

// AuditTotals gives, some at a time, the parents of effects in a window whose own total
// has to be held against what hangs under them.
func (l *Ledger) AuditTotals(ctx context.Context, s AuditScope, each func(parents []string) error) error {
	var parents []string
	var parent string
	err := l.across(ctx, auditTotalsSQL, []any{&parent, nil}, func() error {
		parents = append(parents, parent)
		if len(parents) < maxGroup/10 {
			return nil
		}
		part := parents
		parents = nil
		return each(part)
	}, l.tenant, string(s.Source), stored(s.Window.From), stored(s.Window.To))
	if err == nil && len(parents) > 0 {
		err = each(parents)
	}
	return l.fault("look for parents' totals", err)
}

// A finding that no operation's judgement ends is over when what it tells is no longer
// so: an orphan that belongs to somebody or came to nothing, operations of which at most
// one still has an effect, and what keeps failing and parents' totals that were looked at
// and not found again. A total that no effect tells any more was not looked at.
const auditOverSQL = `
SELECT f.fingerprint FROM reconciler.findings f
JOIN reconciler.effects e ON e.tenant = $1 AND e.id = f.effect_ids[1] AND e.source = $2
	AND e.account = f.effects -> 0 ->> 'account' AND e.mode = f.effects -> 0 ->> 'mode'
WHERE f.tenant = $1 AND f.source = $2 AND f.kind = 'orphan' AND f.state NOT IN ('settled', 'ended')
	AND (e.owner IS NOT NULL OR e.status = 'failed')
UNION ALL
SELECT f.fingerprint FROM reconciler.findings f
WHERE f.tenant = $1 AND f.source = $2 AND f.kind = 'duplicate' AND f.certainty = 'suspected' AND f.state NOT IN ('settled', 'ended')
	AND (SELECT count(DISTINCT e.owner) FROM reconciler.effects e
		WHERE e.tenant = $1 AND e.owner = ANY (f.operation_ids) AND e.status IN ('in_flight', 'completed')) < 2
UNION ALL
SELECT f.fingerprint FROM reconciler.findings f
WHERE f.tenant = $1 AND f.source = $2 AND f.state NOT IN ('settled', 'ended') AND f.fingerprint <> ALL ($3::text[])
	AND (f.kind = 'failing' OR f.kind = 'mismatch' AND ` + ofParent + ` AND EXISTS (SELECT FROM reconciler.effects c
		JOIN reconciler.effects e ON e.tenant = $1 AND e.source = c.source AND e.account = c.account AND e.mode = c.mode AND e.parent = c.parent
		WHERE c.tenant = $1 AND c.source = $2 AND c.id = ANY (f.effect_ids) AND e.parent_total IS NOT NULL))
ORDER BY 1`

// ofParent says that a mismatch is of a parent's total and not of an operation.
const ofParent = `f.operation_ids = '{}' AND f.observed @> '[{"field": "parent_total"}]'`

const auditToldParentsSQL = `
SELECT DISTINCT e.parent FROM reconciler.findings f
JOIN reconciler.effects e ON e.tenant = $1 AND e.id = ANY (f.effect_ids) AND e.source = $2 AND e.parent IS NOT NULL
WHERE f.tenant = $1 AND f.source = $2 AND f.kind = 'mismatch' AND f.state NOT IN ('settled', 'ended') AND ` + ofParent + `
ORDER BY 1`

// AuditToldParents gives the parents of which an open finding says that their total differs.
func (l *Ledger) AuditToldParents(ctx context.Context, source recon.SourceName) ([]string, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := l.pool.Query(ctx, auditToldParentsSQL, l.tenant, string(source))
	if err != nil {
		return nil, l.fault("read the parents that were told of", err)
	}
	parents, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return parents, l.fault("read the parents that were told of", err)
}

// AuditOver gives the fingerprints of open findings of a source that no operation's
// judgement ends and that are over. Holding are those of what keeps failing, and of parents'
// totals, that were found again; the others of these kinds are over.
func (l *Ledger) AuditOver(ctx context.Context, source recon.SourceName, holding []string) ([]string, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if holding == nil {
		holding = []string{} // null would hold against every one
	}
	rows, err := l.pool.Query(ctx, auditOverSQL, l.tenant, string(source), holding)
	if err != nil {
		return nil, l.fault("look for findings that are over", err)
	}
	over, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return over, l.fault("look for findings that are over", err)
}

const findingsBySQL = `
SELECT ` + findingColumns + `, f.fingerprint, f.settled_as
FROM reconciler.findings f
WHERE f.tenant = $1 AND f.fingerprint = ANY ($2::text[])`

// StoredFinding is a finding as it stands in the ledger, and how a person settled it.
type StoredFinding struct {
	recon.Finding
	SettledAs string
}

// FindingsBy gives findings by fingerprint, whatever their state.
func (l *Ledger) FindingsBy(ctx context.Context, fingerprints []string) (map[string]StoredFinding, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	out := map[string]StoredFinding{}
	if len(fingerprints) == 0 {
		return out, nil
	}
	rows, err := l.pool.Query(ctx, findingsBySQL, l.tenant, fingerprints)
	if err != nil {
		return nil, l.fault("read findings", err)
	}
	var fingerprint string
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var s StoredFinding
		var err error
		s.Finding, err = scanFinding(row, &fingerprint, text(&s.SettledAs))
		out[fingerprint] = s
		return struct{}{}, err
	})
	return out, l.fault("read findings", err)
}
