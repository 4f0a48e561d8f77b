package ledger

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

//go:embed sql/import_named.sql
var importNamedSQL string

// bearOn gives the operations that are to be looked at because of the file.
func (i *effectImporter) bearOn(ctx context.Context) ([]string, error) {
	rows, err := i.tx.Query(ctx, importNamedSQL, i.ledger.tenant, i.System, texts(append(slices.Clone(i.Sources), i.Source)))
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
	var all pgx.Batch
	if err := i.ledger.saveLooks(&all, &b); err != nil {
		return err
	}
	return send(ctx, i.tx, &all)
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
