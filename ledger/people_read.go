package ledger

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// FindingStory is one finding with everything that a person needs to decide on it.
type FindingStory struct {
	FindingRow
	Effects []recon.Effect    // those that it names, as they are stored
	Stories []recon.Story     // of its operations, the first maxStories of them
	Acts    []recon.PersonAct // who did what, oldest first
}

// maxStories bounds what is read for one finding; its list of ids is whole.
const maxStories = 10

const listFindingColumns = findingColumns + `, f.ended_at, f.settled_at, f.settled_by, f.settled_as, f.ending, f.level, f.assignee,
	f.acknowledged_until, f.snoozed_until, f.proposal`

const findingsSQL = `
SELECT ` + listFindingColumns + `
FROM reconciler.findings f
WHERE f.tenant = $1
	AND ($2::text = '' OR f.source = $2)
	AND (cardinality($3::text[]) = 0 OR f.kind = ANY ($3))
	AND (cardinality($4::text[]) = 0 OR f.state = ANY ($4))
	AND ($5::text = '' OR f.operation_ids @> ARRAY[$5::text])
ORDER BY f.opened_at DESC, f.finding_id DESC
LIMIT $6`

// Findings lists findings, newest first.
func (l *Ledger) Findings(ctx context.Context, f FindingFilter) ([]FindingRow, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := collect(ctx, l.pool, scanFindingRow, findingsSQL, l.tenant, string(f.Source), texts(f.Kinds), texts(f.States),
		string(f.Operation), listLimit(f.Limit))
	return rows, l.fault("list findings", err)
}

func scanFindingRow(row pgx.CollectableRow) (FindingRow, error) {
	var r FindingRow
	var ending string
	var proposal []byte
	var err error
	r.Finding, err = scanFinding(row, instant(&r.EndedAt), instant(&r.SettledAt), text(&r.SettledBy), text(&r.SettledAs), text(&ending),
		number(&r.Level), text(&r.Assignee), instant(&r.AcknowledgedUntil), instant(&r.SnoozedUntil), &proposal)
	r.Ending = ending
	if err == nil && proposal != nil {
		err = json.Unmarshal(proposal, &r.Proposal)
	}
	return r, err
}

const (
	findingSQL = `
SELECT ` + listFindingColumns + `
FROM reconciler.findings f
WHERE f.tenant = $1 AND f.finding_id = ANY ($2::text[])`

	// LATERAL makes each an index probe, also where the table has no statistics yet.
	namedEffectsSQL = `
SELECT ` + effectColumns + `
FROM unnest($2::text[]) AS i (id)
CROSS JOIN LATERAL (
	SELECT e.* FROM reconciler.effects e WHERE e.tenant = $1 AND e.id = i.id
	ORDER BY e.created_at
) e
ORDER BY e.created_at, e.system, e.account, e.mode, e.id`

	personActsSQL = `
SELECT a.finding_id, a.at, a.person, a.verb, a.details
FROM reconciler.person_actions a
WHERE a.tenant = $1 AND a.finding_id = ANY ($2::text[])
ORDER BY a.at, a.action_key`
)

// Finding gives one finding as it is listed (*NotFoundError).
func (l *Ledger) Finding(ctx context.Context, id string) (FindingRow, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := collect(ctx, l.pool, scanFindingRow, findingSQL, l.tenant, []string{id})
	if err == nil && len(rows) == 0 {
		err = &NotFoundError{What: "finding", ID: id}
	}
	if err != nil {
		return FindingRow{}, l.fault("read finding "+id, err)
	}
	return rows[0], nil
}

// EffectsByID gives the stored effects with this id; the same id in another account or
// mode is another effect.
func (l *Ledger) EffectsByID(ctx context.Context, id string) ([]recon.Effect, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	effects, err := collect(ctx, l.pool, scanEffect, namedEffectsSQL, l.tenant, []string{id})
	return effects, l.fault("read effect "+id, err)
}

// FindingStory tells everything about one finding, as of one moment (*NotFoundError).
func (l *Ledger) FindingStory(ctx context.Context, id string) (FindingStory, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var list []FindingStory
	err := l.atOnce(ctx, func(tx pgx.Tx) (err error) {
		list, err = l.findingStories(ctx, tx, []string{id}, maxStories, &pgx.Batch{})
		return err
	})
	if err == nil && len(list) == 0 {
		err = &NotFoundError{What: "finding", ID: id}
	}
	if err != nil {
		return FindingStory{}, l.fault("read finding "+id, err)
	}
	return list[0], nil
}

// findingStories tells everything about those of the findings that are there, with the
// stories of at most so many operations of each, in three round trips. What else is to be
// read in the second one is in the batch.
func (l *Ledger) findingStories(ctx context.Context, tx pgx.Tx, ids []string, most int, with *pgx.Batch) ([]FindingStory, error) {
	rows, err := collect(ctx, tx, scanFindingRow, findingSQL, l.tenant, ids)
	if err != nil {
		return nil, err
	}
	list := make([]FindingStory, len(rows))
	at, ops, effectIDs := map[string]*FindingStory{}, map[recon.OperationID]bool{}, map[string]bool{}
	for i, row := range rows {
		list[i].FindingRow, at[row.ID] = row, &list[i]
		for _, e := range row.Effects {
			effectIDs[e.ID] = true
		}
		for _, id := range row.Operations[:min(len(row.Operations), most)] {
			ops[id] = true
		}
	}
	var effects []recon.Effect
	if len(effectIDs) > 0 {
		with.Queue(namedEffectsSQL, l.tenant, keys(effectIDs)).Query(fills(&effects, scanEffect))
	}
	with.Queue(personActsSQL, l.tenant, keys(at)).Query(shares(scanAct, func(id string) *[]recon.PersonAct { return &at[id].Acts }))
	told, err := l.tellStories(ctx, tx, keys(ops), with)
	if err != nil {
		return nil, err
	}
	for i := range list {
		s := &list[i]
		s.Effects = namedBy(s.FindingRow.Effects, effects)
		for _, id := range s.Operations[:min(len(s.Operations), most)] {
			s.Stories = append(s.Stories, *told[id])
		}
	}
	return list, nil
}

// namedBy gives those of the effects that are named. An export and an API of one provider
// show the same effect.
func namedBy(refs []recon.EffectRef, effects []recon.Effect) []recon.Effect {
	named := make(map[recon.EffectRef]bool, len(refs))
	for _, r := range refs {
		r.Source = ""
		named[r] = true
	}
	var list []recon.Effect
	for _, e := range effects {
		ref := e.Ref()
		ref.Source = ""
		if named[ref] {
			list = append(list, e)
		}
	}
	return list
}

func scanAct(row pgx.CollectableRow) (recon.PersonAct, error) {
	var a recon.PersonAct
	var details []byte
	if err := row.Scan(instant(&a.At), text(&a.Person), text(&a.Verb), &details); err != nil {
		return a, err
	}
	return a, json.Unmarshal(details, &a)
}
