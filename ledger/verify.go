package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// verifySQL reads chains with their heads, in one statement and so in one snapshot:
// what is written meanwhile breaks no chain. An empty list means all operations.
const verifySQL = `
SELECT o.operation_id, o.chain_seq, o.chain_head, j.seq, j.kind, j.at, j.body, j.hash
FROM reconciler.operations o
LEFT JOIN reconciler.journal j ON j.tenant = $1 AND j.operation_id = o.operation_id
WHERE o.tenant = $1 AND (cardinality($2::text[]) = 0 OR o.operation_id = ANY ($2::text[]))
ORDER BY o.operation_id, j.seq`

// VerifyResult says whether the evidence is as it was written.
type VerifyResult struct {
	Operations int64         `json:"operations"`
	Entries    int64         `json:"entries"`
	Broken     []BrokenChain `json:"broken"` // empty: every chain holds
}

// BrokenChain is one operation whose journal was changed after it was written.
type BrokenChain struct {
	Operation recon.OperationID `json:"operation_id"`
	Seq       int64             `json:"seq"` // the first entry that does not fit
	Reason    string            `json:"reason"`
}

// Verify computes the chains of these operations again, or of all when none is named,
// from their first entry to the head that the operation's row holds. An id that is not
// in the ledger is a *NotFoundError.
func (l *Ledger) Verify(ctx context.Context, ids ...recon.OperationID) (VerifyResult, error) {
	if len(ids) > 0 {
		var cancel context.CancelFunc
		ctx, cancel = bounded(ctx) // all of a large ledger takes as long as it takes
		defer cancel()
	}
	const op = "verify journals"
	rows, err := l.pool.Query(ctx, verifySQL, l.tenant, texts(ids))
	if err != nil {
		return VerifyResult{}, l.fault(op, err)
	}
	v := verifier{result: VerifyResult{Broken: []BrokenChain{}}, missing: map[recon.OperationID]bool{}}
	for _, id := range ids {
		v.missing[id] = true
	}
	var e chainEntry
	targets := []any{&e.operation, &e.chainSeq, &e.chainHead, &e.seq, &e.kind, &e.at, &e.body, &e.hash}
	if _, err := pgx.ForEachRow(rows, targets, func() error {
		v.entry(e)
		return nil
	}); err != nil {
		return VerifyResult{}, l.fault(op, err)
	}
	v.end()
	for _, id := range ids {
		if v.missing[id] {
			return VerifyResult{}, &NotFoundError{What: "operation", ID: string(id)}
		}
	}
	return v.result, nil
}

// chainEntry is one row of verifySQL; an operation without journal has one with nulls.
type chainEntry struct {
	operation recon.OperationID
	chainSeq  int64
	chainHead []byte
	seq       *int64
	kind      *string
	at        *time.Time
	body      *string
	hash      []byte
}

// verifier walks entries in order and keeps the state of the chain it is in.
type verifier struct {
	result  VerifyResult
	missing map[recon.OperationID]bool

	open      bool
	operation recon.OperationID
	wantSeq   int64
	wantHead  []byte
	seq       int64 // of the last entry that fits
	head      []byte
	broken    bool
}

func (v *verifier) entry(e chainEntry) {
	if !v.open || e.operation != v.operation {
		v.end()
		v.open, v.broken = true, false
		v.operation, v.wantSeq, v.wantHead = e.operation, e.chainSeq, bytes.Clone(e.chainHead)
		v.seq, v.head = 0, nil
		v.result.Operations++
		delete(v.missing, e.operation)
	}
	if e.seq == nil {
		return
	}
	v.result.Entries++
	sum := sha256.Sum256(append(bytes.Clone(v.head), *e.body...))
	switch {
	case v.broken:
		return
	case *e.seq != v.seq+1:
		v.breaks(v.seq+1, "the entry is missing")
	case !bytes.Equal(sum[:], e.hash):
		v.breaks(*e.seq, "its text is not the one that was hashed")
	case !tells(*e.body, *e.kind, *e.at):
		v.breaks(*e.seq, "its kind or time is not that of its text")
	}
	v.seq, v.head = *e.seq, sum[:]
}

// end compares the chain that is over with the head that the operation's row holds.
func (v *verifier) end() {
	switch {
	case !v.open || v.broken:
	case v.seq < v.wantSeq:
		v.breaks(v.seq+1, "the entry is missing")
	case v.seq > v.wantSeq || !bytes.Equal(v.head, v.wantHead):
		v.breaks(v.seq, "the operation's row names another last entry")
	}
	v.open = false
}

func (v *verifier) breaks(seq int64, reason string) {
	v.broken = true
	v.result.Broken = append(v.result.Broken, BrokenChain{Operation: v.operation, Seq: seq, Reason: reason})
}

// tells reports whether the hashed text says the same kind and time as the columns
// beside it, by which entries are found.
func tells(body, kind string, at time.Time) bool {
	var said struct {
		Kind string    `json:"kind"`
		At   time.Time `json:"at"`
	}
	return json.Unmarshal([]byte(body), &said) == nil && said.Kind == kind && said.At.Equal(at)
}
