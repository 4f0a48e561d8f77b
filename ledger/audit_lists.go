package ledger

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// ListState is how far one list of a source was read by audits.
type ListState struct {
	Kind, Account, Mode string
	// CompleteTo: everything created before it was listed, without a gap since the first
	// audit. Zero: never.
	CompleteTo time.Time
	// Window is the list under way, zero when none is. Cursor is where it goes on, empty
	// at its start, and BeganAt when its first page was asked for.
	Window  recon.Window
	Cursor  string
	BeganAt time.Time
}

const listStatesSQL = `
SELECT a.kind, a.account, a.mode, a.complete_to, a.window_from, a.window_to, a.cursor, a.began_at
FROM reconciler.audit_lists a
WHERE a.tenant = $1 AND a.source = $2
ORDER BY a.kind, a.account, a.mode`

// ListStates gives how far the lists of a source were read; those never begun are left
// out.
func (l *Ledger) ListStates(ctx context.Context, source recon.SourceName) ([]ListState, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := l.pool.Query(ctx, listStatesSQL, l.tenant, string(source))
	if err != nil {
		return nil, l.fault("read how far "+string(source)+" was listed", err)
	}
	states, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (ListState, error) {
		var s ListState
		return s, row.Scan(&s.Kind, &s.Account, &s.Mode, instant(&s.CompleteTo), instant(&s.Window.From), instant(&s.Window.To),
			text(&s.Cursor), instant(&s.BeganAt))
	})
	return states, l.fault("read how far "+string(source)+" was listed", err)
}

const saveListSQL = `
INSERT INTO reconciler.audit_lists (tenant, source, kind, account, mode, complete_to, window_from, window_to, cursor, began_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, nullif($9::text, ''), $10)
ON CONFLICT (tenant, source, kind, account, mode) DO UPDATE
	SET complete_to = excluded.complete_to, window_from = excluded.window_from, window_to = excluded.window_to,
		cursor = excluded.cursor, began_at = excluded.began_at`

// saveList writes how far a list was read, together with what its page showed.
func (l *Ledger) saveList(with *pgx.Batch, source recon.SourceName, s *ListState) {
	if s == nil {
		return
	}
	with.Queue(saveListSQL, l.tenant, string(source), s.Kind, s.Account, s.Mode, orNull(s.CompleteTo),
		orNull(s.Window.From), orNull(s.Window.To), s.Cursor, orNull(s.BeganAt))
}
