package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const repaidSQL = `
SELECT ` + effectColumns + `
FROM reconciler.effects e
WHERE e.tenant = $1 AND e.owner IS NULL AND e.parent = ANY ($2::text[]) AND (e.kind = 'refund' OR e.kind LIKE '%reversal')
ORDER BY e.created_at, e.id`

// addRepaid gives cases of which several effects are stored what gave some of them back
// and belongs to nobody: a charge that was made twice and refunded once is no duplicate
// any more. No statement is made where no case has several.
func (l *Ledger) addRepaid(ctx context.Context, cases []recon.Case) error {
	of := map[string][]int{}
	for i, c := range cases {
		var own []string
		for _, e := range c.Effects {
			if e.Owner == string(c.Operation.ID) && e.Status.Live() && e.Kind != "refund" {
				own = append(own, e.ID)
			}
		}
		if len(own) > 1 {
			for _, id := range own {
				of[id] = append(of[id], i)
			}
		}
	}
	if len(of) == 0 {
		return nil
	}
	parents := make([]string, 0, len(of))
	for id := range of {
		parents = append(parents, id)
	}
	rows, err := l.pool.Query(ctx, repaidSQL, l.tenant, parents)
	if err != nil {
		return err
	}
	effects, err := pgx.CollectRows(rows, scanEffect)
	if err != nil {
		return err
	}
	for _, e := range effects {
		for _, i := range of[e.Parent] {
			cases[i].Effects = append(cases[i].Effects, e)
		}
	}
	return nil
}
