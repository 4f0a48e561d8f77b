package ledger

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Erased says what was erased.
type Erased struct {
	Operations []recon.OperationID
	Requests   int // requests, results and metadata of operations that had any
	Effects    int // effects whose metadata and maker were erased
	Bytes      int // objects as the provider sent them, older readings too
	// About are the ids and references by which the bytes of events are found.
	About []string
}

// OpenOperationsError says that something cannot be erased while it may still be sent.
type OpenOperationsError struct{ IDs []recon.OperationID }

func (e *OpenOperationsError) Error() string {
	return fmt.Sprintf("operation %s is open, and its request is needed until it is closed: nothing was erased; close it first", e.IDs[0])
}

const eraseOperationsSQL = `
SELECT o.operation_id, o.state, o.policy_version, o.parent, session_user::text
FROM reconciler.operations o
WHERE o.tenant = $1 AND (o.operation_id = $2 OR o.reference = $2)
ORDER BY o.operation_id
FOR NO KEY UPDATE OF o`

// What a group owns is other operations' too and stays; what waits without owner and
// names an operation is its own.
const eraseEffectsSQL = `
SELECT e.system, e.account, e.mode, e.id
FROM reconciler.effects e
WHERE e.tenant = $1 AND (e.owner = ANY ($2::text[]) OR e.owner IS NULL AND e.reference = ANY ($2::text[]))
ORDER BY e.system, e.account, e.mode, e.id
FOR UPDATE`

//go:embed sql/erase.sql
var eraseSQL string

// Erase erases what may be personal of the operations whose id or natural reference is
// given: their request, metadata and result, the metadata and the maker of their
// effects, and the bytes that the provider sent. Amounts, states, ids and the journal
// stay: chains hold hashes, and an entry says that and by whom it was erased. What the
// provider still holds is read again by the next look, so it is erased there first.
//
// None is a *NotFoundError, and an open operation an *OpenOperationsError; then nothing
// is erased. Erasing twice is harmless.
func (l *Ledger) Erase(ctx context.Context, reference string, now time.Time) (Erased, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var out Erased
	err := l.inTx(ctx, func(tx pgx.Tx) (err error) {
		out, err = l.eraseIn(ctx, tx, reference, stored(now))
		return err
	})
	return out, l.fault("erase by reference", err)
}

// erasing is one operation under its lock.
type erasing struct {
	id            recon.OperationID
	state         recon.State
	policyVersion int
	parent        string
	by            string
}

func (l *Ledger) eraseIn(ctx context.Context, tx pgx.Tx, reference string, now time.Time) (Erased, error) {
	ops, err := collect(ctx, tx, func(row pgx.CollectableRow) (erasing, error) {
		var e erasing
		return e, row.Scan(text(&e.id), text(&e.state), &e.policyVersion, text(&e.parent), &e.by)
	}, eraseOperationsSQL, l.tenant, reference)
	if err != nil {
		return Erased{}, err
	}
	if len(ops) == 0 {
		return Erased{}, &NotFoundError{What: "operation with the id or reference", ID: reference}
	}
	out := Erased{About: []string{}}
	var open []recon.OperationID
	for _, o := range ops {
		out.Operations, out.About = append(out.Operations, o.id), append(out.About, string(o.id))
		if o.parent != "" {
			out.About = append(out.About, o.parent) // the payment's own events hold who paid
		}
		if o.state.Open() {
			open = append(open, o.id)
		}
	}
	if len(open) > 0 {
		return Erased{}, &OpenOperationsError{IDs: open}
	}
	effects, err := collect(ctx, tx, func(row pgx.CollectableRow) (recon.EffectIdentity, error) {
		var id recon.EffectIdentity
		return id, row.Scan(&id.System, &id.Account, &id.Mode, &id.ID)
	}, eraseEffectsSQL, l.tenant, texts(out.Operations))
	if err != nil {
		return Erased{}, err
	}
	err = l.writeErased(ctx, tx, erasure{ops, effects, now}, &out)
	return out, err
}

// erasure is what is erased, under its locks.
type erasure struct {
	ops     []erasing
	effects []recon.EffectIdentity
	now     time.Time
}

// writeErased nulls what is to go and tells it in the journal of each operation.
func (l *Ledger) writeErased(ctx context.Context, tx pgx.Tx, e erasure, out *Erased) error {
	type entryRow struct {
		Operation string `json:"operation_id"`
		Body      string `json:"body"`
	}
	rows := make([]entryRow, 0, len(e.ops))
	for _, o := range e.ops {
		body, err := encode(entryBody{
			Kind: recon.EntryErased, At: e.now, By: o.by, From: o.state, To: o.state, PolicyVersion: o.policyVersion,
			Reason: "Its request, metadata and result, its effects' metadata and what the provider sent were erased on demand.",
		})
		if err != nil {
			return err
		}
		rows = append(rows, entryRow{string(o.id), string(body)})
	}
	entries, err := encode(rows)
	if err != nil {
		return err
	}
	about := make([]string, 0, len(e.effects))
	for _, id := range e.effects {
		about, out.About = append(about, aboutEffect(id)), append(out.About, id.ID)
	}
	c := identityColumns(e.effects)
	return tx.QueryRow(ctx, eraseSQL, l.tenant, e.now, entries, c[0], c[1], c[2], c[3], about).Scan(&out.Requests, &out.Effects, &out.Bytes)
}
