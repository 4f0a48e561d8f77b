package ledger

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// maxGroupOperations bounds the operations of one group. One that has more is no group but a
// constant in the wrong field; its sum is not asked for, and nothing is concluded by it.
const maxGroupOperations = 10_000

// groupSQL reads the operations of groups, at most one more than the bound of each.
const groupSQL = `
SELECT ` + operationColumns + `
FROM (
	SELECT o.operation_id, row_number() OVER (PARTITION BY o."group" ORDER BY o.operation_id) AS place
	FROM reconciler.operations o WHERE o.tenant = $1 AND o."group" = ANY ($2::text[])
) g
JOIN reconciler.operations o ON o.tenant = $1 AND o.operation_id = g.operation_id
WHERE g.place <= $3
ORDER BY o.operation_id`

// addGroups gives each case the other operations of its declared group, with their
// policies: what an effect of the group is worth depends on all of them. No statement is
// made where no case has a group.
func (l *Ledger) addGroups(ctx context.Context, cases []recon.Case) error {
	names := map[string]bool{}
	for _, c := range cases {
		if c.Operation.Group != "" {
			names[c.Operation.Group] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	of, err := l.membersOf(ctx, keys(names))
	if err != nil {
		return err
	}
	for i := range cases {
		op := &cases[i].Operation
		group := of[op.Group]
		if len(group) > maxGroupOperations {
			op.Group = ""
			continue
		}
		for _, m := range group {
			if m.Operation.ID != op.ID {
				cases[i].Group = append(cases[i].Group, m)
			}
		}
	}
	return nil
}

// membersOf reads the operations of groups with their policies, by group.
func (l *Ledger) membersOf(ctx context.Context, groups []string) (map[string][]recon.Case, error) {
	rows, err := l.pool.Query(ctx, groupSQL, l.tenant, groups, maxGroupOperations+1)
	if err != nil {
		return nil, err
	}
	members, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (recon.Case, error) {
		var c recon.Case
		var marks []string
		err := row.Scan(operationFields(&c.Operation, &marks)...)
		c.Operation.Marks = typed[recon.Mark](marks)
		return c, err
	})
	if err != nil {
		return nil, err
	}
	var beside pgx.Batch
	l.addPolicies(&beside, members)
	if err := send(ctx, l.pool, &beside); err != nil {
		return nil, err
	}
	of := map[string][]recon.Case{}
	for _, m := range members {
		of[m.Operation.Group] = append(of[m.Operation.Group], m)
	}
	return of, nil
}

// groupRow is a row of matches whose owner is a group.
type groupRow struct {
	System    string `json:"system"`
	Account   string `json:"account"`
	Mode      string `json:"mode"`
	EffectID  string `json:"effect_id"`
	Group     string `json:"group"`
	Basis     string `json:"basis"`
	Certainty string `json:"certainty"`
	Role      string `json:"role"`
	LookID    string `json:"look_id,omitempty"`
}

// shareRow is a row of allocations.
type shareRow struct {
	System    string `json:"system"`
	Account   string `json:"account"`
	Mode      string `json:"mode"`
	EffectID  string `json:"effect_id"`
	Operation string `json:"operation_id"`
	Amount    int64  `json:"amount"`
}

// linkGroup gives an effect to a group with all its shares, once a batch however many
// of the group's operations are concluded by it.
func (s *shelf) linkGroup(have map[recon.EffectIdentity]held, m recon.Match, looks map[recon.EffectIdentity]*recon.Look) {
	id, g := m.Effect, m.Group
	if s.grouped[id] {
		return
	}
	if s.grouped == nil {
		s.grouped = map[recon.EffectIdentity]bool{}
	}
	s.grouped[id] = true
	if s.rows[id] == nil {
		r := rowOf(have[id].effect)
		s.rows[id] = &r
	}
	s.rows[id].Owner = g.Name
	r := groupRow{
		System: id.System, Account: id.Account, Mode: id.Mode, EffectID: id.ID, Group: g.Name,
		Basis: string(m.Basis), Certainty: string(m.Certainty), Role: string(m.Role),
	}
	if k := looks[id]; k != nil {
		r.LookID = k.ID
	}
	s.groups = append(s.groups, r)
	for i, share := range g.Shares {
		if share > 0 {
			s.shares = append(s.shares, shareRow{
				System: id.System, Account: id.Account, Mode: id.Mode, EffectID: id.ID, Operation: string(g.Operations[i]), Amount: share,
			})
		}
	}
}

//go:embed sql/save_groups.sql
var saveGroupsSQL string

// offSQL counts the effects whose shares do not add up to their amount.
const offSQL = `
SELECT count(*) FROM (
	SELECT a.system, a.account, a.mode, a.effect_id, sum(a.amount) AS amount
	FROM json_to_recordset($2::json) AS r (system text, account text, mode text, effect_id text)
	JOIN reconciler.allocations a ON a.tenant = $1 AND a.system = r.system AND a.account = r.account
		AND a.mode = r.mode AND a.effect_id = r.effect_id
	GROUP BY a.system, a.account, a.mode, a.effect_id
) a
JOIN reconciler.effects e ON e.tenant = $1 AND e.system = a.system AND e.account = a.account AND e.mode = a.mode AND e.id = a.effect_id
WHERE e.amount IS DISTINCT FROM a.amount`

// saveGroups writes the links and shares of groups, under the locks of their effects.
// Shares that do not add up to what the effect is by now make it fail with errRaced: the
// decision was made from another amount, and the batch starts anew.
func (l *Ledger) saveGroups(with *pgx.Batch, b *Batch, s shelf) error {
	if len(s.groups) == 0 {
		return nil
	}
	groups, err := encode(s.groups)
	if err != nil {
		return err
	}
	shares, err := encode(emptyList(s.shares))
	if err != nil {
		return err
	}
	with.Queue(saveGroupsSQL, l.tenant, stored(b.Now), groups, shares).QueryRow(func(row pgx.Row) error {
		var linked int
		if err := row.Scan(&linked); err != nil {
			return err
		}
		if linked != len(s.groups) {
			return errRaced
		}
		return nil
	})
	with.Queue(offSQL, l.tenant, groups).QueryRow(func(row pgx.Row) error {
		var off int
		if err := row.Scan(&off); err != nil {
			return err
		}
		if off > 0 {
			return fmt.Errorf("the shares of %d effects do not add up to their amounts: %w", off, errRaced)
		}
		return nil
	})
	return nil
}

const sharesSQL = `
SELECT a.system, a.account, a.mode, a.effect_id, a.amount FROM reconciler.allocations a
WHERE a.tenant = $1 AND a.operation_id = $2`

// scanShares gives what of its group's effects is the operation's.
func scanShares(rows pgx.Rows) (map[recon.EffectIdentity]int64, error) {
	shares := map[recon.EffectIdentity]int64{}
	var id recon.EffectIdentity
	var minor int64
	_, err := pgx.ForEachRow(rows, []any{&id.System, &id.Account, &id.Mode, &id.ID, &minor}, func() error {
		shares[id] = minor
		return nil
	})
	return shares, err
}
