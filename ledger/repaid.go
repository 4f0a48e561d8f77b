package ledger

import (
	"context"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// $2 are effects of which there are several, $3 all that can be disputed.
const repaidSQL = `
SELECT ` + effectColumns + `
FROM reconciler.effects e
WHERE e.tenant = $1 AND e.owner IS NULL AND e.parent = ANY ($2::text[]) AND (e.kind = 'refund' OR e.kind LIKE '%reversal')
UNION ALL
SELECT ` + effectColumns + `
FROM reconciler.effects e
WHERE e.tenant = $1 AND e.owner IS NULL AND e.parent = ANY ($3::text[]) AND e.kind = 'dispute' AND e.status = 'failed'
UNION ALL
SELECT ` + effectColumns + `
FROM reconciler.effects e
WHERE e.tenant = $1 AND e.owner IS NULL AND e.other_parents <> '{}' AND e.other_parents && $3::text[]
	AND NOT (e.parent = ANY ($3::text[])) AND e.kind = 'dispute' AND e.status = 'failed'
ORDER BY created_at, id`

// addRepaid gives cases what took some of their effects back and belongs to nobody: of
// several effects the refunds, since a charge that was made twice and refunded once is no
// duplicate any more; of payments the disputes that were lost. No statement is made for
// operations whose effect is a single refund, transfer or payout.
func (l *Ledger) addRepaid(ctx context.Context, cases []recon.Case) error {
	of := map[string][]int{}
	var several, payments []string
	for i, c := range cases {
		own := owned(c)
		for _, e := range repayable(c) {
			of[e.ID] = append(of[e.ID], i)
			if own > 1 && e.Owner != "" {
				several = append(several, e.ID)
			}
			if disputable(e) {
				payments = append(payments, e.ID)
			}
		}
	}
	if len(several) == 0 && len(payments) == 0 {
		return nil
	}
	effects, err := collect(ctx, l.pool, scanEffect, repaidSQL, l.tenant, several, payments)
	if err != nil {
		return err
	}
	for _, e := range effects {
		given := map[int]bool{}
		for _, parent := range append([]string{e.Parent}, e.OtherParents...) {
			for _, i := range of[parent] {
				if !given[i] {
					given[i] = true
					cases[i].Effects = append(cases[i].Effects, e)
				}
			}
		}
	}
	return nil
}

// TakenBack gives the disputes that were lost and hang under payments that a source has
// just shown: they may have been told of before anybody saw the payment. No statement is
// made where there is none among the effects.
func (l *Ledger) TakenBack(ctx context.Context, effects []recon.Effect) ([]recon.Effect, error) {
	var payments []string
	for _, e := range effects {
		if disputable(e) && askable(e.ID) {
			payments = append(payments, e.ID)
		}
	}
	if len(payments) == 0 {
		return nil, nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	lost, err := collect(ctx, l.pool, scanEffect, repaidSQL, l.tenant, []string{}, payments)
	return lost, l.fault("read which payments were taken back", err)
}

func disputable(e recon.Effect) bool { return e.Kind == "charge" || e.Kind == "payment_intent" }

// repayable are the live effects of a case that something else can give or take back, also
// those that are only about to belong to the operation: a dispute may be told of first.
func repayable(c recon.Case) []recon.Effect {
	var list []recon.Effect
	for _, e := range c.Effects {
		if (e.Owner == "" || e.Owner == string(c.Operation.ID)) && e.Status.Live() && e.Kind != "refund" {
			list = append(list, e)
		}
	}
	return list
}

// owned counts those of them that belong to the operation already.
func owned(c recon.Case) int {
	n := 0
	for _, e := range repayable(c) {
		if e.Owner != "" {
			n++
		}
	}
	return n
}
