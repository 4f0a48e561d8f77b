package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

const (
	// startJitter spreads the ticks of replicas, so that they do not all ask for the same
	// row at the same moment.
	startJitter = 300 * time.Millisecond
	// lookAgain is when a job looks again whose place another run has, or whose database
	// was away.
	lookAgain = 5 * time.Second
	// clockEvery is how often a job reads the database's clock.
	clockEvery = time.Minute
)

// told is what a run says of itself in the log.
type told struct {
	changed bool // worth a line where nobody looks for faults
	attrs   []any
	blind   int    // operations that could not be looked at
	why     string // and why; empty: all could be
}

// job is one run of the schedule.
type job struct {
	*daemon
	name string // sweep/stripe-main, as in the ledger
	spec config.Spec
	run  func(context.Context, sweep.Options) (told, error)
	most time.Duration   // how long a run may take
	ctx  context.Context // of the schedule: its end is that of a run under way
	warn *rate.Sometimes // of all jobs: that the database is away is said once

	// What a look leaves to the next one. Cron never lets two overlap.
	now   func() time.Time // the database's time, as it goes on since read
	read  time.Time
	next  time.Time // nothing is due before, by the database's clock
	pause time.Time // no look before, by this process's clock
}

// Run looks whether the run is due, and does it. What is due is judged by the database's
// clock alone: replicas whose own clocks differ mean the same tick. A tick that could not
// be tried, because the database was away or another run had the place, is tried again
// until it is a row, so that a night's audit does not wait for the next night.
func (j *job) Run() {
	if j.ctx.Err() != nil || time.Now().Before(j.pause) {
		return
	}
	due, err := j.due()
	switch {
	case err != nil:
		j.pause = time.Now().Add(lookAgain)
	case !due.IsZero():
		err = j.do(due)
		var running *ledger.RunningError
		if errors.As(err, &running) || ledger.Passing(err) {
			j.pause = time.Now().Add(lookAgain)
			return
		}
		j.next = j.spec.Next(due)
	}
}

// due gives the newest due time that was not tried yet; zero when there is none.
func (j *job) due() (time.Time, error) {
	if j.now != nil && time.Since(j.read) < clockEvery && j.now().Before(j.next) {
		return time.Time{}, nil
	}
	now, err := Clock(j.ctx, j.ledger.Load())
	if err != nil {
		if j.ctx.Err() == nil {
			j.warn.Do(func() { j.Log.Warn("the schedule waits for the database", "error", err.Error()) })
		}
		return time.Time{}, err
	}
	j.now, j.read = now, time.Now()
	at := now()
	if at.Before(j.next) {
		return time.Time{}, nil
	}
	due := lastDue(j.spec, at)
	if due.IsZero() {
		j.next = j.spec.Next(at)
	}
	return due, nil
}

// do runs one tick.
func (j *job) do(due time.Time) error {
	ctx, cancel := context.WithTimeout(j.ctx, j.most)
	defer cancel()
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(rand.N(startJitter)):
	}
	began := time.Now()
	out, err := j.attempt(ctx, sweep.Options{Now: j.now, Tick: j.spec.Tick(due)})
	j.report(ctx, out, err, time.Since(began))
	return err
}

// attempt does the run. A panic is a failure of this run and of nothing else: its place is
// free again once its lease is over.
func (j *job) attempt(ctx context.Context, o sweep.Options) (out told, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			j.Log.Error("a run panicked", "run", j.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	return j.run(ctx, o)
}

// report logs how a run went. That another replica has the place is how replicas share
// the work, and no fault.
func (j *job) report(ctx context.Context, out told, err error, took time.Duration) {
	var running *ledger.RunningError
	var tick *ledger.TickError
	var held *ledger.HeldError
	switch {
	case errors.As(err, &running), errors.As(err, &tick), errors.As(err, &held):
		j.Log.Debug("left to another", "run", j.name, "reason", err.Error())
		return
	case err != nil && j.ctx.Err() != nil:
		j.Log.Info("stopped in the middle", "run", j.name)
	case err != nil:
		j.Log.Error("run failed", "run", j.name, "error", err.Error())
	}
	j.metrics.ran(j.name, took)
	if err != nil {
		return
	}
	if out.why != "" {
		j.Log.WarnContext(ctx, "could not look", "run", j.name, "operations", out.blind, "reason", out.why)
	}
	level := slog.LevelDebug
	if out.changed {
		level = slog.LevelInfo
	}
	attrs := append([]any{"run", j.name}, out.attrs...)
	j.Log.Log(ctx, level, "run done", append(attrs, "took", took.Round(time.Millisecond).String())...)
}
