package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/robfig/cron/v3"
	"golang.org/x/time/rate"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

const (
	// maxRun bounds one run. The next tick goes on where it stopped.
	maxRun = time.Hour
	// maxAudit bounds an audit, which lists and judges a whole window.
	maxAudit = 12 * time.Hour
	// lookAtSchedule is how often each job looks whether it is due. Between due times that
	// costs nothing but the look.
	lookAtSchedule = time.Second
)

// schedule starts cron, which makes the jobs look whether they are due. The last tick is
// run at once: if it was missed while nobody ran, it is made up for, and else it is a row
// already.
func (d *daemon) schedule(ctx context.Context, life *lifecycle, l *ledger.Ledger) error {
	// Runs are told to end together with the schedule, not with the signal: parts stop in
	// their order.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	jobs, err := d.jobs(running, l)
	if err != nil {
		cancel()
		return err
	}
	c := cron.New(cron.WithLogger(cron.DiscardLogger), cron.WithChain(guards(d.Log)...))
	for _, j := range jobs {
		c.Schedule(cron.Every(lookAtSchedule), j)
	}
	c.Start()
	life.started("schedule", func(ctx context.Context) error {
		ended := c.Stop() // no new looks
		cancel()          // a run under way ends after its step and gives its place back
		select {
		case <-ended.Done():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return nil
}

// guards stand around every look. Their order matters: the one that lets no look overlap
// another must see it end also where it panics, or it lets no look through ever again.
func guards(log *slog.Logger) []cron.JobWrapper {
	return []cron.JobWrapper{cron.SkipIfStillRunning(cron.DiscardLogger), cron.Recover(cronLogger{log})}
}

// jobs are the scheduled runs: those of each source, and those of the ledger.
func (d *daemon) jobs(ctx context.Context, l *ledger.Ledger) ([]*job, error) {
	warn := &rate.Sometimes{Interval: time.Minute}
	jobs := []*job{{daemon: d, name: runHousekeeping, spec: config.Hourly(), run: d.keepsHouse(l), most: maxRun, ctx: ctx, warn: warn}}
	for _, source := range d.Config.Sources {
		s, err := NewSweep(d.Config, source, l, d.metrics.requested(source.Name))
		if err != nil {
			return nil, fmt.Errorf("open source %s: %w", source.Name, err)
		}
		s.Holder, s.Log, s.Watch = d.Holder, d.Log, d.metrics.watch(source.Name)
		for _, r := range scheduled(d.Config) {
			j := &job{daemon: d, name: r.name + "/" + string(source.Name), spec: r.spec, run: sweeping(s.Run), most: maxRun, ctx: ctx, warn: warn}
			switch r.name {
			case runReverify:
				j.run = sweeping(sliced(s.Reverify))
			case runAudit:
				if j.run, err = d.audits(source, l); err != nil {
					return nil, err
				}
				j.most = maxAudit
			}
			jobs = append(jobs, j)
		}
	}
	if spec := d.Config.Schedule.Report; !spec.Off() {
		jobs = append(jobs, &job{daemon: d, name: runReport, spec: spec, run: d.reports(l), most: maxReport, ctx: ctx, warn: warn})
	}
	return jobs, nil
}

// sweeping makes a run of the schedule from one that tells of operations.
func sweeping(run func(context.Context, sweep.Options) (sweep.Outcome, error)) func(context.Context, sweep.Options) (told, error) {
	return func(ctx context.Context, o sweep.Options) (told, error) {
		out, err := run(ctx, o)
		return told{
			changed: out.Claimed > 0, blind: out.Blind, why: out.BlindReason,
			attrs: []any{"claimed", out.Claimed, "succeeded", out.Succeeded, "failed", out.Failed,
				"released", out.Released, "manual_review", out.ManualReview, "kept", out.Kept, "blind", out.Blind,
				"lost", out.Lost, "set_aside", out.SetAside, "provider_calls", out.ProviderCalls},
		}, err
	}
}

// slice is how many closed operations are looked at before the source is given back:
// open ones go before them, and wait for it meanwhile.
const slice = 2000

// sliced does a run in slices, until nothing is due, and tells of all of them. The tick is
// that of the first.
func sliced(run func(context.Context, sweep.Options) (sweep.Outcome, error)) func(context.Context, sweep.Options) (sweep.Outcome, error) {
	return func(ctx context.Context, o sweep.Options) (sweep.Outcome, error) {
		o.Limit = slice
		var sum sweep.Outcome
		for {
			out, err := run(ctx, o)
			plus(&sum, out)
			if err != nil || out.Claimed < slice {
				return sum, err
			}
			o.Tick = ""
			select {
			case <-ctx.Done():
				return sum, ctx.Err()
			case <-time.After(time.Second):
			}
		}
	}
}

// plus adds what a slice did to what those before it did, as far as it is told.
func plus(sum *sweep.Outcome, o sweep.Outcome) {
	sum.Claimed += o.Claimed
	sum.Succeeded += o.Succeeded
	sum.Failed += o.Failed
	sum.Released += o.Released
	sum.ManualReview += o.ManualReview
	sum.Kept += o.Kept
	sum.Blind += o.Blind
	sum.Lost += o.Lost
	sum.SetAside += o.SetAside
	sum.ProviderCalls += o.ProviderCalls
	if o.BlindReason != "" {
		sum.BlindReason = o.BlindReason
	}
}

// audits gives the audit of a source, as a run of the schedule. It has a client of its own:
// a source serves one run at a time.
func (d *daemon) audits(source config.Source, l *ledger.Ledger) (func(context.Context, sweep.Options) (told, error), error) {
	a, err := NewAudit(d.Config, source, l, d.metrics.requested(source.Name))
	if err != nil {
		return nil, fmt.Errorf("open source %s for audits: %w", source.Name, err)
	}
	a.Holder, a.Log, a.Watch = d.Holder, d.Log, d.metrics.watch(source.Name)
	return func(ctx context.Context, o sweep.Options) (told, error) {
		r, err := a.Run(ctx, sweep.AuditOptions{Now: o.Now, Tick: o.Tick})
		if err != nil {
			return told{}, err
		}
		for _, u := range r.Unseen {
			d.Log.Warn("not seen by the audit", "source", string(u.Source), "from", u.From, "to", u.To, "why", u.Why)
		}
		return told{changed: true, attrs: []any{"from", r.Window.From, "to", r.Window.To,
			"operations", r.Operations, "effects", r.Effects, "findings", len(r.Findings), "unseen", len(r.Unseen)}}, nil
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

// cronLogger hands cron's words about panics to ours.
type cronLogger struct{ log *slog.Logger }

func (l cronLogger) Info(string, ...any) {}

func (l cronLogger) Error(err error, msg string, args ...any) {
	l.log.Error("schedule: "+msg, append(args, "error", err.Error())...)
}
