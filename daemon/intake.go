package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

const (
	// inboxConns is how many connections the inbox has for itself: a long sweep must never
	// keep a delivery waiting.
	inboxConns = 8
	// lookEvery is how often the inbox is looked into when nobody rings.
	lookEvery = 5 * time.Second
	// breath is the least pause after a pass, so that events that come close together are
	// one; after a longer pass it is as long as the pass, so that deliveries keep their half.
	breath = 25 * time.Millisecond
	// listenAgain is when a broken connection to listen on is made anew.
	listenAgain = 5 * time.Second
	// promptEvery is the least time between two sweeps of a source that events ask for.
	promptEvery = 5 * time.Second
	// recoverEvery is how often a provider's own list of events is read for deliveries that
	// were missed.
	recoverEvery = time.Hour
)

// openInbox gives deliveries a place to go, where any can come.
func (d *daemon) openInbox(ctx context.Context, life *lifecycle) error {
	if len(d.receivers) == 0 {
		return nil
	}
	l, err := d.openLedger(ctx, inboxConns)
	if err != nil {
		return err
	}
	life.started("inbox", func(context.Context) error { l.Close(); return nil })
	box := inbox.Open(l)
	d.inbox.Store(box)
	writer := inbox.NewWriter(box)
	d.writer.Store(writer)
	life.started("storing of deliveries", service(context.WithoutCancel(ctx), writer.Run))
	life.started("notifications", service(context.WithoutCancel(ctx), func(ctx context.Context) { d.bell.notify(ctx, box, d.Log) }))
	return nil
}

// takeIn starts what becomes of stored events: the intake, the sweeps that it asks for,
// and the recovery of what was never delivered.
func (d *daemon) takeIn(ctx context.Context, life *lifecycle, l *ledger.Ledger) error {
	box := d.inbox.Load()
	if box == nil {
		return nil
	}
	now, err := Clock(ctx, l)
	if err != nil {
		return err
	}
	prompts, err := d.prompts(ctx, l)
	if err != nil {
		return err
	}
	start := func(name string, f func(context.Context)) {
		life.started(name, service(context.WithoutCancel(ctx), f))
	}
	for _, p := range prompts {
		start("sweeps of "+string(p.source)+" at once", p.serve)
	}
	start("recovery", func(ctx context.Context) { d.recoverMissed(ctx, box, l, now) })
	start("intake", func(ctx context.Context) { d.intake(ctx, d.newIntake(box, l), now, prompts) })
	start("listening for events", func(ctx context.Context) { d.hear(ctx, box) })
	return nil
}

// newIntake joins the sources that have events with an inbox and a ledger.
func (d *daemon) newIntake(box *inbox.Store, l *ledger.Ledger) *sweep.Intake {
	in := &sweep.Intake{
		Inbox: box, Ledger: l, Sheets: map[recon.SourceName]recon.Sheet{}, Kinds: kindsOf(d.Config.Policies), Watch: d.metrics.intake(),
		Changes: d.Config.Limits.ChangesPerRun,
	}
	for _, s := range d.Config.Sources {
		in.Sheets[s.Name] = s.Sheet
		if r := d.receivers[string(s.Name)]; r != nil {
			in.Sources = append(in.Sources, r)
		}
	}
	return in
}

// kindsOf are the kinds of effects that the actions of each source make.
func kindsOf(policies []recon.Policy) map[recon.SourceName][]string {
	kinds := map[recon.SourceName][]string{}
	for _, p := range policies {
		kinds[p.Source] = append(kinds[p.Source], p.Effect)
	}
	return kinds
}

// intake takes events in when somebody rings, and looks by itself from time to time.
func (d *daemon) intake(ctx context.Context, in *sweep.Intake, now func() time.Time, prompts map[recon.SourceName]*prompt) {
	warn := rate.Sometimes{Interval: time.Minute}
	pause := rests{bell: d.bell}
	in.Rest = pause.after
	ask := func(name recon.SourceName) {
		if p := prompts[name]; p != nil {
			poke(p.rung)
		}
	}
	in.Watch.Left = ask
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.bell.here:
		case <-time.After(lookEvery):
		}
		began := time.Now()
		pause.begin()
		out, err := in.Run(ctx, now)
		took := time.Since(began)
		if err != nil && ctx.Err() == nil {
			warn.Do(func() { d.Log.Warn("events could not be taken in; they wait in the inbox", "error", err.Error()) })
		}
		for name := range out.Left {
			ask(name)
		}
		if out.Events > 0 || out.Concluded > 0 {
			d.Log.Debug("events taken in", "events", out.Events, "done", out.Done, "failed", out.Failed, "concluded", out.Concluded)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(breath, min(took, longestRest))):
		}
	}
}

// hear rings for what other processes stored.
func (d *daemon) hear(ctx context.Context, box *inbox.Store) {
	url := d.Config.Database.DirectURL
	if url == "" {
		url = d.DatabaseURL
	}
	for {
		err := box.Listen(ctx, url, func() { poke(d.bell.here) })
		if ctx.Err() != nil {
			return
		}
		d.Log.Debug("no longer listening for events; the inbox is looked into by itself", "error", err.Error())
		select {
		case <-ctx.Done():
			return
		case <-time.After(listenAgain):
		}
	}
}

// prompt runs a sweep of one source as soon as an event leaves something to it.
type prompt struct {
	*job
	source recon.SourceName
	rung   chan struct{}
}

// prompts are the sources that are swept at once, unless sweeps are switched off.
func (d *daemon) prompts(ctx context.Context, l *ledger.Ledger) (map[recon.SourceName]*prompt, error) {
	all := map[recon.SourceName]*prompt{}
	if d.Config.Schedule.Sweep.Off() {
		return all, nil
	}
	for _, source := range d.Config.Sources {
		if d.receivers[string(source.Name)] == nil {
			continue
		}
		s, err := NewSweep(d.Config, source, l, d.metrics.requested(source.Name))
		if err != nil {
			return nil, fmt.Errorf("open source %s: %w", source.Name, err)
		}
		s.Holder, s.Log, s.Watch = d.Holder, d.Log, d.metrics.watch(source.Name)
		j := &job{daemon: d, name: runSweep + "/" + string(source.Name), run: sweeping(s.Run), ctx: ctx}
		all[source.Name] = &prompt{job: j, source: source.Name, rung: make(chan struct{}, 1)}
	}
	return all, nil
}

// serve sweeps whenever it is rung for, with a pause after each. That another sweep has
// the place is fine: the next tick finds what is due.
func (p *prompt) serve(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.rung:
		}
		began := time.Now()
		var out told
		now, err := Clock(ctx, p.ledger.Load())
		if err == nil {
			out, err = p.attempt(ctx, sweep.Options{Now: now})
		}
		if ctx.Err() == nil {
			p.report(ctx, out, err, time.Since(began))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(promptEvery):
		}
	}
}

// recoverMissed reads the providers' own lists of events, at the start and then every
// hour. One process at a time reads a source.
func (d *daemon) recoverMissed(ctx context.Context, box *inbox.Store, l *ledger.Ledger, now func() time.Time) {
	for {
		for _, to := range d.receivers {
			if feeder, can := to.Receiver.(sweep.FeedSource); can {
				err := d.recoverFrom(ctx, box, l, feeder, now)
				if err != nil && ctx.Err() == nil {
					d.Log.Warn("missed events could not be recovered", "source", string(to.name), "error", err.Error())
				}
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(recoverEvery):
		}
	}
}

// recoverFrom reads one source's events and says what came of it.
func (d *daemon) recoverFrom(ctx context.Context, box *inbox.Store, l *ledger.Ledger, source sweep.FeedSource, now func() time.Time) error {
	out, err := readFeed(ctx, l, d.Holder, &sweep.Recovery{Inbox: box, Source: source, Oldest: l.FirstOpened, Look: d.metrics.watch(source.Name()).Look}, now)
	for _, u := range out.Unseen {
		d.Log.Warn("events that were not seen", "source", string(u.Source), "from", u.From, "to", u.To, "why", u.Why)
	}
	if n := out.New(); n > 0 {
		d.Log.Info("events that no delivery had brought", "source", string(source.Name()), "events", n)
		d.bell.ring()
	}
	return err
}

// readFeed reads a source's feed under the place of its run, so that two processes do not
// read the same. Where another one does so now, that is enough.
func readFeed(ctx context.Context, l *ledger.Ledger, holder string, r *sweep.Recovery, now func() time.Time) (sweep.Recovered, error) {
	var out sweep.Recovered
	err := inPlace(ctx, l, ledger.RunStart{Name: "recover/" + string(r.Source.Name()), Holder: holder}, func(ctx context.Context) (any, error) {
		var err error
		out, err = r.Run(ctx, now)
		return nil, err
	})
	var running *ledger.RunningError
	if errors.As(err, &running) {
		return out, nil
	}
	return out, err
}
