package ledger

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// EffectLine is one row of a file of effects.
type EffectLine struct {
	Line   int // physical line
	Effect recon.Effect
	// Again says that an earlier row of the file tells of the same effect.
	Again    bool
	Refused  string // why it cannot be read; empty: it can
	SetAside bool   // it can be read and is not ours
}

// EffectFile gives the rows of one file of effects, once and in their order.
type EffectFile interface {
	// Next fills the next row, or is false at the end and at a fault of the file.
	Next(*EffectLine) bool
	// Err says, once Next was false, what is wrong with the whole file.
	Err() error
}

// EffectImport says what to bring in.
type EffectImport struct {
	Source recon.SourceName // what the effects are stored under
	System string
	File   EffectFile
	Name   string // of the file, for the evidence
	// Hash gives the hash of the file's bytes, once it was read; nil: there is none.
	Hash func() []byte
	// Readable says that a source of the system can be asked what is right, where a row
	// and what is stored disagree.
	Readable bool
	// Complete says that the file holds everything of these places that was created in the
	// window. Without a refused row it is then a complete look of the time at which the
	// window ends.
	Complete Completeness
	Now      time.Time
}

// Completeness is what a file declares to hold completely.
type Completeness struct {
	Window recon.Window // zero: nothing is declared
	Places []Place
}

// Place is where effects of one kind are.
type Place struct{ Kind, Account, Mode string }

// ImportEffects stores what a file of effects says, in one transaction: all of it, or
// nothing where the file itself has a fault, which is then the error, and every row
// counts as refused. A row makes an effect, changes it, says nothing new, or is refused
// with its line where it contradicts what is stored.
//
// Operations on which the rows bear are then due: the next sweep, or re-verification of
// closed ones, concludes from what is stored. A run that ends in between leaves them to
// their own plan.
func (l *Ledger) ImportEffects(ctx context.Context, in EffectImport) (ImportResult, error) {
	i, err := newEffectImporter(l, in)
	if err != nil {
		return i.result, err
	}
	err = l.inTx(ctx, func(tx pgx.Tx) error {
		i.tx = tx
		return i.run(ctx)
	})
	if err != nil {
		r := i.result
		if i.fileErr != nil {
			err = i.fileErr
		} else {
			err = l.fault("import effects", err)
		}
		return ImportResult{Rows: r.Rows, Refused: r.Rows, Faults: []ImportFault{}}, err
	}
	slices.SortStableFunc(i.result.Faults, func(a, b ImportFault) int { return a.Line - b.Line })
	return i.result, l.fault("plan the next looks", l.wake(ctx, i.named, i.now))
}

// effectImporter is one import of effects under way.
type effectImporter struct {
	EffectImport
	ledger  *Ledger
	tx      pgx.Tx
	now     time.Time
	look    recon.Look
	result  ImportResult
	fresh   int64 // rows that are the first of their effect in the file
	again   int64 // and the others
	read    int64 // rows that wait
	fileErr error
	out     []byte // rows that were written for COPY and not sent yet
	named   []string
	places  map[Place]bool // that rows tell of
}

func newEffectImporter(l *Ledger, in EffectImport) (*effectImporter, error) {
	i := &effectImporter{EffectImport: in, ledger: l, now: stored(in.Now), result: ImportResult{Faults: []ImportFault{}}, places: map[Place]bool{}}
	if in.Now.IsZero() || in.Source == "" || in.System == "" {
		return i, &UsageError{"ledger: an import needs its source, its system and a time"}
	}
	if to := in.Complete.Window.To; to.After(in.Now) {
		return i, &UsageError{fmt.Sprintf("the range that the file is to hold ends at %s, which has not come: no export holds what is still to happen", recon.TimeText(to, time.UTC))}
	}
	id, err := uuid.NewV7()
	i.look = recon.Look{ID: id.String(), Source: in.Source, Method: recon.ByFile, Outcome: recon.Found, At: i.now}
	return i, err
}

// run is the transaction.
func (i *effectImporter) run(ctx context.Context) error {
	if err := copyIn(ctx, i.tx, i); err != nil {
		return err
	}
	if i.fileErr != nil {
		return i.fileErr
	}
	if i.read == 0 {
		return i.keepLooks(ctx)
	}
	inserted, err := i.insert(ctx, 1, i.read)
	if err != nil {
		return err
	}
	i.result.Imported += int(inserted)
	if err := i.meetStored(ctx, i.fresh-inserted); err != nil {
		return err
	}
	if err := i.sayAgain(ctx); err != nil {
		return err
	}
	if i.result.Imported > 0 {
		if i.named, err = i.bearOn(ctx); err != nil {
			return err
		}
	}
	return i.keepLooks(ctx)
}

// Read gives the rows to COPY while the file is read. A fault of the file ends it.
func (i *effectImporter) Read(p []byte) (int, error) {
	var line EffectLine
	for len(i.out) < len(p) && i.File.Next(&line) {
		i.result.Rows++
		switch {
		case line.Refused != "":
			i.refuse(line.Line, line.Refused)
			continue
		case line.SetAside:
			i.result.SetAside++
			continue
		case line.Again:
			i.again++
		default:
			i.fresh++
		}
		if i.read++; len(i.Complete.Places) > 0 {
			i.places[Place{line.Effect.Kind, line.Effect.Account, line.Effect.Mode}] = true
		}
		i.out = appendRow(i.out, i.read, &line)
	}
	if len(i.out) < len(p) {
		if i.fileErr = i.File.Err(); i.fileErr != nil {
			return 0, i.fileErr
		}
	}
	n := copy(p, i.out)
	i.out = append(i.out[:0], i.out[n:]...)
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (i *effectImporter) refuse(line int, reason string) {
	i.result.Refused++
	if len(i.result.Faults) < maxFaults {
		i.result.Faults = append(i.result.Faults, ImportFault{Line: line, Reason: reason})
	}
}

//go:embed sql/import_effects.sql
var importEffectsSQL string

const waitingLineSQL = `SELECT r.line, r.again FROM pg_temp.effect_rows r WHERE r.n = $1`

// insert stores what is not known yet of a range of rows. Where the database refuses
// what a row holds (a number in metadata beyond its range), the range is halved until
// that row is refused alone.
func (i *effectImporter) insert(ctx context.Context, from, to int64) (inserted int64, err error) {
	err = pgx.BeginFunc(ctx, i.tx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, importEffectsSQL, i.ledger.tenant, i.now, i.System, string(i.Source), i.look.ID, from, to)
		inserted = tag.RowsAffected()
		return err
	})
	if err == nil || !isKind(faultAt("", "", err), FaultData) {
		return inserted, err
	}
	if from == to {
		return 0, i.dropRow(ctx, from, faultAt("", "store the row", err))
	}
	half := from + (to-from)/2
	left, err := i.insert(ctx, from, half)
	if err != nil {
		return 0, err
	}
	right, err := i.insert(ctx, half+1, to)
	return left + right, err
}

const dropRowSQL = `DELETE FROM pg_temp.effect_rows r WHERE r.n = $1`

// dropRow refuses one row that waits.
func (i *effectImporter) dropRow(ctx context.Context, n int64, why error) error {
	var line int
	var again bool
	if err := i.tx.QueryRow(ctx, waitingLineSQL, n).Scan(&line, &again); err != nil {
		return err
	}
	i.refuse(line, why.Error())
	if !again {
		i.fresh--
	}
	_, err := i.tx.Exec(ctx, dropRowSQL, n)
	return err
}

//go:embed sql/import_repeated.sql
var importRepeatedSQL string

const markKnownSQL = `
UPDATE pg_temp.effect_rows r SET again = true
FROM reconciler.effects e
WHERE e.tenant = $1 AND e.system = $2 AND e.account = r.account AND e.mode = r.mode AND e.id = r.id
	AND e.look_id IS DISTINCT FROM $3 AND NOT r.again`

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
	have, err := i.ledger.lockEffects(ctx, tx, slices.Compact(ids))
	if err != nil {
		return err
	}
	s := shelf{rows: map[recon.EffectIdentity]*effectRow{}, fresh: map[recon.EffectIdentity]bool{}}
	for _, w := range chunk {
		i.put(&s, have, w)
	}
	return i.ledger.saveEffects(ctx, tx, s, i.now)
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

//go:embed sql/import_named.sql
var importNamedSQL string

// bearOn gives the operations that are to be looked at because of the file.
func (i *effectImporter) bearOn(ctx context.Context) ([]string, error) {
	rows, err := i.tx.Query(ctx, importNamedSQL, i.ledger.tenant, i.System)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// keepLooks stores the evidence: the look that new effects rest on, and what the file
// declares to hold completely.
func (i *effectImporter) keepLooks(ctx context.Context) error {
	r := i.result
	if i.Hash != nil {
		i.look.ReplyHash = i.Hash()
	}
	i.look.Detail = fmt.Sprintf("%s: %d rows, %d imported, %d repeated, %d set aside, %d refused", i.Name, r.Rows, r.Imported, r.Repeated, r.SetAside, r.Refused)
	b := Batch{Now: i.now}
	if r.Imported > 0 {
		b.Looks = append(b.Looks, i.look)
	}
	if err := i.cover(&b); err != nil {
		return err
	}
	return i.ledger.saveLooks(ctx, i.tx, &b)
}

// cover adds a complete look for every place that the file holds completely. A row that
// could not be read may have told of anything, so a file with one is not complete.
func (i *effectImporter) cover(b *Batch) error {
	w := i.Complete.Window
	if w.IsZero() || i.result.Refused > 0 {
		return nil
	}
	for _, p := range i.Complete.Places {
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		k := i.look
		k.ID, k.Kind, k.Account, k.Mode = id.String(), p.Kind, p.Account, p.Mode
		k.Window, k.Complete, k.At, k.Outcome = w, true, w.To, recon.Absent
		if i.places[p] {
			k.Outcome = recon.Found
		}
		b.Looks = append(b.Looks, k)
		b.Coverage = append(b.Coverage, recon.Coverage{Source: i.Source, Kind: p.Kind, Account: p.Account, Mode: p.Mode, Window: w, At: w.To, LookID: k.ID})
	}
	return nil
}

// The operation's row is locked, as by every writer of its plan.
const wakeSQL = `
WITH locked AS MATERIALIZED (
	SELECT o.operation_id FROM reconciler.operations o
	WHERE o.tenant = $1 AND o.operation_id = ANY ($2::text[])
	ORDER BY o.operation_id
	FOR NO KEY UPDATE
)
UPDATE reconciler.checks c SET next_check = $3
FROM locked o
WHERE c.tenant = $1 AND c.operation_id = o.operation_id AND (c.next_check IS NULL OR c.next_check > $3)`

// wake makes operations due at once. It is a transaction of its own, since operations
// are locked before effects everywhere.
func (l *Ledger) wake(ctx context.Context, ids []string, now time.Time) error {
	for chunk := range slices.Chunk(ids, importChunk) {
		err := l.inTx(ctx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, wakeSQL, l.tenant, chunk, now)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
