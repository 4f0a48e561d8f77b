package ledger

import (
	"context"
	_ "embed"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/text/unicode/norm"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// An audit joins a window once, at the server, and takes over only what has to be judged;
// effects it walks through by the time of their creation. So memory does not grow with the
// window.

// AuditScope is what one audit accounts for: what one source holds, by its own time of
// creation.
type AuditScope struct {
	Source recon.SourceName
	Window recon.Window
	// All has every operation judged, also those that are plain by what is stored.
	All bool
}

// AuditPlace is where a walk through a window goes on; zero: at its start.
type AuditPlace struct {
	At                        time.Time
	System, Account, Mode, ID string
}

// AuditChunk is a piece of the operations of a window.
type AuditChunk struct {
	// Plain are the operations of the window that have one completed effect, equal in all
	// that both sides show, as the record says, and no open finding. PlainEffects are their
	// effects in the window, Effects those of all of its operations.
	Plain, PlainEffects, Effects int
	Odd                          []recon.OperationID // the others, in order: to be judged
}

//go:embed sql/audit_operations.sql
var auditOperationsSQL string

// AuditOperations counts the operations of a window and gives those that have to be judged
// and whose ids are after the given one, at most limit. The join is made once for as many.
func (l *Ledger) AuditOperations(ctx context.Context, s AuditScope, after recon.OperationID, limit int) (AuditChunk, error) {
	var c AuditChunk
	var id recon.OperationID
	var plain, plainEffects, effects int
	err := l.across(ctx, auditOperationsSQL, []any{text(&id), &plain, &plainEffects, &effects}, func() error {
		if id == "" {
			c.Plain, c.PlainEffects, c.Effects = plain, plainEffects, effects
			return nil
		}
		c.Odd = append(c.Odd, id)
		return nil
	}, l.tenant, string(s.Source), stored(s.Window.From), stored(s.Window.To), string(after), limit, s.All)
	return c, l.fault("read the operations of a window", err)
}

// later keeps a walk inside its window: the zero place is its start.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// Two counts that indexes answer alone.
const auditOwnedSQL = `
SELECT (SELECT count(*) FROM reconciler.effects e
		WHERE e.tenant = $1 AND e.source = $2 AND e.created_at >= $3 AND e.created_at < $4)
	- (SELECT count(*) FROM reconciler.effects e
		WHERE e.tenant = $1 AND e.source = $2 AND e.created_at >= $3 AND e.created_at < $4 AND e.owner IS NULL)`

// AuditOwned counts the effects of a window that belong to an operation.
func (l *Ledger) AuditOwned(ctx context.Context, s AuditScope) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var n int
	err := l.pool.QueryRow(ctx, auditOwnedSQL, l.tenant, string(s.Source), stored(s.Window.From), stored(s.Window.To)).Scan(&n)
	return n, l.fault("count the effects of a window", err)
}

const auditAnySQL = `
SELECT EXISTS (SELECT FROM reconciler.operations o
		WHERE o.tenant = $1 AND o.source = $2 AND o.created_at >= $3 AND o.created_at < $4),
	EXISTS (SELECT FROM reconciler.effects e
		WHERE e.tenant = $1 AND e.source = $2 AND e.created_at >= $3 AND e.created_at < $4)`

// AuditAny reports whether the source has any operation and any effect in the window.
func (l *Ledger) AuditAny(ctx context.Context, s AuditScope) (operations, effects bool, err error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	err = l.pool.QueryRow(ctx, auditAnySQL, l.tenant, string(s.Source), stored(s.Window.From), stored(s.Window.To)).Scan(&operations, &effects)
	return operations, effects, l.fault("look into a window", err)
}

const auditFirstSQL = `
SELECT min(o.created_at) FROM reconciler.operations o WHERE o.tenant = $1 AND o.source = $2`

// FirstOperation gives when the oldest operation of a source was made; zero without any.
func (l *Ledger) FirstOperation(ctx context.Context, source recon.SourceName) (time.Time, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var at time.Time
	err := l.pool.QueryRow(ctx, auditFirstSQL, l.tenant, string(source)).Scan(instant(&at))
	return at, l.fault("find the first operation of "+string(source), err)
}

// Effects of a window whose owner was not met in the walk through its operations: it was
// made outside the window, belongs to another source of the system, or is a group.
const auditOutsideSQL = `
SELECT o.operation_id IS NULL, ` + effectColumns + `
FROM (
	SELECT e.* FROM reconciler.effects e
	WHERE e.tenant = $1 AND e.source = $2 AND e.created_at >= $3 AND e.created_at < $4 AND e.owner IS NOT NULL
		AND (e.created_at, e.system, e.account, e.mode, e.id) > ($5::timestamptz, $6::text, $7::text, $8::text, $9::text)
	ORDER BY e.created_at, e.system, e.account, e.mode, e.id
	LIMIT $10
) e
LEFT JOIN reconciler.operations o ON o.tenant = $1 AND o.operation_id = e.owner
	AND o.source = $2 AND o.created_at >= $3 AND o.created_at < $4
ORDER BY e.created_at, e.system, e.account, e.mode, e.id`

// AuditPiece is a piece of a walk through effects.
type AuditPiece struct {
	Effects []recon.Effect // those asked for
	Read    int            // how many were walked over
	Last    AuditPlace
}

// AuditOutside walks through the owned effects of a window and gives those whose owner is
// not an operation in it. It ends when fewer than limit were read.
func (l *Ledger) AuditOutside(ctx context.Context, s AuditScope, after AuditPlace, limit int) (AuditPiece, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var p AuditPiece
	rows, err := l.pool.Query(ctx, auditOutsideSQL, l.walk(s, after, limit)...)
	if err != nil {
		return p, l.fault("read the owners of effects of a window", err)
	}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var e recon.Effect
		var outside bool
		err := row.Scan(append([]any{&outside}, effectFields(&e)...)...)
		if p.Read++; outside {
			p.Effects = append(p.Effects, normal(e))
		}
		p.Last = PlaceOf(e)
		return struct{}{}, err
	})
	return p, l.fault("read the owners of effects of a window", err)
}

func (l *Ledger) walk(s AuditScope, after AuditPlace, limit int) []any {
	return []any{l.tenant, string(s.Source), stored(s.Window.From), stored(s.Window.To),
		stored(later(after.At, s.Window.From)), after.System, after.Account, after.Mode, after.ID, limit}
}

const auditShelfSQL = `
SELECT ` + effectColumns + `
FROM reconciler.effects e
WHERE e.tenant = $1 AND e.source = $2 AND e.created_at >= $3 AND e.created_at < $4 AND e.owner IS NULL
	AND (e.created_at, e.system, e.account, e.mode, e.id) > ($5::timestamptz, $6::text, $7::text, $8::text, $9::text)
ORDER BY e.created_at, e.system, e.account, e.mode, e.id
LIMIT $10`

// AuditShelf walks through the effects of a window that belong to nobody. It ends when
// fewer than limit are given.
func (l *Ledger) AuditShelf(ctx context.Context, s AuditScope, after AuditPlace, limit int) ([]recon.Effect, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := l.pool.Query(ctx, auditShelfSQL, l.walk(s, after, limit)...)
	if err != nil {
		return nil, l.fault("read the effects of a window that belong to nobody", err)
	}
	effects, err := pgx.CollectRows(rows, scanEffect)
	return effects, l.fault("read the effects of a window that belong to nobody", err)
}

// PlaceOf is where a walk goes on after an effect.
func PlaceOf(e recon.Effect) AuditPlace {
	return AuditPlace{At: e.CreatedAt, System: e.System, Account: e.Account, Mode: e.Mode, ID: e.ID}
}

const firstOpenedSQL = `
SELECT o.created_at FROM reconciler.operations o WHERE o.tenant = $1 AND o.source = $2
ORDER BY o.created_at LIMIT 1`

// FirstOpened is when the oldest operation of a source was opened, zero where it has none.
func (l *Ledger) FirstOpened(ctx context.Context, source recon.SourceName) (time.Time, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var at time.Time
	err := l.pool.QueryRow(ctx, firstOpenedSQL, l.tenant, string(source)).Scan(&at)
	if isNoRows(err) {
		return time.Time{}, nil
	}
	return at.UTC(), l.fault("find the oldest operation of "+string(source), err)
}

//go:embed sql/audit_named.sql
var auditNamedSQL string

// Named gives the operations that effects name by reference, group, key, effect id or
// natural reference, at most so many as [Ledger.Cases] takes. Which of them an effect
// belongs to is for matchers to say.
func (l *Ledger) Named(ctx context.Context, effects []recon.Effect) ([]recon.OperationID, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var names [4]map[string]bool
	for i := range names {
		names[i] = map[string]bool{}
	}
	for _, e := range effects {
		for i, name := range []string{strings.TrimSpace(e.Reference), e.Key, e.ID, e.NaturalReference} {
			if name != "" && askable(name) {
				names[i][name] = true
			}
		}
		if e.Lost() { // it bears on the payment that it took back
			for _, parent := range append([]string{e.Parent}, e.OtherParents...) {
				if askable(parent) {
					names[2][parent] = true
				}
			}
		}
		if e.NaturalReference != "" && askable(e.NaturalReference) {
			names[3][norm.NFC.String(e.NaturalReference)] = true
		}
	}
	rows, err := l.pool.Query(ctx, auditNamedSQL, l.tenant, keys(names[0]), keys(names[1]), keys(names[2]), keys(names[3]), maxDue)
	if err != nil {
		return nil, l.fault("find the operations that effects name", err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return typed[recon.OperationID](ids), l.fault("find the operations that effects name", err)
}

const knownEffectsSQL = `
SELECT ` + effectColumns + `
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) AS i (system, account, mode, id)
JOIN reconciler.effects e
	ON e.tenant = $1 AND e.system = i.system AND e.account = i.account AND e.mode = i.mode AND e.id = i.id`

// Known gives those of the effects that are stored, by identity.
func (l *Ledger) Known(ctx context.Context, ids []recon.EffectIdentity) (map[recon.EffectIdentity]recon.Effect, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	out := map[recon.EffectIdentity]recon.Effect{}
	if len(ids) == 0 {
		return out, nil
	}
	c := identityColumns(ids)
	rows, err := l.pool.Query(ctx, knownEffectsSQL, l.tenant, c[0], c[1], c[2], c[3])
	if err != nil {
		return nil, l.fault("read effects", err)
	}
	effects, err := pgx.CollectRows(rows, scanEffect)
	for _, e := range effects {
		out[e.Identity()] = e
	}
	return out, l.fault("read effects", err)
}
