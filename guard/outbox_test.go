package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/guard"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// inTx runs f in a transaction of the shop's own and commits unless f fails.
func (s *stand) inTx(f func(pgx.Tx) error) error {
	s.t.Helper()
	return pgx.BeginFunc(s.t.Context(), s.db, f)
}

func (s *stand) table() {
	s.t.Helper()
	if _, err := s.db.Exec(s.t.Context(), `CREATE TABLE orders (id text PRIMARY KEY, credit bigint NOT NULL DEFAULT 0)`); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stand) count(sql string) int {
	s.t.Helper()
	var n int
	if err := s.db.QueryRow(s.t.Context(), sql).Scan(&n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

func TestChangeAndIntentCommitTogetherAndAWorkerSends(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.table()
	w := &guard.Worker{Guard: s.guard, Action: "refund.create", Send: s.provider.answers(done)}
	broken := errors.New("the business rule says no")
	for _, c := range []struct {
		order string
		fails error
	}{{"2", broken}, {"1", nil}} {
		err := s.inTx(func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `INSERT INTO orders (id) VALUES ($1)`, c.order); err != nil {
				return err
			}
			if _, err := guard.Enqueue(t.Context(), tx, intent(c.order)); err != nil {
				return err
			}
			if a, err := w.Once(t.Context()); err != nil || a.Attempts != 0 {
				t.Errorf("sent before the commit: %+v, %v", a, err)
			}
			return c.fails
		})
		if !errors.Is(err, c.fails) {
			t.Fatal(err)
		}
	}
	first, err := w.Once(t.Context())
	if err != nil || first.Verdict != guard.Succeeded || first.Attempts != 1 {
		t.Errorf("the committed one: %+v, %v", first, err)
	}
	if a, err := w.Once(t.Context()); err != nil || a.Attempts != 0 {
		t.Errorf("the one that was rolled back: %+v, %v", a, err)
	}
	if n := s.count(`SELECT count(*) FROM orders`); n != 1 {
		t.Errorf("%d orders", n)
	}
}

func TestAnIntentThatConflictsEndsTheTransaction(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	enqueue := func(in ledger.OpenRequest) error {
		return s.inTx(func(tx pgx.Tx) error { _, err := guard.Enqueue(t.Context(), tx, in); return err })
	}
	if err := errors.Join(enqueue(intent("1")), enqueue(intent("1"))); err != nil {
		t.Errorf("the same twice: %v", err)
	}
	other := intent("1")
	other.Amount++
	var refused *guard.RefusedError
	if err := enqueue(other); !errors.As(err, &refused) || refused.Opening != "conflict" || refused.Operation == "" {
		t.Errorf("another amount: %v", err)
	}
	other = intent("2")
	other.Action = "wire.send"
	if err := enqueue(other); !errors.As(err, &refused) || refused.Opening != "rejected" {
		t.Errorf("no policy: %v", err)
	}
}

func TestWorkersTogetherSendEverythingOnce(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	const n = 20
	for i := range n {
		if err := s.inTx(func(tx pgx.Tx) error {
			_, err := guard.Enqueue(t.Context(), tx, intent(string(rune('a'+i))))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	seen := map[recon.OperationID]int{}
	note := func(a guard.Answer) {
		mu.Lock()
		defer mu.Unlock()
		if a.Verdict != guard.Succeeded {
			t.Errorf("answer %+v", a)
		}
		if seen[a.Operation]++; len(seen) == n {
			cancel()
		}
	}
	var wg sync.WaitGroup
	for range 2 {
		w := &guard.Worker{Guard: s.guard, Action: "refund.create", Parallel: 3, Every: 20 * time.Millisecond,
			Send: s.provider.answers(done), Done: note}
		wg.Go(func() {
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if effects, sends := s.provider.effects(); effects != n || sends != n || len(seen) != n {
		t.Errorf("%d effects, %d sends, %d told, want %d of each", effects, sends, len(seen), n)
	}
}

func TestAWorkerThatIsToldToStopEndsItsAttempt(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	if _, err := s.ledger.OpenOperation(t.Context(), intent("1")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var end guard.Answer
	w := &guard.Worker{Guard: s.guard, Action: "refund.create", Done: func(a guard.Answer) { end = a },
		Send: func(ctx context.Context, a guard.Attempt) recon.AttemptReport {
			cancel()
			if ctx.Err() != nil {
				t.Error("the attempt was stopped in the middle")
			}
			return done
		}}
	if err := w.Run(ctx); err != nil {
		t.Error(err)
	}
	if end.Verdict != guard.Succeeded {
		t.Errorf("answer %+v", end)
	}
}

func TestAWorkerThatCanNeverWorkSaysSo(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	w := &guard.Worker{Guard: &guard.Guard{Ledger: s.ledger}, Action: "refund.create", Send: s.provider.answers(done)}
	var usage *ledger.UsageError
	if err := w.Run(t.Context()); !errors.As(err, &usage) { // it has no Holder
		t.Errorf("error %v", err)
	}
}

func TestAnOwnWriteHappensOnceAndWholly(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.table()
	if _, err := s.db.Exec(t.Context(), `INSERT INTO orders VALUES ('1')`); err != nil {
		t.Fatal(err)
	}
	credit := func(fails error) (guard.Answer, error) {
		var a guard.Answer
		err := s.inTx(func(tx pgx.Tx) error {
			var err error
			a, err = guard.OwnWrite(t.Context(), tx, guard.Own{Intent: intent("1"), Holder: "shop",
				Change: func(ctx context.Context, tx pgx.Tx) (guard.Made, error) {
					_, err := tx.Exec(ctx, `UPDATE orders SET credit = credit + 4200`)
					return guard.Made{ID: "credit-1", Result: json.RawMessage(`{"id":"credit-1"}`)}, errors.Join(err, fails)
				}})
			return err
		})
		return a, err
	}
	broken := errors.New("no")
	if _, err := credit(broken); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if n := s.count(`SELECT count(*) FROM reconciler.operations`); n != 0 {
		t.Errorf("%d operations of a change that was rolled back", n)
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			a, err := credit(nil)
			if err != nil || a.Verdict != guard.Succeeded || len(a.Result) == 0 {
				t.Errorf("answer %+v, %v", a, err)
			}
		})
	}
	wg.Wait()
	if got := s.count(`SELECT credit::int FROM orders`); got != 4200 {
		t.Errorf("credit %d, want 4200 once", got)
	}
	unnamed := guard.Own{Intent: intent("2"), Holder: "shop", Change: func(context.Context, pgx.Tx) (guard.Made, error) { return guard.Made{}, nil }}
	if err := s.inTx(func(tx pgx.Tx) error { _, err := guard.OwnWrite(t.Context(), tx, unnamed); return err }); err == nil {
		t.Error("a change without an id was taken")
	}
	late := guard.Own{Intent: intent("3"), Holder: "shop", Change: func(context.Context, pgx.Tx) (guard.Made, error) {
		s.advance(61 * time.Second)
		return guard.Made{ID: "x"}, nil
	}}
	if err := s.inTx(func(tx pgx.Tx) error { _, err := guard.OwnWrite(t.Context(), tx, late); return err }); err == nil {
		t.Error("a change that outlived its lease was taken")
	}
}
