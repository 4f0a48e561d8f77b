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
WHERE f.tenant = $1 AND f.finding_id = $2`

	namedEffectsSQL = `
SELECT ` + effectColumns + `
FROM reconciler.effects e
WHERE e.tenant = $1 AND e.id = ANY ($2::text[])
ORDER BY e.created_at, e.system, e.account, e.mode, e.id`

	personActsSQL = `
SELECT a.at, a.person, a.verb, a.details
FROM reconciler.person_actions a
WHERE a.tenant = $1 AND a.finding_id = $2
ORDER BY a.at, a.action_key`
)

// Finding gives one finding as it is listed (*NotFoundError).
func (l *Ledger) Finding(ctx context.Context, id string) (FindingRow, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	row, err := l.findingOf(ctx, l.pool, id)
	return row, l.fault("read finding "+id, err)
}

func (l *Ledger) findingOf(ctx context.Context, q querier, id string) (FindingRow, error) {
	rows, err := collect(ctx, q, scanFindingRow, findingSQL, l.tenant, id)
	if err == nil && len(rows) == 0 {
		err = &NotFoundError{What: "finding", ID: id}
	}
	if err != nil {
		return FindingRow{}, err
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
	var s FindingStory
	err := l.atOnce(ctx, func(tx pgx.Tx) error { return l.findingStory(ctx, tx, id, &s) })
	if err != nil {
		return FindingStory{}, l.fault("read finding "+id, err)
	}
	return s, nil
}

func (l *Ledger) findingStory(ctx context.Context, tx pgx.Tx, id string, s *FindingStory) (err error) {
	if s.FindingRow, err = l.findingOf(ctx, tx, id); err != nil {
		return err
	}
	ids := make([]string, 0, len(s.FindingRow.Effects))
	named := make(map[recon.EffectRef]bool, len(s.FindingRow.Effects))
	for _, e := range s.FindingRow.Effects {
		ids = append(ids, e.ID)
		e.Source = "" // an export and an API of one provider show the same effect
		named[e] = true
	}
	var beside pgx.Batch
	var effects []recon.Effect
	beside.Queue(namedEffectsSQL, l.tenant, ids).Query(fills(&effects, scanEffect))
	beside.Queue(personActsSQL, l.tenant, id).Query(fills(&s.Acts, scanAct))
	ops := s.Operations[:min(len(s.Operations), maxStories)]
	stories := make([]recon.Story, len(ops))
	if err := l.tellStories(ctx, tx, ops, stories, &beside); err != nil {
		return err
	}
	if len(stories) > 0 {
		s.Stories = stories
	}
	for _, e := range effects {
		ref := e.Ref()
		ref.Source = ""
		if named[ref] {
			s.Effects = append(s.Effects, e)
		}
	}
	return nil
}

func scanAct(row pgx.CollectableRow) (recon.PersonAct, error) {
	var a recon.PersonAct
	var details []byte
	if err := row.Scan(instant(&a.At), text(&a.Person), text(&a.Verb), &details); err != nil {
		return a, err
	}
	return a, json.Unmarshal(details, &a)
}
