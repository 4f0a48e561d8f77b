package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

const (
	// maxRun bounds one run. The next tick goes on where it stopped.
	maxRun = time.Hour
	// maxAudit bounds an audit, which lists and judges a whole window.
	maxAudit = 12 * time.Hour
	// startJitter spreads the ticks of replicas, so that they do not all ask for the same
	// row at the same moment.
	startJitter = 300 * time.Millisecond
)

// job is one scheduled run of one source.
type job struct {
	*daemon
	name string // sweep/stripe-main, as in the ledger
	spec config.Spec
	run  func(context.Context, sweep.Options) (sweep.Outcome, error)
	most time.Duration   // how long a run may take; 0: maxRun
	ctx  context.Context // of the schedule: its end is that of a run under way
}

// schedule starts cron. The last tick is run at once: if it was missed while nobody
// ran, it is made up for, and else it is a row already.
func (d *daemon) schedule(ctx context.Context, life *lifecycle, l *ledger.Ledger) error {
	// Runs are told to end together with the schedule, not with the signal: parts stop in
	// their order.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	jobs, err := d.jobs(running, l)
	if err != nil {
		cancel()
		return err
	}
	logger := cronLogger{d.Log}
	c := cron.New(cron.WithLogger(logger), cron.WithLocation(time.UTC),
		cron.WithChain(cron.Recover(logger), cron.SkipIfStillRunning(logger)))
	var first sync.WaitGroup
	for _, j := range jobs {
		// Through cron's wrapper, so that it never overlaps the next tick.
		first.Go(c.Entry(c.Schedule(j.spec, j)).WrappedJob.Run)
	}
	c.Start()
	life.started("schedule", func(ctx context.Context) error {
		ticks, all := c.Stop(), make(chan struct{}) // no new ticks
		cancel()                                    // a run under way ends after its step and gives its place back
		go func() {
			defer close(all)
			<-ticks.Done()
			first.Wait()
		}()
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return nil
}

// jobs are the scheduled runs of all sources.
func (d *daemon) jobs(ctx context.Context, l *ledger.Ledger) ([]*job, error) {
	var jobs []*job
	for _, source := range d.Config.Sources {
		s, err := NewSweep(d.Config, source, l, d.metrics.requested(source.Name))
		if err != nil {
			return nil, fmt.Errorf("open source %s: %w", source.Name, err)
		}
		s.Holder, s.Log, s.Watch = d.Holder, d.Log, d.metrics.watch(source.Name)
		for _, r := range scheduled(d.Config) {
			j := &job{daemon: d, name: r.name + "/" + string(source.Name), spec: r.spec, run: s.Run, ctx: ctx}
			switch r.name {
			case runReverify:
				j.run = sliced(s.Reverify)
			case runAudit:
				if j.run, err = d.audits(source, l); err != nil {
					return nil, err
				}
				j.most = maxAudit
			}
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}

// slice is how many closed operations are looked at before the source is given back:
// open ones go before them, and wait for it meanwhile.
const slice = 2000

// sliced does a run in slices, until nothing is due. The tick is that of the first.
func sliced(run func(context.Context, sweep.Options) (sweep.Outcome, error)) func(context.Context, sweep.Options) (sweep.Outcome, error) {
	return func(ctx context.Context, o sweep.Options) (sweep.Outcome, error) {
		o.Limit = slice
		for {
			out, err := run(ctx, o)
			if err != nil || out.Claimed < slice {
				return out, err
			}
			o.Tick = ""
			select {
			case <-ctx.Done():
				return out, ctx.Err()
			case <-time.After(time.Second):
			}
		}
	}
}

// audits gives the audit of a source, as a run of the schedule. It has a client of its own:
// a source serves one run at a time.
func (d *daemon) audits(source config.Source, l *ledger.Ledger) (func(context.Context, sweep.Options) (sweep.Outcome, error), error) {
	a, err := NewAudit(d.Config, source, l, d.metrics.requested(source.Name))
	if err != nil {
		return nil, fmt.Errorf("open source %s for audits: %w", source.Name, err)
	}
	a.Holder, a.Log, a.Watch = d.Holder, d.Log, d.metrics.watch(source.Name)
	return func(ctx context.Context, o sweep.Options) (sweep.Outcome, error) {
		r, err := a.Run(ctx, sweep.AuditOptions{Now: o.Now, Tick: o.Tick})
		if err != nil {
			return sweep.Outcome{}, err
		}
		for _, u := range r.Unseen {
			d.Log.Warn("not seen by the audit", "source", string(u.Source), "from", u.From, "to", u.To, "why", u.Why)
		}
		d.Log.Info("accounted", "source", string(source.Name), "from", r.Window.From, "to", r.Window.To,
			"operations", r.Operations, "effects", r.Effects, "findings", len(r.Findings), "unseen", len(r.Unseen))
		return sweep.Outcome{}, nil
	}, nil
}

const (
	runSweep    = "sweep"
	runAudit    = "audit"
	runReverify = "reverify"
)

type scheduledRun struct {
	name string
	spec config.Spec
}

// scheduled are the kinds of runs that the configuration does not switch off.
func scheduled(c *config.Config) []scheduledRun {
	var list []scheduledRun
	for _, r := range []scheduledRun{{runSweep, c.Schedule.Sweep}, {runAudit, c.Schedule.Audit}, {runReverify, c.Schedule.Reverify}} {
		if !r.spec.Off() {
			list = append(list, r)
		}
	}
	return list
}

// Run does what is due now. Cron calls it, and it never runs twice at once.
func (j *job) Run() {
	most := maxRun
	if j.most > 0 {
		most = j.most
	}
	ctx, cancel := context.WithTimeout(j.ctx, most)
	defer cancel()
	select {
	case <-ctx.Done():
		return
	case <-time.After(rand.N(startJitter)):
	}
	due := lastDue(j.spec, time.Now())
	if due.IsZero() {
		return
	}
	began := time.Now()
	var out sweep.Outcome
	now, err := Clock(ctx, j.ledger.Load())
	if err == nil {
		out, err = j.run(ctx, sweep.Options{Now: now, Tick: j.spec.Tick(due)})
	}
	j.report(ctx, out, err, time.Since(began))
}

// report logs how a run went. That another replica has the place is how replicas share
// the work, and no fault.
func (j *job) report(ctx context.Context, out sweep.Outcome, err error, took time.Duration) {
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
	if err == nil {
		level := slog.LevelDebug
		if out.Claimed > 0 {
			level = slog.LevelInfo
		}
		if out.BlindReason != "" {
			j.Log.WarnContext(ctx, "could not look", "run", j.name, "operations", out.Blind, "reason", out.BlindReason)
		}
		j.Log.Log(ctx, level, "run done", "run", j.name, "claimed", out.Claimed, "succeeded", out.Succeeded, "failed", out.Failed,
			"released", out.Released, "manual_review", out.ManualReview, "kept", out.Kept, "blind", out.Blind,
			"lost", out.Lost, "set_aside", out.SetAside, "provider_calls", out.ProviderCalls, "took", took.Round(time.Millisecond).String())
	}
}

// lastDue is the newest due time at or before now; zero when there was none within a
// year. A schedule only knows what comes next, so it is asked from ever further back.
func lastDue(spec config.Spec, now time.Time) time.Time {
	for back := 2 * time.Minute; back <= 2*366*24*time.Hour; back *= 2 {
		var last time.Time
		for t := spec.Next(now.Add(-back)); !t.IsZero() && !t.After(now); t = spec.Next(t) {
			last = t
		}
		if !last.IsZero() {
			return last
		}
	}
	return time.Time{}
}

// cronLogger hands cron's words to ours.
type cronLogger struct{ log *slog.Logger }

func (l cronLogger) Info(msg string, args ...any) { l.log.Debug("schedule: "+msg, args...) }

func (l cronLogger) Error(err error, msg string, args ...any) {
	l.log.Error("schedule: "+msg, append(args, "error", err.Error())...)
}
