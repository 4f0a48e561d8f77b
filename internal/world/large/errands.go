package large

import (
	"context"
	"errors"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// What is counted of commands.
const (
	effectsImported = "effects of a statement imported"
	effectsKnown    = "effects of a statement that were known"
	eventsReplayed  = "events replayed"
	opsErased       = "operations erased"
	opsKept         = "open operations that were not erased"
	opsReleased     = "operations released"
	opsKnown        = "operations of which somebody knew that they happened"
)

// errands lists those that come about in many worlds.
var errands = []string{effectsImported, effectsKnown, eventsReplayed, opsErased, opsReleased, opsKnown}

// The days on which somebody runs a command that no clock runs.
var (
	statementDays = []int{0}
	replayDays    = []int{2}
	eraseDays     = []int{35}
)

// statement is the bank's list of what it did for us lately, as a file of effects.
type statement struct {
	rows []recon.Effect
	next int
}

// Next implements [ledger.EffectFile].
func (s *statement) Next(line *ledger.EffectLine) bool {
	if s.next == len(s.rows) {
		return false
	}
	*line = ledger.EffectLine{Line: s.next + 1, Effect: s.rows[s.next]}
	s.next++
	return true
}

// Err implements [ledger.EffectFile].
func (s *statement) Err() error { return nil }

// importStatement imports what the bank did lately, also what its interface does not
// show yet.
func (w *World) importStatement(ctx context.Context) error {
	now, system := w.clock.Now(), w.sources[bank].Sheet().System
	file := &statement{}
	for _, d := range w.book.all() {
		if d.source != bank || d.at.Before(now.Add(-day)) {
			continue
		}
		e := recon.Effect{
			ID: d.id, Source: bank, System: system, Kind: "payout", Status: d.status(now), Money: recon.Money{Minor: d.minor, Currency: "EUR"},
			Parent: d.parent, Reference: string(d.op), CreatedAt: d.at, Account: giro, Mode: mode,
		}
		if e.Status == recon.EffectFailed {
			e.Status = recon.Reversed // as the bank calls it
		}
		file.rows = append(file.rows, e)
	}
	out, err := w.ledger.ImportEffects(ctx, ledger.EffectImport{
		Source: bank, System: system, File: file, Name: "statement.csv", Sources: []recon.SourceName{bank}, Readable: true, Now: now,
	})
	if err != nil {
		return err
	}
	if out.Rows != len(file.rows) || out.Refused > 0 {
		w.fault("an import takes every line once", "of %d rows of a bank statement: %+v", len(file.rows), out)
	}
	w.tally.errand(effectsImported, out.Imported)
	w.tally.errand(effectsKnown, out.Repeated)
	w.expect(bank, now.Add(time.Minute))
	return nil
}

// replay has events taken in once more that were taken in long ago.
func (w *World) replay(ctx context.Context) error {
	rows, err := w.inbox.List(ctx, inbox.Filter{States: []inbox.State{inbox.Done}, To: w.clock.Now().Add(-time.Hour), Limit: 100})
	if err != nil || len(rows) == 0 {
		return err
	}
	var ids []string
	for n, r := range rows {
		if n%20 == 0 {
			ids = append(ids, r.ID)
		}
	}
	out, err := w.inbox.Replay(ctx, inbox.Filter{IDs: ids}, w.clock.Now())
	if err != nil {
		return err
	}
	if out.Replayed+out.NoBytes != len(ids) {
		w.fault("a replay takes what it names", "of %d events: %+v", len(ids), out)
	}
	w.tally.errand(eventsReplayed, out.Replayed)
	_, err = w.newIntake().Run(ctx, w.clock.Now)
	return err
}

// erase erases what may be personal of some operations, as somebody does whom a customer asks
// to. What is open is refused, and everything that is known of the others stays.
func (w *World) erase(ctx context.Context) error {
	for _, i := range w.plan.intents {
		if i.n%150 != 7 {
			continue
		}
		out, err := w.ledger.Erase(ctx, string(i.id), w.clock.Now())
		var open *ledger.OpenOperationsError
		var never *ledger.NotFoundError
		switch {
		case errors.As(err, &open):
			w.tally.errand(opsKept, 1)
		case errors.As(err, &never): // its agent died before it had opened it
		case err != nil:
			return err
		case len(out.Operations) != 1 || out.Operations[0] != i.id:
			w.fault("what is erased is what was named", "%s: %+v", i.id, out)
		default:
			w.tally.errand(opsErased, 1)
		}
	}
	return nil
}
