package ledger

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Tx are the acting calls inside a transaction of the caller's own, so that an intent is
// recorded if and only if the change that it belongs to is. Its role needs what
// reconciler_agent has. Nothing is run again here: after an error the transaction is over,
// and after one of kind [FaultConflict] all of it may be tried again.
type Tx struct {
	tx    pgx.Tx
	place string
}

// Within makes the acting calls of a transaction, which must be READ COMMITTED.
func Within(tx pgx.Tx) Tx { return Tx{tx: tx, place: place(tx.Conn().Config())} }

// OpenOperation is [Ledger.OpenOperation], in force when the transaction commits.
func (t Tx) OpenOperation(ctx context.Context, r OpenRequest) (OpenAnswer, error) {
	return actWithin[OpenAnswer](ctx, t, "open an operation", openSQL, r)
}

// Claim is [Ledger.Claim]. An operation that was opened in the same transaction is given
// to an OwnWrite only: anything else must not be sent before the commit.
func (t Tx) Claim(ctx context.Context, r ClaimRequest) (ClaimAnswer, error) {
	return actWithin[ClaimAnswer](ctx, t, "claim an operation", claimSQL, r)
}

// Finish is [Ledger.Finish], in force when the transaction commits.
func (t Tx) Finish(ctx context.Context, r FinishRequest) (FinishAnswer, error) {
	return actWithin[FinishAnswer](ctx, t, "finish an attempt", finishSQL, r)
}

func actWithin[T any](ctx context.Context, t Tx, op, sql string, request any) (T, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	answer, err := call[T](ctx, t.tx, sql, request)
	return answer, actFault(t.place, op, err)
}
