package daemon

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"
	"golang.org/x/time/rate"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// tenPast is the time of the databases of these tests, far from this process's.
var tenPast = time.Date(2026, 3, 2, 10, 0, 30, 0, time.UTC)

// clockwork is a ledger whose time a test sets, and the jobs of replicas on it.
type clockwork struct {
	*testing.T
	url string
	led *ledger.Ledger
	ran []string // ticks
}

func newClockwork(t *testing.T) *clockwork {
	t.Helper()
	w := &clockwork{T: t, url: pgtest.URL(t, pgtest.SimulatedTime(tenPast))}
	w.led = w.open(w.url)
	return w
}

func (w *clockwork) open(url string) *ledger.Ledger {
	w.Helper()
	l, err := ledger.Open(w.Context(), ledger.Options{URL: url})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(l.Close)
	return l
}

func (w *clockwork) set(at time.Time) {
	w.Helper()
	if err := w.led.SetSimulatedTime(w.Context(), at); err != nil {
		w.Fatal(err)
	}
}

// replica is the job of another process. Its run notes the tick.
func (w *clockwork) replica(l *ledger.Ledger) *job {
	c := parse(w.T, "", nil)
	log := slog.New(slog.NewTextHandler(&lockedBuffer{}, nil))
	d := &daemon{Options: Options{Config: c, Holder: "replica", Log: log}, metrics: newMetrics(c)}
	d.ledger.Store(l)
	return &job{
		daemon: d, name: "sweep/stripe-main", spec: c.Schedule.Sweep, most: time.Minute, ctx: w.Context(), warn: &rate.Sometimes{Interval: time.Hour},
		run: func(ctx context.Context, o sweep.Options) (told, error) {
			return told{}, inPlace(ctx, l, ledger.RunStart{Name: "sweep/stripe-main", Tick: o.Tick, Holder: "replica"}, func(context.Context) (any, error) {
				w.ran = append(w.ran, o.Tick)
				return nil, nil
			})
		},
	}
}

// look makes a job look at the database's clock now, and not when its pause is over.
func (w *clockwork) look(j *job) {
	j.read, j.pause = time.Time{}, time.Time{}
	j.Run()
}

func (w *clockwork) wantRan(want ...string) {
	w.Helper()
	if diff := cmp.Diff(want, w.ran); diff != "" {
		w.Fatalf("ticks (-want +got):\n%s", diff)
	}
}

// A tick is a row: who comes a moment later, or by a clock of its own that is years off,
// finds it done.
func TestB91_ATickIsRunOnceWhateverTheClocksOfReplicasSay(t *testing.T) {
	t.Parallel()
	w := newClockwork(t)
	a, b := w.replica(w.led), w.replica(w.led)
	w.look(a)
	w.look(b)
	w.look(a)
	w.wantRan("2026-03-02T10:00 UTC")
	w.set(tenPast.Add(29 * time.Second)) // 10:00:59
	w.look(a)
	w.wantRan("2026-03-02T10:00 UTC")
	w.set(tenPast.Add(30 * time.Second))
	w.look(b)
	w.look(a)
	w.wantRan("2026-03-02T10:00 UTC", "2026-03-02T10:01 UTC")
	w.set(tenPast.Add(time.Hour)) // nobody looked for an hour: that is one run
	w.look(a)
	w.look(b)
	w.set(tenPast) // and a clock that is set back repeats none
	w.look(a)
	w.look(w.replica(w.led))
	w.wantRan("2026-03-02T10:00 UTC", "2026-03-02T10:01 UTC", "2026-03-02T11:00 UTC")
}

func TestB87_AJobWaitsForARunByHandAndThenDoesItsTick(t *testing.T) {
	t.Parallel()
	w := newClockwork(t)
	manual, err := w.led.BeginRun(t.Context(), ledger.RunStart{Name: "sweep/stripe-main", Holder: "ana", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	j := w.replica(w.led)
	w.look(j)
	w.look(j)
	w.wantRan()
	if err := w.led.FinishRun(t.Context(), manual, ledger.RunEnd{Outcome: ledger.RunDone}); err != nil {
		t.Fatal(err)
	}
	j.Run()
	w.wantRan() // it looks again after a pause
	w.look(j)
	w.look(j)
	w.wantRan("2026-03-02T10:00 UTC")
}

func TestAJobTakesOverTheTickOfAProcessThatDied(t *testing.T) {
	t.Parallel()
	w := newClockwork(t)
	if _, err := w.led.BeginRun(t.Context(), ledger.RunStart{Name: "sweep/stripe-main", Tick: "2026-03-02T10:00 UTC", Holder: "dead", TTL: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	j := w.replica(w.led)
	w.look(j)
	w.wantRan()
	w.set(tenPast.Add(20 * time.Second))
	w.look(j)
	w.wantRan("2026-03-02T10:00 UTC")
}

// A night's audit must not wait for the next night because the database was away at its
// minute.
func TestATickIsDoneAsSoonAsTheDatabaseIsBack(t *testing.T) {
	t.Parallel()
	w := newClockwork(t)
	gate, url := newGate(t, w.url)
	gate.open()
	j := w.replica(w.open(url))
	w.look(j)
	w.wantRan("2026-03-02T10:00 UTC")
	gate.close()
	w.set(tenPast.Add(time.Minute))
	w.look(j)
	w.wantRan("2026-03-02T10:00 UTC")
	gate.open()
	w.look(j)
	w.wantRan("2026-03-02T10:00 UTC", "2026-03-02T10:01 UTC")
}

func TestATickThatWasStoppedInTheMiddleIsDoneByWhoeverComesNext(t *testing.T) {
	t.Parallel()
	w := newClockwork(t)
	j := w.replica(w.led)
	ctx, stop := context.WithCancel(t.Context())
	j.ctx = ctx
	j.run = func(ctx context.Context, o sweep.Options) (told, error) {
		return told{}, inPlace(ctx, w.led, ledger.RunStart{Name: j.name, Tick: o.Tick, Holder: "h"}, func(ctx context.Context) (any, error) {
			stop()
			return nil, ctx.Err()
		})
	}
	w.look(j)
	w.look(w.replica(w.led))
	w.wantRan("2026-03-02T10:00 UTC")
}

func TestB86_AJobThatPanickedRunsAtItsNextTick(t *testing.T) {
	t.Parallel()
	w := newClockwork(t)
	j := w.replica(w.led)
	run, calls := j.run, 0
	j.run = func(ctx context.Context, o sweep.Options) (told, error) {
		if calls++; calls == 1 {
			panic("one object is not as we thought")
		}
		return run(ctx, o)
	}
	look := cron.NewChain(guards(j.Log)...).Then(cron.FuncJob(func() { w.look(j) }))
	look.Run()
	for minute := range 3 {
		w.set(tenPast.Add(time.Duration(minute+1) * time.Minute))
		look.Run()
	}
	w.wantRan("2026-03-02T10:01 UTC", "2026-03-02T10:02 UTC", "2026-03-02T10:03 UTC")
}

// A run that panics in its place shows no more signs of life, so that the place is free again
// at the end of its lease and the next tick runs.
func TestB86_APanicInARunsPlaceLeavesNobodyWhoKeepsIt(t *testing.T) {
	t.Parallel()
	w := newClockwork(t)
	j := w.replica(w.led)
	run := j.run
	var alive context.Context
	j.run = func(ctx context.Context, o sweep.Options) (told, error) {
		return told{}, inPlace(ctx, w.led, ledger.RunStart{Name: j.name, Tick: o.Tick, Holder: "replica"}, func(ctx context.Context) (any, error) {
			alive = ctx
			panic("one object is not as we thought")
		})
	}
	w.look(j)
	if alive == nil || alive.Err() == nil {
		t.Fatal("the place of a run that panicked is kept")
	}
	j.run = run
	w.set(tenPast.Add(placeTTL - time.Second)) // the next tick is due, and the lease is not over
	w.look(j)
	w.wantRan()
	w.set(tenPast.Add(placeTTL))
	w.look(j)
	w.set(tenPast.Add(2 * time.Minute))
	w.look(j)
	w.wantRan("2026-03-02T10:01 UTC", "2026-03-02T10:02 UTC")
}

// Whatever panics beside the run: the look after it is not skipped for ever.
func TestB86_ALookThatPanickedIsFollowedByOthers(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	looks := 0
	look := cron.NewChain(guards(slog.New(slog.NewTextHandler(&log, nil)))...).Then(cron.FuncJob(func() {
		if looks++; looks == 1 {
			panic("boom")
		}
	}))
	for range 3 {
		look.Run()
	}
	if looks != 3 {
		t.Errorf("%d looks, want 3\n%s", looks, &log)
	}
}

func TestAPlaceIsKeptAndWhatWasDoneInItIsWritten(t *testing.T) {
	t.Parallel()
	w := newClockwork(t)
	start := ledger.RunStart{Name: "housekeeping", Tick: w.replica(w.led).spec.Tick(tenPast), Holder: "h"}
	err := inPlace(t.Context(), w.led, start, func(ctx context.Context) (any, error) {
		err := inPlace(ctx, w.led, start, func(context.Context) (any, error) { t.Error("two are in one place"); return nil, nil })
		if err == nil {
			t.Error("the place was given twice")
		}
		return map[string]int{"requests": 3}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	runs, err := w.led.LastRuns(t.Context(), "housekeeping", 2)
	if err != nil || len(runs) != 1 || runs[0].Outcome != ledger.RunDone || string(runs[0].Counts) != `{"requests": 3}` {
		t.Errorf("runs %+v, %v", runs, err)
	}
}
