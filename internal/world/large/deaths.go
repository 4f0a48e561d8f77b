package large

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/guard"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

// room is a part of the product's work in which its process may die.
type room string

const (
	inSweep    room = "a sweep"
	inReverify room = "a re-verification"
	inAudit    room = "an audit"
	inAuditAll room = "an audit of all"
	inIntake   room = "a pass of the intake"
	inImport   room = "an import"
	inTelling  room = "a telling"
	inReport   room = "a report"
	inPerson   room = "a person's action"
	inWorker   room = "the queue's worker"
)

// rooms lists them, with how many steps there may pass at most before a death, and whether
// providers are asked there.
var rooms = []struct {
	room
	steps int
	asks  bool
}{
	{inSweep, 100, true}, {inReverify, 60, true}, {inAudit, 100, true}, {inAuditAll, 100, true}, {inIntake, 60, true},
	{inImport, 8, false}, {inTelling, 60, false}, {inReport, 20, false}, {inPerson, 12, false}, {inWorker, 8, false},
}

// moment is where in a step a process dies.
type moment int

const (
	beforeStatement moment = iota
	afterStatement         // it is done and committed, and the process does nothing with the answer
	atRequest              // to a provider
)

func (m moment) String() string {
	return [...]string{"before a statement", "after a commit", "at a request"}[m]
}

// ending is how a process dies: after so many steps in which it could have.
type ending struct {
	moment
	left int
}

// deathOf draws a death from a number.
func deathOf(n int) (room, ending) {
	in := rooms[n%len(rooms)]
	n /= len(rooms)
	e := ending{moment: moment(n % 3)}
	n /= 3
	if e.left = n % in.steps; e.moment == atRequest {
		e.left %= 8
	}
	if e.moment == atRequest && !in.asks {
		e.moment = beforeStatement
	}
	return in.room, e
}

// doom ends the product's process at one of its steps: all after it reach neither the
// database nor a provider, not even those that would give something back.
type doom struct {
	armed, dead atomic.Bool
	moment      moment // set before it is armed
	left        atomic.Int64
}

// after lets so many steps pass before the end.
func (d *doom) after(e ending) {
	d.moment = e.moment
	d.left.Store(int64(e.left))
	d.armed.Store(true)
}

// spare ends it, and reports whether the process had died. Another one then goes on.
func (d *doom) spare() bool {
	d.armed.Store(false)
	return d.dead.Swap(false)
}

// over reports whether the process is dead, at this moment of a step at the latest.
func (d *doom) over(at moment) bool {
	if d.dead.Load() {
		return true
	}
	if !d.armed.Load() || d.moment != at || d.left.Add(-1) >= 0 {
		return false
	}
	d.dead.Store(true)
	return true
}

// TraceQueryStart implements [pgx.QueryTracer].
func (d *doom) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return d.begins(ctx)
}

// TraceQueryEnd implements [pgx.QueryTracer].
func (d *doom) TraceQueryEnd(_ context.Context, conn *pgx.Conn, e pgx.TraceQueryEndData) {
	d.ended(conn, e.Err)
}

// TraceBatchStart implements [pgx.BatchTracer].
func (d *doom) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return d.begins(ctx)
}

// TraceBatchQuery implements [pgx.BatchTracer].
func (d *doom) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements [pgx.BatchTracer].
func (d *doom) TraceBatchEnd(_ context.Context, conn *pgx.Conn, e pgx.TraceBatchEndData) {
	d.ended(conn, e.Err)
}

func (d *doom) begins(ctx context.Context) context.Context {
	if !d.over(beforeStatement) {
		return ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(errDied)
	return ctx
}

// ended is told of a statement that is over. Within a transaction nothing is committed yet.
func (d *doom) ended(conn *pgx.Conn, err error) {
	if err == nil && conn.PgConn().TxStatus() == 'I' {
		d.over(afterStatement)
	}
}

// perilous is a way to a provider on which the product's process may die.
type perilous struct {
	next http.RoundTripper
	doom *doom
}

// RoundTrip implements [http.RoundTripper].
func (p perilous) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.doom.over(atRequest) {
		if r.Body != nil {
			_ = r.Body.Close() // as the contract of a transport asks
		}
		return nil, errDied
	}
	return p.next.RoundTrip(r)
}

var errDied = errors.New("the process died")

// busy reports whether a process died so lately that its leases still keep others out.
func (w *World) busy() bool { return w.clock.Now().Before(w.deadTill) }

// mortally runs a part of the product, which may be its last.
func (w *World) mortally(in room, run func() error) error {
	before := w.in
	w.in = in
	defer func() { w.in = before }()
	e, dies := w.dying[in]
	if !dies {
		return run()
	}
	delete(w.dying, in)
	w.doom.after(e)
	err := run()
	if !w.doom.spare() {
		e.left = int(max(w.doom.left.Load(), 0)) // it got through; the next one goes on counting
		w.dying[in] = e
		return err
	}
	w.died(in, e.moment)
	w.deadTill = w.clock.Now().Add(61 * time.Second)
	// A new process knows nothing of what the old one had in memory.
	for _, name := range sourceNames {
		w.hire(name)
	}
	w.changed() // it may have been about to tell of something
	return errDied
}

func (w *World) died(in room, at moment) {
	w.tally.fault("product died in " + string(in))
	w.tally.fault("product died " + at.String())
}

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
