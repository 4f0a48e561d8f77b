package ledger

import (
	"context"
	_ "embed"
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
	// Sources are all that name the system; operations of them may bear on the rows.
	Sources []recon.SourceName
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
// their own plan, or to the same import again.
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
	if i.named, err = i.bearOn(ctx); err != nil {
		return err
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
	inserted, err = i.insertOnce(ctx, from, to)
	// Two files with the same effects in another order wait for each other's rows.
	for try := 1; try < recordTries && isKind(faultAt("", "", err), FaultConflict); try++ {
		inserted, err = i.insertOnce(ctx, from, to)
	}
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

// insertOnce leaves the transaction usable where it fails.
func (i *effectImporter) insertOnce(ctx context.Context, from, to int64) (inserted int64, err error) {
	err = pgx.BeginFunc(ctx, i.tx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, importEffectsSQL, i.ledger.tenant, i.now, i.System, string(i.Source), i.look.ID, from, to)
		inserted = tag.RowsAffected()
		return err
	})
	return inserted, err
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
