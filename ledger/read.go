package ledger

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	defaultList = 100
	maxList     = 10_000
)

func listLimit(n int) int {
	if n <= 0 {
		return defaultList
	}
	return min(n, maxList)
}

// An empty list or text does not narrow. The planner sees the values, so each
// combination gets a plan of its own.
const operationsSQL = `
SELECT ` + operationColumns + `
FROM reconciler.operations o
WHERE o.tenant = $1
	AND ($2::text = '' OR o.source = $2)
	AND ($3::text = '' OR o.action = $3)
	AND (cardinality($4::text[]) = 0 OR o.state = ANY ($4))
	AND ($5::text = '' OR o."case" = $5)
	AND ($6::text = '' OR o.key = $6)
	AND ($7::text = '' OR o.reference = $7)
ORDER BY o.created_at DESC, o.operation_id DESC
LIMIT $8`

// Operations lists operations, newest first.
func (l *Ledger) Operations(ctx context.Context, f OperationFilter) ([]recon.Operation, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := l.pool.Query(ctx, operationsSQL, l.tenant, string(f.Source), f.Action, texts(f.States), f.Case, f.Key,
		f.Reference, listLimit(f.Limit))
	if err != nil {
		return nil, l.fault("list operations", err)
	}
	ops, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (recon.Operation, error) {
		var o recon.Operation
		var marks []string
		err := row.Scan(operationFields(&o, &marks)...)
		o.Marks = typed[recon.Mark](marks)
		return o, err
	})
	return ops, l.fault("list operations", err)
}

// Statements about several operations begin with the id of the one that a row is of. LATERAL
// makes each an index probe, also where the tables have no statistics yet. The list of ids is
// a SELECT of its own, so that a plan does not depend on how many they are and can be kept.
const journalSQL = `
SELECT i.operation_id, j.seq, j.at, j.kind, j.body
FROM unnest((SELECT $2::text[])) AS i (operation_id)
CROSS JOIN LATERAL (
	SELECT j.seq, j.at, j.kind, j.body FROM reconciler.journal j
	WHERE j.tenant = $1 AND j.operation_id = i.operation_id
	ORDER BY j.seq
) j
ORDER BY i.operation_id, j.seq`

// keptSQL gives whether the request is still kept, and the policy that the operation was
// opened under, if that version is there.
const keptSQL = `
SELECT o.operation_id, o.request IS NOT NULL, p.body
FROM reconciler.operations o
LEFT JOIN reconciler.policies p ON p.tenant = $1 AND p.action = o.action AND p.version = o.policy_version
WHERE o.tenant = $1 AND o.operation_id = ANY ((SELECT $2::text[])::text[])`

const ownedSQL = `
SELECT o.operation_id, ` + effectColumns + `
FROM reconciler.operations o
CROSS JOIN LATERAL (
	SELECT e.* FROM reconciler.effects e WHERE e.tenant = $1 AND e.owner = o.operation_id
	UNION ALL
	SELECT e.* FROM reconciler.effects e WHERE e.tenant = $1 AND e.owner = o."group"
) e
WHERE o.tenant = $1 AND o.operation_id = ANY ((SELECT $2::text[])::text[])
ORDER BY o.operation_id, e.created_at, e.id`

const findingsOfSQL = `
SELECT ` + findingColumns + `
FROM reconciler.findings f
WHERE f.tenant = $1 AND f.operation_ids && $2::text[]
ORDER BY f.opened_at, f.finding_id`

const looksSQL = `
SELECT k.look_id, k.source, k.method, k.outcome, k.kind, k.account, k.mode, k.effect_id, k.key, k.reference, k.parent,
	k.window_from, k.window_to, k.at, k.complete, k.calls, k.request_id, k.reply_hash, k.fault, k.detail, k.found
FROM reconciler.looks k
WHERE k.tenant = $1 AND k.look_id = ANY ((SELECT $2::text[])::text[])
ORDER BY k.at, k.look_id`

// Story tells everything about one operation (*NotFoundError), as of one moment.
func (l *Ledger) Story(ctx context.Context, id recon.OperationID) (recon.Story, error) {
	told, err := l.Stories(ctx, []recon.OperationID{id})
	if err != nil {
		return recon.Story{}, err
	}
	return told[0], nil
}

// Stories tells everything about operations (*NotFoundError), in their order and as of one
// moment. Some hundreds at once cost little more than one.
func (l *Ledger) Stories(ctx context.Context, ids []recon.OperationID) ([]recon.Story, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var told stories
	err := l.atOnce(ctx, func(tx pgx.Tx) (err error) {
		told, err = l.tellStories(ctx, tx, ids, &pgx.Batch{})
		return err
	})
	if err != nil {
		what := fmt.Sprintf("read %d operations", len(ids))
		if len(ids) == 1 {
			what = "read operation " + string(ids[0])
		}
		return nil, l.fault(what, err)
	}
	list := make([]recon.Story, 0, len(ids))
	for _, id := range ids {
		list = append(list, *told[id])
	}
	return list, nil
}

// atOnce lets f read as of one moment.
func (l *Ledger) atOnce(ctx context.Context, f func(pgx.Tx) error) error {
	tx, err := l.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it only read
	return f(tx)
}

// stories are those of operations, by id.
type stories map[recon.OperationID]*recon.Story

// tellStories reads the stories of operations (*NotFoundError) in two round trips, by the
// same statements however many there are and whatever they hold; what else is to be read in
// the first one is in the batch.
func (l *Ledger) tellStories(ctx context.Context, tx pgx.Tx, ids []recon.OperationID, with *pgx.Batch) (stories, error) {
	told := make(stories, len(ids))
	for _, id := range ids {
		told[id] = &recon.Story{}
	}
	if len(ids) > 0 {
		l.askStories(with, ids, told)
	}
	if err := tx.SendBatch(ctx, with).Close(); err != nil {
		return nil, err
	}
	for id, s := range told {
		if s.Operation.ID == "" {
			return nil, &NotFoundError{What: "operation", ID: string(id)}
		}
	}
	var named pgx.Batch // what only the stories name
	l.askNamed(&named, told)
	if named.Len() == 0 {
		return told, nil
	}
	return told, tx.SendBatch(ctx, &named).Close()
}

// askStories asks for everything that the operations' ids alone lead to.
func (l *Ledger) askStories(b *pgx.Batch, ids []recon.OperationID, told stories) {
	wanted := texts(ids)
	b.Queue(casesSQL, l.tenant, wanted).Query(each(func(row pgx.CollectableRow) error {
		c, err := scanCase(row)
		if s := told[c.Operation.ID]; err == nil {
			s.Operation, s.Check = c.Operation, c.Check
		}
		return err
	}))
	b.Queue(keptSQL, l.tenant, wanted).Query(each(func(row pgx.CollectableRow) error {
		var id recon.OperationID
		var kept bool
		var policy []byte
		err := row.Scan(text(&id), &kept, &policy)
		if s := told[id]; err == nil {
			s.Kept = kept
			s.Policy, err = openedUnder(s.Operation, policy)
		}
		return err
	}))
	b.Queue(journalSQL, l.tenant, wanted).Query(shares(scanEntry, func(id string) *[]recon.Entry { return &told[recon.OperationID(id)].Journal }))
	b.Queue(ownedSQL, l.tenant, wanted).Query(shares(scanEffect, func(id string) *[]recon.Effect { return &told[recon.OperationID(id)].Effects }))
	b.Queue(findingsOfSQL, l.tenant, wanted).Query(each(func(row pgx.CollectableRow) error {
		f, err := scanFinding(row)
		for _, id := range f.Operations {
			if s := told[id]; s != nil {
				s.Findings = append(s.Findings, f)
			}
		}
		return err
	}))
}

// askNamed asks for what stories name: their looks, and the shares of their groups.
func (l *Ledger) askNamed(b *pgx.Batch, told stories) {
	rest := map[string][]*recon.Story{} // by the look that they rest on
	for _, s := range told {
		for _, look := range lookIDs(s) {
			rest[look] = append(rest[look], s)
		}
		if s.Operation.Group != "" {
			b.Queue(sharesSQL, l.tenant, string(s.Operation.ID)).Query(func(rows pgx.Rows) (err error) {
				s.Shares, err = scanShares(rows)
				return err
			})
		}
	}
	if len(rest) == 0 {
		return
	}
	b.Queue(looksSQL, l.tenant, keys(rest)).Query(each(func(row pgx.CollectableRow) error {
		k, err := scanLook(row)
		for _, s := range rest[k.ID] {
			s.Looks = append(s.Looks, k)
		}
		return err
	}))
}

// each gives what takes the rows of a batch's statement one by one.
func each(take func(pgx.CollectableRow) error) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		_, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, take(row) })
		return err
	}
}

// fills gives what fills a list with the rows of a batch's statement.
func fills[T any](list *[]T, scan func(pgx.CollectableRow) (T, error)) func(pgx.Rows) error {
	return each(func(row pgx.CollectableRow) error {
		v, err := scan(row)
		*list = append(*list, v)
		return err
	})
}

// shares gives what shares out the rows of a batch's statement, each of which begins with
// the id of what it is of, among the lists of these.
func shares[T any](scan func(pgx.CollectableRow) (T, error), list func(id string) *[]T) func(pgx.Rows) error {
	return each(func(row pgx.CollectableRow) error {
		r := rowOfOne{CollectableRow: row}
		v, err := scan(&r)
		if err == nil {
			to := list(r.of)
			*to = append(*to, v)
		}
		return err
	})
}

// rowOfOne is a row that begins with the id of what it is of.
type rowOfOne struct {
	pgx.CollectableRow
	of string
}

// Scan reads what comes behind the id.
func (r *rowOfOne) Scan(fields ...any) error {
	return r.CollectableRow.Scan(append([]any{&r.of}, fields...)...)
}

// openedUnder gives the policy that an operation was opened under. Nil is a version that
// the database does not have.
func openedUnder(o recon.Operation, body []byte) (recon.Policy, error) {
	p := recon.DefaultPolicy()
	p.Action, p.Source = o.Action, o.Source
	if body == nil {
		return p, nil
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return p, &UsageError{fmt.Sprintf("policy %s version %d in the database cannot be read: %v", o.Action, o.PolicyVersion, err)}
	}
	p.Action, p.Version = o.Action, o.PolicyVersion
	return p, nil
}

// lookIDs lists the looks that the journal and the plan name.
func lookIDs(s *recon.Story) []string {
	seen := map[string]bool{}
	ids := []string{}
	add := func(list []string) {
		for _, id := range list {
			if !seen[id] {
				seen[id] = true
				ids = append(ids, id)
			}
		}
	}
	for _, e := range s.Journal {
		var body struct {
			LookIDs []string `json:"look_ids"`
		}
		// A body that is no object of ours names no looks; the story shows it as it is.
		if json.Unmarshal(e.Body, &body) == nil {
			add(body.LookIDs)
		}
	}
	add(s.Check.Absence.LookIDs)
	return ids
}

func collect[T any](ctx context.Context, q querier, scan func(pgx.CollectableRow) (T, error), sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

func scanEntry(row pgx.CollectableRow) (recon.Entry, error) {
	var e recon.Entry
	var body string
	err := row.Scan(&e.Seq, instant(&e.At), text(&e.Kind), &body)
	e.Body = json.RawMessage(body)
	return e, err
}

func scanEffect(row pgx.CollectableRow) (recon.Effect, error) {
	var e recon.Effect
	err := row.Scan(effectFields(&e)...)
	return normal(e), err
}

func scanLook(row pgx.CollectableRow) (recon.Look, error) {
	var k recon.Look
	var found []byte
	err := row.Scan(text(&k.ID), text(&k.Source), text(&k.Method), text(&k.Outcome), text(&k.Kind), text(&k.Account), text(&k.Mode),
		text(&k.EffectID), text(&k.Key), text(&k.Reference), text(&k.Parent), instant(&k.Window.From), instant(&k.Window.To),
		instant(&k.At), &k.Complete, number(&k.Calls), text(&k.RequestID), &k.ReplyHash, text(&k.Fault), text(&k.Detail), &found)
	if err != nil {
		return k, err
	}
	var items []foundItem
	if err := json.Unmarshal(found, &items); err != nil {
		return k, fmt.Errorf("look %s: %w", k.ID, err)
	}
	for _, f := range items {
		k.Found = append(k.Found, recon.EffectIdentity(f))
	}
	return k, nil
}
