package guard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// RefusedError says that an intent was not recorded, so that a caller who ends its
// transaction on errors does the right thing.
type RefusedError struct {
	Opening   string            // conflict or rejected
	Reason    string            // for people
	Operation recon.OperationID // the one that it conflicts with
}

func (e *RefusedError) Error() string { return "the intent was refused: " + e.Reason }

// Enqueue records an intent in the caller's transaction, together with the change that it
// belongs to; a [Worker] sends it after the commit. The transaction must be READ
// COMMITTED. A repeat answers with the operation that stands for the intent already.
func Enqueue(ctx context.Context, tx pgx.Tx, intent ledger.OpenRequest) (ledger.OpenAnswer, error) {
	opened, err := ledger.Within(tx).OpenOperation(ctx, intent)
	if err != nil {
		return opened, err
	}
	if opened.Verdict == "conflict" || opened.Verdict == "rejected" {
		return opened, &RefusedError{Opening: opened.Verdict, Reason: opened.Reason, Operation: opened.OperationID}
	}
	return opened, nil
}

// defaultEvery is how often a worker looks for work when there was none.
const defaultEvery = time.Second

// Worker sends what was recorded for one action, the longest-waiting first. Any number
// of them may run, in any number of processes.
type Worker struct {
	Guard  *Guard
	Action string
	Send   Send
	// Every is how often to look when there was nothing; 0: a second. It varies by a
	// quarter, so that workers do not come together.
	Every time.Duration
	// Parallel is how many are sent at once; 0: one.
	Parallel int
	// Done is told how each one stands after its attempt; nil: nobody is.
	Done func(Answer)
}

// Run sends until ctx ends, then lets the attempts that are under way end. It returns an
// error at once only where waiting mends nothing: a missing function or privilege.
func (w *Worker) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for range max(w.Parallel, 1) {
		group.Go(func() error { return w.loop(ctx) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("send %s: %w", w.Action, err)
	}
	return nil
}

func (w *Worker) loop(ctx context.Context) error {
	for ctx.Err() == nil {
		answer, err := w.Once(ctx)
		switch {
		case err == nil && answer.Attempts > 0:
			if w.Done != nil {
				w.Done(answer)
			}
			continue
		case err != nil && ctx.Err() == nil && !ledger.Passing(err):
			return err
		case err != nil:
			w.Guard.log().Warn("the ledger cannot be asked for work", "action", w.Action, "error", err.Error())
		}
		every := w.Every
		if every <= 0 {
			every = defaultEvery
		}
		pauseFor(ctx, every+time.Duration((rand.Float64()-0.5)*float64(every)/2))
	}
	return nil
}

// Once claims and sends one operation. The answer counts no attempt when none is waiting.
// An attempt that has begun is not stopped by ctx, only by its lease.
func (w *Worker) Once(ctx context.Context) (Answer, error) {
	run, err := w.Guard.claim(ctx, ledger.ClaimRequest{Action: w.Action})
	if err != nil {
		return Answer{}.uncertain(), err
	}
	a := Answer{Operation: run.claim.OperationID, Key: run.claim.Key}
	if !run.claim.Claimed {
		return a.declined(run.claim), nil
	}
	ctx = context.WithoutCancel(ctx)
	a.Attempts = 1
	report := w.Guard.send(ctx, run, w.Send)
	finish, err := w.Guard.finish(ctx, run, report)
	if err != nil {
		return a.uncertain(), err
	}
	return a.finished(finish, report), nil
}
