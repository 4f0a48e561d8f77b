package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const lateSQL = `
SELECT j.operation_id, b.body ->> 'class', b.body ->> 'effect_id', b.body ->> 'error_code', b.body ->> 'request_id'
FROM reconciler.journal j, LATERAL (SELECT j.body::jsonb AS body) b
WHERE j.tenant = $1 AND j.operation_id = ANY ($2::text[]) AND j.kind = 'attempt_finished'
	AND b.body ->> 'applied' = 'false'
ORDER BY j.operation_id, j.seq`

// addLate gives each case the answers that came when their lease was over.
func (l *Ledger) addLate(ctx context.Context, cases []recon.Case) error {
	at := make(map[string]int, len(cases))
	var sent []string
	for i, c := range cases {
		if c.Operation.Attempts > 0 {
			at[string(c.Operation.ID)] = i
			sent = append(sent, string(c.Operation.ID))
		}
	}
	if len(sent) == 0 {
		return nil
	}
	rows, err := l.pool.Query(ctx, lateSQL, l.tenant, sent)
	if err != nil {
		return err
	}
	var id string
	var a recon.AttemptReport
	_, err = pgx.ForEachRow(rows, []any{&id, text(&a.Class), text(&a.EffectID), text(&a.ErrorCode), text(&a.RequestID)}, func() error {
		cases[at[id]].Late = append(cases[at[id]].Late, a)
		return nil
	})
	return err
}
