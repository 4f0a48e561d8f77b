package large

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/guard"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

// doom ends the product's process at a statement: that one and all after it do not reach
// the database, not even those that would give something back.
type doom struct {
	armed, dead atomic.Bool
	left        atomic.Int64
}

// after lets so many statements pass before the end.
func (d *doom) after(statements int) {
	d.left.Store(int64(statements))
	d.armed.Store(true)
}

// spare ends it, and reports whether the process had died. Another one then goes on.
func (d *doom) spare() bool {
	d.armed.Store(false)
	return d.dead.Swap(false)
}

// TraceQueryStart implements [pgx.QueryTracer].
func (d *doom) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return d.strike(ctx)
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (d *doom) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceBatchStart implements [pgx.BatchTracer].
func (d *doom) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return d.strike(ctx)
}

// TraceBatchQuery implements [pgx.BatchTracer].
func (d *doom) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements [pgx.BatchTracer].
func (d *doom) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (d *doom) strike(ctx context.Context) context.Context {
	if !d.armed.Load() || d.left.Add(-1) >= 0 {
		return ctx
	}
	d.dead.Store(true)
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(errDied)
	return ctx
}

var errDied = errors.New("the process died")

// mortal is the ledger as an agent sees it that dies before or after one of its calls.
type mortal struct {
	guard.Ledger
	left int // moments until then: each call has one before it and one after
}

func (m *mortal) dies() bool {
	m.left--
	return m.left < 0
}

// within makes a call, unless the agent dies before it, and gives its answer, unless the
// agent dies before it hears it.
func within[Q, A any](ctx context.Context, m *mortal, q Q, call func(context.Context, Q) (A, error)) (A, error) {
	var none A
	if m.dies() {
		return none, errDied
	}
	a, err := call(ctx, q)
	if m.dies() {
		return none, errDied
	}
	return a, err
}

// OpenOperation implements [guard.Ledger].
func (m *mortal) OpenOperation(ctx context.Context, q ledger.OpenRequest) (ledger.OpenAnswer, error) {
	return within(ctx, m, q, m.Ledger.OpenOperation)
}

// Claim implements [guard.Ledger].
func (m *mortal) Claim(ctx context.Context, q ledger.ClaimRequest) (ledger.ClaimAnswer, error) {
	return within(ctx, m, q, m.Ledger.Claim)
}

// Finish implements [guard.Ledger].
func (m *mortal) Finish(ctx context.Context, q ledger.FinishRequest) (ledger.FinishAnswer, error) {
	return within(ctx, m, q, m.Ledger.Finish)
}
