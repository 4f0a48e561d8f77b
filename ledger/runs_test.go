package ledger_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

func start(tick string) ledger.RunStart {
	return ledger.RunStart{Name: "sweep/stripe-main", Tick: tick, Holder: "host-a", TTL: time.Minute}
}

func TestARunHasItsPlaceToItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, err := w.led.BeginRun(t.Context(), start("2026-11-02T10:00"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tick := range []string{"2026-11-02T10:00", "2026-11-02T10:01", ""} { // "": by hand
		_, err := w.led.BeginRun(t.Context(), start(tick))
		running, ok := errors.AsType[*ledger.RunningError](err)
		if !ok || running.By != "host-a" || !running.Since.Equal(r.StartedAt.Truncate(time.Microsecond)) {
			t.Errorf("tick %q while one runs: %v, want a RunningError that names host-a", tick, err)
		}
	}
	if _, err := w.led.BeginRun(t.Context(), ledger.RunStart{Name: "audit/stripe-main", Holder: "host-b", TTL: time.Minute}); err != nil {
		t.Errorf("another name: %v", err)
	}
	if _, err := w.led.HeartbeatRun(t.Context(), r, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := w.led.FinishRun(t.Context(), r, ledger.RunEnd{Outcome: ledger.RunDone, Counts: json.RawMessage(`{"claimed": 3}`)}); err != nil {
		t.Fatal(err)
	}
	// A second replica fires the same tick a moment later (the lock is free by now).
	_, err = w.led.BeginRun(t.Context(), start("2026-11-02T10:00"))
	if done, ok := errors.AsType[*ledger.TickError](err); !ok || done.By != "host-a" {
		t.Errorf("the same tick again: %v, want a TickError", err)
	}
	if _, err := w.led.BeginRun(t.Context(), start("2026-11-02T10:01")); err != nil {
		t.Errorf("the next tick: %v", err)
	}
	runs, err := w.led.LastRuns(t.Context(), "sweep/stripe-main", 10)
	if err != nil || len(runs) != 2 || runs[1].Outcome != ledger.RunDone || string(runs[1].Counts) != `{"claimed": 3}` || runs[0].Outcome != "" {
		t.Errorf("runs: %+v, %v", runs, err)
	}
	if err := w.led.FinishRun(t.Context(), r, ledger.RunEnd{Outcome: ledger.RunDone}); err == nil {
		t.Error("a finished run was finished again")
	}
	s, err := w.led.Snapshot(t.Context(), t0)
	if err != nil || len(s.RunLastSuccess) != 2 || s.RunLastSuccess["sweep/stripe-main"].IsZero() || !s.RunLastSuccess["audit/stripe-main"].IsZero() {
		t.Errorf("last successes: %v, %v", s.RunLastSuccess, err)
	}
}

func TestADeadRunIsClosedAsAbandoned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.SimulatedTime(t0))
	dead, err := w.led.BeginRun(t.Context(), start("10:00"))
	if err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE reconciler.simulated_time SET at = $1`, t0.Add(time.Minute))
	if _, err := w.led.BeginRun(t.Context(), start("10:01")); err != nil {
		t.Fatalf("taking the place of a dead run: %v", err)
	}
	runs, err := w.led.LastRuns(t.Context(), dead.Name, 10)
	if err != nil || len(runs) != 2 || runs[1].Outcome != ledger.RunAbandoned || !runs[1].FinishedAt.Equal(t0.Add(time.Minute)) {
		t.Errorf("runs: %+v, %v", runs, err)
	}
	if _, err := w.led.HeartbeatRun(t.Context(), dead, time.Minute); !isAbandoned(err) {
		t.Errorf("heartbeat of the dead one: %v, want an AbandonedError", err)
	}
	if err := w.led.FinishRun(t.Context(), dead, ledger.RunEnd{Outcome: ledger.RunFailed, Error: "late"}); !isAbandoned(err) {
		t.Errorf("finish of the dead one: %v, want an AbandonedError", err)
	}
}

// Whoever comes next does what the dead run did not finish, but not for ever: a tick that
// kills its process each time is left after three more tries.
func TestTheTickOfADeadRunIsRunAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.SimulatedTime(t0))
	for n := range 4 {
		w.exec(`UPDATE reconciler.simulated_time SET at = $1`, t0.Add(time.Duration(n)*time.Minute))
		if _, err := w.led.BeginRun(t.Context(), start("10:00")); err != nil {
			t.Fatalf("after %d deaths: %v", n, err)
		}
		if _, err := w.led.BeginRun(t.Context(), start("10:00")); err == nil {
			t.Fatalf("after %d deaths the tick runs twice", n)
		}
	}
	w.exec(`UPDATE reconciler.simulated_time SET at = $1`, t0.Add(4*time.Minute))
	_, err := w.led.BeginRun(t.Context(), start("10:00"))
	if _, left := errors.AsType[*ledger.TickError](err); !left {
		t.Errorf("after four deaths: %v, want a TickError", err)
	}
	if _, err := w.led.BeginRun(t.Context(), start("10:01")); err != nil {
		t.Errorf("the next tick: %v", err)
	}
	runs, err := w.led.LastRuns(t.Context(), "sweep/stripe-main", 10)
	if err != nil || len(runs) != 5 || runs[1].Outcome != ledger.RunAbandoned {
		t.Errorf("runs: %+v, %v", runs, err)
	}
}

func TestARunThatIsToldToStopGivesItsTickBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 6 { // however often: nothing died
		r, err := w.led.BeginRun(t.Context(), start("10:00"))
		if err != nil {
			t.Fatalf("after %d stops: %v", n, err)
		}
		if err := w.led.FinishRun(t.Context(), r, ledger.RunEnd{Outcome: ledger.RunAbandoned, Error: "told to stop"}); err != nil {
			t.Fatal(err)
		}
	}
}

func isAbandoned(err error) bool {
	_, ok := errors.AsType[*ledger.AbandonedError](err)
	return ok
}

func TestATickIsRunOnceByManyReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var wins int
	var mu sync.Mutex // guards wins
	var g sync.WaitGroup
	for range 10 {
		g.Go(func() {
			if r, err := w.led.BeginRun(t.Context(), start("10:00")); err == nil {
				mu.Lock()
				wins++
				mu.Unlock()
				if err := w.led.FinishRun(t.Context(), r, ledger.RunEnd{Outcome: ledger.RunDone}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	g.Wait()
	if wins != 1 {
		t.Errorf("the tick was run %d times, want once", wins)
	}
}
