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

const journalSQL = `
SELECT j.seq, j.at, j.kind, j.body FROM reconciler.journal j
WHERE j.tenant = $1 AND j.operation_id = $2
ORDER BY j.seq`

// keptSQL gives whether the request is still kept, and the policy that the operation was
// opened under, if that version is there.
const keptSQL = `
SELECT o.request IS NOT NULL, p.body
FROM reconciler.operations o
LEFT JOIN reconciler.policies p ON p.tenant = $1 AND p.action = o.action AND p.version = o.policy_version
WHERE o.tenant = $1 AND o.operation_id = $2`

const ownedSQL = `
SELECT ` + effectColumns + `
FROM reconciler.effects e
WHERE e.tenant = $1 AND e.owner = ANY (ARRAY[$2,
	(SELECT o."group" FROM reconciler.operations o WHERE o.tenant = $1 AND o.operation_id = $2)])
ORDER BY e.created_at, e.id`

const findingsOfSQL = `
SELECT ` + findingColumns + `
FROM reconciler.findings f
WHERE f.tenant = $1 AND f.operation_ids && ARRAY[$2::text]
ORDER BY f.opened_at, f.finding_id`

const looksSQL = `
SELECT k.look_id, k.source, k.method, k.outcome, k.kind, k.account, k.mode, k.effect_id, k.key, k.reference, k.parent,
	k.window_from, k.window_to, k.at, k.complete, k.calls, k.request_id, k.reply_hash, k.fault, k.detail, k.found
FROM reconciler.looks k
WHERE k.tenant = $1 AND k.look_id = ANY ($2::text[])
ORDER BY k.at, k.look_id`

// Story tells everything about one operation (*NotFoundError), as of one moment.
func (l *Ledger) Story(ctx context.Context, id recon.OperationID) (recon.Story, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	stories := []recon.Story{{}}
	err := l.atOnce(ctx, func(tx pgx.Tx) error {
		return l.tellStories(ctx, tx, []recon.OperationID{id}, stories, &pgx.Batch{})
	})
	if err != nil {
		return recon.Story{}, l.fault("read operation "+string(id), err)
	}
	return stories[0], nil
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

// tellStories reads the stories of operations in two round trips, however many there are
// and whatever they hold; what else is to be read in the first one is in the batch.
func (l *Ledger) tellStories(ctx context.Context, tx pgx.Tx, ids []recon.OperationID, stories []recon.Story, with *pgx.Batch) error {
	for i, id := range ids {
		l.askStory(with, id, &stories[i])
	}
	if err := tx.SendBatch(ctx, with).Close(); err != nil {
		return err
	}
	var named pgx.Batch // what only the stories name
	for i := range stories {
		l.askNamed(&named, &stories[i])
	}
	if named.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, &named).Close()
}

// askStory asks for everything that the operation's id alone leads to.
func (l *Ledger) askStory(b *pgx.Batch, id recon.OperationID, s *recon.Story) {
	b.Queue(casesSQL, l.tenant, []string{string(id)}).QueryRow(func(row pgx.Row) error {
		c, err := scanCase(row)
		if isNoRows(err) {
			return &NotFoundError{What: "operation", ID: string(id)}
		}
		s.Operation, s.Check = c.Operation, c.Check
		return err
	})
	b.Queue(keptSQL, l.tenant, string(id)).QueryRow(func(row pgx.Row) (err error) {
		var policy []byte
		if err = row.Scan(&s.Kept, &policy); err == nil {
			s.Policy, err = openedUnder(s.Operation, policy)
		}
		return err
	})
	findings := func(row pgx.CollectableRow) (recon.Finding, error) { return scanFinding(row) }
	b.Queue(journalSQL, l.tenant, string(id)).Query(fills(&s.Journal, scanEntry))
	b.Queue(ownedSQL, l.tenant, string(id)).Query(fills(&s.Effects, scanEffect))
	b.Queue(findingsOfSQL, l.tenant, string(id)).Query(fills(&s.Findings, findings))
}

// askNamed asks for what the story names: its looks, and the shares of its group.
func (l *Ledger) askNamed(b *pgx.Batch, s *recon.Story) {
	b.Queue(looksSQL, l.tenant, lookIDs(s)).Query(fills(&s.Looks, scanLook))
	if s.Operation.Group != "" {
		b.Queue(sharesSQL, l.tenant, string(s.Operation.ID)).Query(func(rows pgx.Rows) (err error) {
			s.Shares, err = scanShares(rows)
			return err
		})
	}
}

// fills gives what fills a list with the rows of a batch's statement.
func fills[T any](list *[]T, scan func(pgx.CollectableRow) (T, error)) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		*list, err = pgx.CollectRows(rows, scan)
		return err
	}
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
