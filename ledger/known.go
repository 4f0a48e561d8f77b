package ledger

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Every operation has the source of a policy, which may no longer be in force; a source
// that was asked has a state.
const knownSourcesSQL = `
SELECT p.body ->> 'source' FROM reconciler.policies p WHERE p.tenant = $1 AND p.body ->> 'source' IS NOT NULL
UNION
SELECT s.source FROM reconciler.source_state s WHERE s.tenant = $1
ORDER BY 1`

// A source that no action has may deliver events all the same.
const toldOfSQL = `SELECT EXISTS (SELECT FROM reconciler.events e WHERE e.tenant = $1 AND e.source = $2)`

// Knows reports whether the ledger may hold anything of a source, and names the sources of
// which it does.
func (l *Ledger) Knows(ctx context.Context, source recon.SourceName) (bool, []recon.SourceName, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := l.pool.Query(ctx, knownSourcesSQL, l.tenant)
	if err != nil {
		return false, nil, l.fault("list the sources", err)
	}
	known, err := pgx.CollectRows(rows, pgx.RowTo[recon.SourceName])
	if err != nil || slices.Contains(known, source) {
		return err == nil, known, l.fault("list the sources", err)
	}
	var told bool
	err = l.pool.QueryRow(ctx, toldOfSQL, l.tenant, string(source)).Scan(&told)
	return told, known, l.fault("list the sources", err)
}

// Every operation has the action of a policy, which may no longer be in force.
const knownActionsSQL = `SELECT DISTINCT p.action FROM reconciler.policies p WHERE p.tenant = $1 ORDER BY 1`

// Actions names the actions of which the ledger may hold an operation.
func (l *Ledger) Actions(ctx context.Context) ([]string, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := l.pool.Query(ctx, knownActionsSQL, l.tenant)
	if err != nil {
		return nil, l.fault("list the actions", err)
	}
	known, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return known, l.fault("list the actions", err)
}
