package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Only ranges that overlap the window, the newest answer for each.
const coverageSQL = `
SELECT c.kind, c.account, c.mode, c.window_from, c.window_to, max(c.at)
FROM reconciler.coverage c
WHERE c.tenant = $1 AND c.source = $2 AND c.window_from < $4 AND c.window_to > $3 AND c.at >= $3
GROUP BY c.kind, c.account, c.mode, c.window_from, c.window_to
ORDER BY c.window_to - c.window_from DESC, max(c.at) DESC
LIMIT $5`

// maxCoverage bounds the standing ranges that an audit holds; the widest say most.
const maxCoverage = 1000

// Coverage gives the ranges of a source that were seen completely, by lists or files, and
// that touch the window; the widest ones where there are many.
func (l *Ledger) Coverage(ctx context.Context, s AuditScope) ([]recon.Coverage, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := l.pool.Query(ctx, coverageSQL, l.tenant, string(s.Source), stored(s.Window.From), stored(s.Window.To), maxCoverage)
	if err != nil {
		return nil, l.fault("read what of "+string(s.Source)+" was seen", err)
	}
	ranges, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (recon.Coverage, error) {
		c := recon.Coverage{Source: s.Source}
		return c, row.Scan(&c.Kind, &c.Account, &c.Mode, instant(&c.Window.From), instant(&c.Window.To), instant(&c.At))
	})
	return ranges, l.fault("read what of "+string(s.Source)+" was seen", err)
}
