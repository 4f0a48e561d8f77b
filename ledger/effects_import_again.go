package ledger

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

//go:embed sql/import_repeated.sql
var importRepeatedSQL string

const markKnownSQL = `
UPDATE pg_temp.effect_rows r SET again = true
FROM reconciler.effects e
WHERE e.tenant = $1 AND e.system = $2 AND e.account = r.account AND e.mode = r.mode AND e.id = r.id
	AND e.look_id IS DISTINCT FROM $3 AND NOT r.again AND NOT r.repeated`

// meetStored sorts out rows whose effects were stored before: those that say nothing new
// are counted, the others are held against what is stored.
func (i *effectImporter) meetStored(ctx context.Context, known int64) error {
	if known <= 0 {
		return nil
	}
	tag, err := i.tx.Exec(ctx, importRepeatedSQL, i.ledger.tenant, i.System, i.look.ID)
	if err != nil {
		return err
	}
	i.result.Repeated += int(tag.RowsAffected())
	if known -= tag.RowsAffected(); known == 0 {
		return nil
	}
	tag, err = i.tx.Exec(ctx, markKnownSQL, i.ledger.tenant, i.System, i.look.ID)
	i.again += tag.RowsAffected()
	return err
}

// waiting is a row that tells of an effect that is stored.
type waiting struct {
	n      int64
	line   int
	effect recon.Effect
}

// The cursor reads the rows as they stood when it was opened, in the order of the file.
const (
	openAgainSQL = `
DECLARE effect_rows_again NO SCROLL CURSOR FOR
SELECT r.n, r.line, r.account, r.mode, r.id, r.kind, r.status, r.amount, r.currency, r.parent, r.other_parents, r.target,
	r.reference, r.natural_reference, r.key, r.created_at, r.updated_at, r.fee, r.net, r.settlement_amount,
	r.settlement_currency, r.created_by, r.failure_reason, r.caused_by, r.parent_total, r.metadata
FROM pg_temp.effect_rows r
WHERE r.again
ORDER BY r.n`
	nextAgainSQL = `FETCH FORWARD 1000 FROM effect_rows_again`
)

// sayAgain holds rows of known effects against what is stored, chunk by chunk.
func (i *effectImporter) sayAgain(ctx context.Context) error {
	if i.again == 0 {
		return nil
	}
	if _, err := i.tx.Exec(ctx, openAgainSQL); err != nil {
		return err
	}
	for {
		rows, err := i.tx.Query(ctx, nextAgainSQL)
		if err != nil {
			return err
		}
		chunk, err := pgx.CollectRows(rows, i.scan)
		if err != nil || len(chunk) == 0 {
			return err
		}
		if err := i.merge(ctx, chunk); err != nil {
			return err
		}
	}
}

func (i *effectImporter) scan(row pgx.CollectableRow) (waiting, error) {
	w := waiting{effect: recon.Effect{Source: i.Source, System: i.System}}
	e := &w.effect
	var metadata string
	err := row.Scan(&w.n, &w.line, &e.Account, &e.Mode, &e.ID, &e.Kind, text(&e.Status), number(&e.Money.Minor), text(&e.Money.Currency),
		text(&e.Parent), &e.OtherParents, text(&e.Target), text(&e.Reference), text(&e.NaturalReference), text(&e.Key),
		instant(&e.CreatedAt), instant(&e.UpdatedAt), &e.Fee, &e.Net, number(&e.Settlement.Minor), text(&e.Settlement.Currency),
		text(&e.CreatedBy), text(&e.FailureReason), text(&e.CausedBy), &e.ParentTotal, text(&metadata))
	if metadata != "" {
		e.Metadata = []byte(metadata)
	}
	return w, err
}

// merge writes a chunk in a savepoint, and in halves where the database refuses what it
// holds.
func (i *effectImporter) merge(ctx context.Context, chunk []waiting) error {
	before := i.result
	before.Faults = slices.Clone(i.result.Faults)
	err := pgx.BeginFunc(ctx, i.tx, func(tx pgx.Tx) error { return i.mergeIn(ctx, tx, chunk) })
	if err == nil {
		return nil
	}
	if i.result = before; !isKind(faultAt("", "", err), FaultData) {
		if errors.Is(err, errRaced) {
			return &Fault{Op: "import effects", Kind: FaultConflict, Place: i.ledger.place, err: err}
		}
		return err
	}
	if len(chunk) == 1 {
		i.refuse(chunk[0].line, faultAt("", "store the row", err).Error())
		return nil
	}
	half := len(chunk) / 2
	if err := i.merge(ctx, chunk[:half]); err != nil {
		return err
	}
	return i.merge(ctx, chunk[half:])
}

func (i *effectImporter) mergeIn(ctx context.Context, tx pgx.Tx, chunk []waiting) error {
	ids := make([]recon.EffectIdentity, 0, len(chunk))
	for _, w := range chunk {
		ids = append(ids, w.effect.Identity())
	}
	slices.SortFunc(ids, compareIdentity)
	var locks, all pgx.Batch
	have := i.ledger.lockEffects(&locks, slices.Compact(ids))
	if err := send(ctx, tx, &locks); err != nil {
		return err
	}
	s := shelf{rows: map[recon.EffectIdentity]*effectRow{}, fresh: map[recon.EffectIdentity]bool{}}
	for _, w := range chunk {
		i.put(&s, have, w)
	}
	if err := i.ledger.saveEffects(&all, s, i.now); err != nil {
		return err
	}
	return send(ctx, tx, &all)
}

// put holds one row against what is known by then, which rows before it may have
// changed.
func (i *effectImporter) put(s *shelf, have map[recon.EffectIdentity]held, w waiting) {
	id := w.effect.Identity()
	old, known := have[id]
	if !known { // its first row was refused by the database
		s.observe(have, seen{effect: w.effect, at: i.now, lookID: i.look.ID}, i.now)
		have[id] = held{effect: normal(w.effect), seenAt: i.now}
		i.result.Imported++
		return
	}
	m, v, field := tell(old, w.effect, i.Readable)
	if m.write {
		s.rows[id] = i.rowOf(s, id, m)
		old.effect = m.effect
		have[id] = old
	}
	if m.before != nil {
		s.changes = append(s.changes, changeRow{
			System: id.System, Account: id.Account, Mode: id.Mode, ID: id.ID,
			ChangeID: changeID(id, m.before, m.after), Before: m.before, After: m.after, LookID: i.look.ID,
		})
	}
	switch v {
	case changesIt:
		i.result.Imported++
	case contradictsIt:
		i.refuse(w.line, fmt.Sprintf("effect %s is stored with the same status and another %s; nothing of it was changed, look at the provider which is right",
			recon.Printable(id.ID), field))
	default:
		i.result.Repeated++
	}
}

func (i *effectImporter) rowOf(s *shelf, id recon.EffectIdentity, m merged) *effectRow {
	row := rowOf(m.effect)
	before := s.rows[id]
	switch {
	case m.replace:
		row.SeenAt, row.LookID = &i.now, i.look.ID
	case before != nil:
		row.SeenAt, row.LookID = before.SeenAt, before.LookID
	}
	return &row
}
