package ledger_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

func TestASourceHasOneHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, err := w.led.HoldSource(t.Context(), source, "host-a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.led.HoldSource(t.Context(), source, "host-b", time.Minute)
	held, ok := errors.AsType[*ledger.HeldError](err)
	if !ok || held.By != "host-a" || held.Since.IsZero() || !held.Until.Equal(a.Until.Truncate(time.Microsecond)) {
		t.Fatalf("second holder: %v, want a HeldError that names host-a", err)
	}
	if _, err := w.led.HoldSource(t.Context(), "another", "host-b", time.Minute); err != nil {
		t.Errorf("another source: %v", err)
	}
	renewed, err := w.led.RenewSource(t.Context(), a, 2*time.Minute)
	if err != nil || !renewed.Until.After(a.Until) || renewed.Token != a.Token {
		t.Errorf("renewed: %+v, %v", renewed, err)
	}
	if err := w.led.ReleaseSource(t.Context(), renewed); err != nil {
		t.Fatal(err)
	}
	b, err := w.led.HoldSource(t.Context(), source, "host-b", time.Minute)
	if err != nil || b.Token <= a.Token {
		t.Errorf("after release: %+v, %v; want a greater token than %d", b, err, a.Token)
	}
	if _, err := w.led.RenewSource(t.Context(), a, time.Minute); !isStale(err) {
		t.Errorf("renewing a hold that was given back: %v", err)
	}
	if err := w.led.ReleaseSource(t.Context(), a); err != nil {
		t.Errorf("releasing a lost hold: %v, want no error", err)
	}
	if _, err := w.led.RenewSource(t.Context(), b, time.Minute); err != nil {
		t.Errorf("the true holder lost its hold to a late release: %v", err)
	}
}

func isStale(err error) bool {
	_, ok := errors.AsType[*ledger.StaleHoldError](err)
	return ok
}

func TestADeadHolderIsReplacedByTheDatabasesClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.SimulatedTime(t0))
	a, err := w.led.HoldSource(t.Context(), source, "host-a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE reconciler.simulated_time SET at = $1`, t0.Add(time.Minute))
	if _, err := w.led.RenewSource(t.Context(), a, time.Minute); err != nil {
		t.Errorf("a hold that is over and that nobody took: %v, want it renewed", err)
	}
	w.exec(`UPDATE reconciler.simulated_time SET at = $1`, t0.Add(2*time.Minute))
	if _, err := w.led.HoldSource(t.Context(), source, "host-b", time.Minute); err != nil {
		t.Fatalf("taking over from a dead holder: %v", err)
	}
	if _, err := w.led.RenewSource(t.Context(), a, time.Minute); !isStale(err) {
		t.Errorf("the old holder wakes: %v, want a StaleHoldError", err)
	}
}

// A process that was stopped for long, and one that was started in its place under the
// same name, are two.
func TestAHolderThatComesBackUnderItsOldNameIsAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.SimulatedTime(t0))
	old, err := w.led.HoldSource(t.Context(), source, "host-a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE reconciler.simulated_time SET at = $1`, t0.Add(2*time.Minute))
	now, err := w.led.HoldSource(t.Context(), source, "host-a", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.led.RenewSource(t.Context(), old, time.Minute); !isStale(err) {
		t.Errorf("the old one renews its hold: %v, want a StaleHoldError", err)
	}
	for _, state := range []*ledger.SourceState{nil, {Blinds: 7}} {
		if _, err := w.led.Record(t.Context(), ledger.Batch{Hold: old, Now: t0, SourceState: state}); !isStale(err) {
			t.Errorf("the old one records: %v, want a StaleHoldError", err)
		}
	}
	if err := w.led.ReleaseSource(t.Context(), old); err != nil {
		t.Error(err)
	}
	if _, err := w.led.RenewSource(t.Context(), now, time.Minute); err != nil {
		t.Errorf("the new one has lost its hold: %v", err)
	}
}

func TestOfManyHoldersOneWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var wins, held int
	var mu sync.Mutex // guards wins and held
	var g sync.WaitGroup
	for range 20 {
		g.Go(func() {
			_, err := w.led.HoldSource(t.Context(), source, "host", time.Minute)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				wins++
			} else if _, ok := errors.AsType[*ledger.HeldError](err); ok {
				held++
			}
		})
	}
	g.Wait()
	if wins != 1 || held != 19 {
		t.Errorf("%d won and %d were told who holds it, want 1 and 19", wins, held)
	}
}

func TestAHoldHasLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, ttl := range []time.Duration{0, -time.Second, 2 * time.Hour} {
		if _, err := w.led.HoldSource(t.Context(), source, "host", ttl); err == nil {
			t.Errorf("a hold of %s was granted", ttl)
		}
	}
	if _, err := w.led.HoldSource(t.Context(), source, "", time.Minute); err == nil {
		t.Error("a hold without a name was granted")
	}
}
