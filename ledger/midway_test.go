package ledger_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// blocked lets a batch that closes an operation come as far as its effect, which another
// transaction has locked: statements of the same round trip lie before it and behind it.
func blocked(ctx context.Context, w *world) (other pgx.Tx, o recon.Operation, b ledger.Batch, done <-chan error) {
	w.Helper()
	w.seed("op-1")
	now := t0.Add(time.Minute)
	h := w.hold()
	o = w.due(now, 10)[0].Operation
	b = closing(h, now, o)
	stray := b.Effects[0]
	stray.Status = recon.InFlight
	w.record(ledger.Batch{Hold: h, RunID: "run-1", Now: now, Effects: []recon.Effect{stray}})
	other, err := w.db.Begin(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = other.Rollback(context.WithoutCancel(w.Context())) })
	if _, err := other.Exec(w.Context(), `SELECT FROM reconciler.effects FOR UPDATE`); err != nil {
		w.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := w.led.Record(ctx, b)
		ended <- err
	}()
	for waiting := 0; waiting == 0; time.Sleep(10 * time.Millisecond) {
		waiting = one[int](w, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	}
	return other, o, b, ended
}

func TestADeadlockInTheMiddleOfABatchIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, _, _, done := blocked(t.Context(), w)
	// The batch waited first, so that it is the one that the database ends.
	if _, err := other.Exec(t.Context(), `SELECT FROM reconciler.operations FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	if err := other.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if s := w.story("op-1"); s.Operation.State != recon.Succeeded || len(s.Effects) != 1 {
		t.Errorf("the operation is %s, with %d effects", s.Operation.State, len(s.Effects))
	}
	w.verifyChains()
}

func TestABatchThatIsInterruptedInTheMiddleLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, stop := context.WithCancel(t.Context())
	other, o, b, done := blocked(ctx, w)
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was interrupted", err)
	}
	if err := other.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := w.story("op-1"); s.Operation.Version != o.Version || len(s.Journal) != 1 || len(s.Effects) != 0 {
		t.Errorf("it left %+v", s)
	}
	w.record(b) // on a connection that works, and nobody holds the rows
	if s := w.story("op-1"); s.Operation.State != recon.Succeeded {
		t.Errorf("the operation is %s", s.Operation.State)
	}
}
