package ledger

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// maxDue bounds one call, whatever the caller asks for: its cases are in memory at
// once.
const maxDue = 10_000

// candidatesPerOperation bounds the unowned effects that merely look alike. More of
// them say no more to anybody, and none of them closes anything.
const candidatesPerOperation = 20

const checkColumns = `c.next_check, c.looks, c.blinds, c.rung, c.absent_looks, c.absent_first, c.absent_last, c.absent_look_ids, c.failures`

func checkFields(k *recon.Check) []any {
	return []any{instant(&k.Next), number(&k.Looks), number(&k.Blinds), number(&k.Rung), number(&k.Absence.Looks),
		instant(&k.Absence.First), instant(&k.Absence.Last), &k.Absence.LookIDs, number(&k.Failures)}
}

// The due ones come from a partial index in the order of their next check, so stuck
// operations move to the back with every look and never hide new ones, and the cost
// follows what is due. Their rows are then read by primary key.
const dueOpenSQL = `
WITH due AS MATERIALIZED (
	SELECT c.operation_id, ` + checkColumns + `
	FROM reconciler.checks c
	WHERE c.tenant = $1 AND c.source = $2 AND NOT c.closed AND c.next_check <= $3
	ORDER BY c.next_check, c.operation_id
	LIMIT $4
)` + dueRowsSQL

const dueClosedSQL = `
WITH due AS MATERIALIZED (
	SELECT c.operation_id, ` + checkColumns + `
	FROM reconciler.checks c
	WHERE c.tenant = $1 AND c.source = $2 AND c.closed AND c.next_check IS NOT NULL AND c.next_check <= $3
	ORDER BY c.next_check, c.operation_id
	LIMIT $4
)` + dueRowsSQL

const dueRowsSQL = `
SELECT ` + operationColumns + `, ` + checkColumns + `, late.answers
FROM due c
JOIN reconciler.operations o ON o.tenant = $1 AND o.operation_id = c.operation_id` + lateJoin + `
ORDER BY c.next_check, c.operation_id`

const casesSQL = `
SELECT ` + operationColumns + `, ` + checkColumns + `, late.answers
FROM reconciler.operations o
LEFT JOIN reconciler.checks c ON c.tenant = $1 AND c.operation_id = o.operation_id` + lateJoin + `
WHERE o.tenant = $1 AND o.operation_id = ANY ($2::text[])
ORDER BY o.operation_id`

// Due gives the operations whose next check is at or before now, earliest first, at
// most limit, each with its policy, plan, open findings and stored effects: its own,
// and those without owner that name it or have its parent, amount and currency.
// Sheet, Matches and Looks are left zero. The number of round trips does not
// depend on limit: one when nothing is due, else two, two more where operations of a group
// are among them, and one where something may have taken their effects back.
func (l *Ledger) Due(ctx context.Context, s Scope, now time.Time, limit int) ([]recon.Case, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	sql := dueOpenSQL
	if s.Ladder == ClosedOperations {
		sql = dueClosedSQL
	}
	cases, err := l.cases(ctx, sql, l.tenant, string(s.Source), stored(now), min(max(limit, 0), maxDue))
	return cases, l.fault("read what is due at "+string(s.Source), err)
}

// Cases gives the same for operations by id, due or not; unknown ids are left out.
func (l *Ledger) Cases(ctx context.Context, ids []recon.OperationID) ([]recon.Case, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if len(ids) > maxDue {
		return nil, &UsageError{fmt.Sprintf("ledger: %d operations at once, at most %d", len(ids), maxDue)}
	}
	cases, err := l.cases(ctx, casesSQL, l.tenant, texts(ids))
	return cases, l.fault("read operations", err)
}

// cases reads operations and everything stored that a judgement may rest on.
func (l *Ledger) cases(ctx context.Context, sql string, args ...any) ([]recon.Case, error) {
	rows, err := l.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	cases, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (recon.Case, error) { return scanCase(row) })
	if err != nil || len(cases) == 0 {
		return nil, err
	}
	if err := l.addGroups(ctx, cases); err != nil {
		return nil, err
	}
	var beside pgx.Batch
	l.addPolicies(&beside, cases)
	l.addEffects(&beside, cases)
	l.addFindings(&beside, cases)
	if err := send(ctx, l.pool, &beside); err != nil {
		return nil, err
	}
	return cases, l.addRepaid(ctx, cases)
}

// scanCase reads what casesSQL and its siblings select: the operation, its plan and the
// answers that came late.
func scanCase(row pgx.Row) (recon.Case, error) {
	var c recon.Case
	var marks []string
	var late []byte
	fields := append(operationFields(&c.Operation, &marks), checkFields(&c.Check)...)
	if err := row.Scan(append(fields, &late)...); err != nil {
		return c, err
	}
	c.Operation.Marks = typed[recon.Mark](marks)
	var err error
	c.Late, err = lateAnswers(late)
	return c, err
}

// policiesSQL gives the active version of each action first, then older ones that
// operations were opened under.
const policiesSQL = `
SELECT p.action, p.version, p.active, p.body FROM reconciler.policies p
WHERE p.tenant = $1 AND p.action = ANY ($2::text[]) AND (p.active OR p.version = ANY ($3::int[]))`

type policyKey struct {
	action  string
	version int
}

// addPolicies gives each case the policy in force, or the one it was opened under
// where its action has none any more: what was begun must still end.
func (l *Ledger) addPolicies(with *pgx.Batch, cases []recon.Case) {
	actions, versions := map[string]bool{}, map[int]bool{}
	for _, c := range cases {
		actions[c.Operation.Action], versions[c.Operation.PolicyVersion] = true, true
	}
	with.Queue(policiesSQL, l.tenant, keys(actions), keys(versions)).Query(func(rows pgx.Rows) error {
		active, all, err := scanPolicies(rows)
		if err != nil {
			return err
		}
		for i := range cases {
			o := cases[i].Operation
			p, ok := active[o.Action]
			if !ok {
				p, ok = all[policyKey{o.Action, o.PolicyVersion}]
			}
			if !ok {
				p = recon.DefaultPolicy()
				p.Action, p.Source = o.Action, o.Source
			}
			cases[i].Policy = p
		}
		return nil
	})
}

// policiesIn reads policies: those in force by action, and all that were asked for.
func (l *Ledger) policiesIn(ctx context.Context, q querier, actions []string, versions []int) (active map[string]recon.Policy, all map[policyKey]recon.Policy, err error) {
	rows, err := q.Query(ctx, policiesSQL, l.tenant, actions, versions)
	if err != nil {
		return nil, nil, err
	}
	return scanPolicies(rows)
}

// scanPolicies reads what policiesSQL selects.
func scanPolicies(rows pgx.Rows) (active map[string]recon.Policy, all map[policyKey]recon.Policy, err error) {
	active, all = map[string]recon.Policy{}, map[policyKey]recon.Policy{}
	var k policyKey
	var inForce bool
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&k.action, &k.version, &inForce, &body}, func() error {
		p := recon.DefaultPolicy()
		if err := json.Unmarshal(body, &p); err != nil {
			return &UsageError{fmt.Sprintf("policy %s version %d in the database cannot be read: %v; run `reconciler policy apply`", k.action, k.version, err)}
		}
		p.Action, p.Version = k.action, k.version
		all[k] = p
		if inForce {
			active[k.action] = p
		}
		return nil
	})
	return active, all, err
}

func keys[K comparable, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	return out
}

//go:embed sql/effects_of.sql
var effectsOfSQL string

// addEffects gives each case the stored effects that belong or may belong to it.
func (l *Ledger) addEffects(with *pgx.Batch, cases []recon.Case) {
	at := make(map[string]int, len(cases))
	n := len(cases)
	ids, keys, effects, parents := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	currencies, groups, amounts := make([]string, n), make([]string, n), make([]int64, n)
	for i, c := range cases {
		o := c.Operation
		at[string(o.ID)] = i
		ids[i], keys[i], effects[i], parents[i] = string(o.ID), o.Key, o.EffectID, o.Parent
		currencies[i], groups[i], amounts[i] = o.Money.Currency, o.Group, o.Money.Minor
	}
	type seenBy struct {
		op int
		id recon.EffectIdentity
	}
	seen := map[seenBy]bool{}
	var op string
	add := func(row pgx.CollectableRow) (struct{}, error) {
		var e recon.Effect
		if err := row.Scan(append([]any{&op}, effectFields(&e)...)...); err != nil {
			return struct{}{}, err
		}
		e = normal(e)
		i := at[op]
		if k := (seenBy{i, e.Identity()}); !seen[k] {
			seen[k] = true
			cases[i].Effects = append(cases[i].Effects, e)
		}
		return struct{}{}, nil
	}
	with.Queue(effectsOfSQL, l.tenant, ids, keys, effects, groups, parents, amounts, currencies, candidatesPerOperation).Query(
		func(rows pgx.Rows) error {
			_, err := pgx.CollectRows(rows, add)
			return err
		})
}

const findingColumns = `f.finding_id, f.kind, f.certainty, f.source, f.operation_ids, f.effects, f.observed, f.reason,
	f.amount, f.currency, f.state, f.opened_at, coalesce(f.ended_at, f.settled_at), f.version`

func scanFinding(row pgx.CollectableRow, more ...any) (recon.Finding, error) {
	var f recon.Finding
	var ops []string
	var effects, observed []byte
	err := row.Scan(append([]any{text(&f.ID), text(&f.Kind), text(&f.Certainty), text(&f.Source), &ops, &effects, &observed,
		text(&f.Reason), number(&f.Money.Minor), text(&f.Money.Currency), text(&f.State), instant(&f.OpenedAt), instant(&f.EndedAt), &f.Version}, more...)...)
	if err != nil {
		return f, err
	}
	f.Operations = typed[recon.OperationID](ops)
	if err := json.Unmarshal(effects, &f.Effects); err != nil {
		return f, fmt.Errorf("finding %s: effects: %w", f.ID, err)
	}
	if err := json.Unmarshal(observed, &f.Observed); err != nil {
		return f, fmt.Errorf("finding %s: observed: %w", f.ID, err)
	}
	return f, nil
}

const standingFindingsSQL = `
SELECT ` + findingColumns + `
FROM reconciler.findings f
WHERE f.tenant = $1 AND f.operation_ids && $2::text[] AND f.state <> 'ended'
	AND (f.state <> 'settled' OR f.settled_as IS DISTINCT FROM 'release')
ORDER BY f.opened_at, f.finding_id`

// addFindings gives each case the findings on it that have not ended, and apart those that
// a person settled: what was accepted is not raised again. One that ended in a release
// may be: what is sent then may come to the same end once more.
func (l *Ledger) addFindings(with *pgx.Batch, cases []recon.Case) {
	at := make(map[recon.OperationID]int, len(cases))
	ids := make([]string, len(cases))
	for i, c := range cases {
		at[c.Operation.ID], ids[i] = i, string(c.Operation.ID)
	}
	with.Queue(standingFindingsSQL, l.tenant, ids).Query(func(rows pgx.Rows) error {
		findings, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (recon.Finding, error) { return scanFinding(row) })
		for _, f := range findings {
			for _, op := range f.Operations {
				i, ok := at[op]
				switch {
				case ok && f.State == recon.FindingSettled:
					cases[i].Settled = append(cases[i].Settled, f)
				case ok:
					cases[i].Findings = append(cases[i].Findings, f)
				}
			}
		}
		return err
	})
}

const ownersSQL = `
SELECT e.system, e.account, e.mode, e.id, e.owner
FROM unnest($2::text[], $3::text[], $4::text[], $5::text[]) AS i (system, account, mode, id)
JOIN reconciler.effects e
	ON e.tenant = $1 AND e.system = i.system AND e.account = i.account AND e.mode = i.mode AND e.id = i.id
WHERE e.owner IS NOT NULL`

// Owners says which operation owns each of the effects. Effects without owner and
// effects not stored are left out.
func (l *Ledger) Owners(ctx context.Context, ids []recon.EffectIdentity) (map[recon.EffectIdentity]string, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	out := map[recon.EffectIdentity]string{}
	if len(ids) == 0 {
		return out, nil
	}
	c := identityColumns(ids)
	rows, err := l.pool.Query(ctx, ownersSQL, l.tenant, c[0], c[1], c[2], c[3])
	if err != nil {
		return nil, l.fault("read the owners of effects", err)
	}
	var id recon.EffectIdentity
	var owner string
	_, err = pgx.ForEachRow(rows, []any{&id.System, &id.Account, &id.Mode, &id.ID, &owner}, func() error {
		out[id] = owner
		return nil
	})
	return out, l.fault("read the owners of effects", err)
}
