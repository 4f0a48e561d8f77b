package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

const (
	// A database that is away at the start is tried again after firstRetry, then after
	// twice as long each time, at most maxRetry.
	firstRetry = time.Second
	maxRetry   = 15 * time.Second
	// noticesEvery is how often it is planned who is told, and the outbox read.
	noticesEvery = 2 * time.Second
)

// Options say what to run.
type Options struct {
	Config *config.Config
	// DatabaseURL is where the ledger is.
	DatabaseURL string
	// Tenant is the one that is expected; empty: the one that the database role names.
	Tenant string
	// Holder names this process to others.
	Holder string
	Log    *slog.Logger
	// Ready is told the address of the private listener once it answers; for tests and
	// for a listener on port 0. Nil: nobody is.
	Ready func(address string)
	// ReadyPublic is told the address of the public listener before Ready is called, where
	// there is one.
	ReadyPublic func(address string)
	// Reload asks for the configuration to be read again, by Load. Nil: nobody asks.
	Reload <-chan os.Signal
	Load   func() (*config.Config, error)
}

// daemon is what runs.
type daemon struct {
	Options
	metrics *metrics
	ledger  atomic.Pointer[ledger.Ledger] // nil until the database answered
	ready   atomic.Bool                   // policies applied and the first snapshot taken

	receivers map[string]*receiver         // sources that take deliveries
	inbox     atomic.Pointer[inbox.Store]  // nil until the database answered
	writer    atomic.Pointer[inbox.Writer] // and what stores deliveries in it
	bell      *bell

	notifiers   map[string]escalation.Notifier // clients of the destinations, by name
	clickPlaces chan struct{}                  // one for each click that is worked on
	front       atomic.Pointer[http.Handler]   // what answers at the public listener; nil: there is none
}

// Run runs until ctx ends, and then stops in order. It returns an error where it could
// not start: an address in use, a schema that this program does not know.
func Run(ctx context.Context, o Options) error {
	d := &daemon{Options: o, metrics: newMetrics(o.Config), bell: newBell(), clickPlaces: make(chan struct{}, maxClicks)}
	life, work := &lifecycle{log: o.Log}, &lifecycle{log: o.Log}
	defer func() { // orderly although ctx has ended
		d.ready.Store(false)
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
		defer cancel()
		work.stop(ending)
		life.stop(ending)
	}()
	if err := d.start(ctx, life, work); err != nil {
		if ctx.Err() != nil {
			return nil // told to stop while starting
		}
		return err
	}
	d.Log.Info("running", "tenant", d.ledger.Load().Tenant(), "sources", len(o.Config.Sources), "actions", len(o.Config.Policies))
	for {
		select {
		case <-ctx.Done():
			d.Log.Info("told to stop")
			return nil
		case <-d.Reload:
			if err := d.reload(ctx, work); err != nil {
				return err
			}
		}
	}
}

// start starts the parts in the order in which they need each other. work takes those that
// a new configuration starts anew.
func (d *daemon) start(ctx context.Context, life, work *lifecycle) error {
	for _, n := range d.Config.Notes {
		d.Log.Warn("configuration", "note", n.String())
	}
	var err error
	if d.receivers, err = receivers(d.Config); err != nil {
		return err
	}
	if d.notifiers, err = notifiers(d.Config); err != nil {
		return err
	}
	if err := d.listen(ctx, life); err != nil {
		return err
	}
	l, err := d.openLedger(ctx, 0)
	if err != nil {
		return err
	}
	life.started("ledger", func(context.Context) error { l.Close(); return nil })
	if err := d.openInbox(ctx, life); err != nil {
		return err
	}
	if err := d.retry(ctx, "apply policies", func() error { return d.applyPolicies(ctx, l, d.Config) }); err != nil {
		return err
	}
	if err := d.retry(ctx, "fold the tallies", func() error { return d.catchUp(ctx, l) }); err != nil {
		return err
	}
	if err := d.retry(ctx, "take the first snapshot", func() error { return d.snapshot(ctx, l) }); err != nil {
		return err
	}
	d.ledger.Store(l)
	d.ready.Store(true)
	life.started("clicks in Slack", d.drainClicks)
	life.started("waking findings", service(context.WithoutCancel(ctx), func(ctx context.Context) { d.wake(ctx, l) }))
	life.started("snapshots", service(context.WithoutCancel(ctx), func(ctx context.Context) { d.snapshots(ctx, l) }))
	return d.startWork(ctx, work)
}

// startWork starts what the configuration says is to be done. The ledger is open.
func (d *daemon) startWork(ctx context.Context, work *lifecycle) error {
	l := d.ledger.Load()
	if err := d.deliver(ctx, work, l); err != nil {
		return err
	}
	if err := d.takeIn(ctx, work, l); err != nil {
		return err
	}
	return d.schedule(ctx, work, l)
}

// openLedger waits for the database as long as it takes. A schema that this program
// does not know is no matter of waiting. conns bounds its connections; 0: the default.
func (d *daemon) openLedger(ctx context.Context, conns int32) (*ledger.Ledger, error) {
	var l *ledger.Ledger
	err := d.retry(ctx, "open the ledger", func() error {
		var err error
		l, err = ledger.Open(ctx, ledger.Options{URL: d.DatabaseURL, Tenant: d.Tenant, MaxConns: conns})
		return err
	})
	return l, err
}

// retry does something until it succeeds, ctx ends, or the error is one that waiting
// does not mend.
func (d *daemon) retry(ctx context.Context, what string, f func() error) error {
	for wait := firstRetry; ; wait = min(2*wait, maxRetry) {
		err := f()
		if err == nil || ctx.Err() != nil || !ledger.Passing(err) {
			return errors.Join(err, ctx.Err())
		}
		d.Log.Warn("the database is away; trying again", "to", what, "in", wait.String(), "error", err.Error())
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (d *daemon) applyPolicies(ctx context.Context, l *ledger.Ledger, c *config.Config) error {
	now, err := l.Now(ctx)
	if err != nil {
		return err
	}
	applied, err := l.ApplyPolicies(ctx, c.Policies, now)
	if err != nil {
		return fmt.Errorf("apply the configured policies: %w", err)
	}
	for _, p := range applied {
		d.Log.Info("policy", "action", p.Action, "version", p.Version)
	}
	return applyPeople(ctx, l, c, now)
}

// deliver starts the planning and the delivery of notices, where there is anybody to
// tell.
func (d *daemon) deliver(ctx context.Context, life *lifecycle, l *ledger.Ledger) error {
	if len(d.Config.Destinations) == 0 {
		return nil
	}
	now, err := Clock(ctx, l)
	if err != nil {
		return err
	}
	deliverer := &escalation.Deliverer{
		Notifiers: d.notifiers, Fallback: d.Config.Escalation.Fallback, Outbox: l, Stories: l, Now: now,
		Policy: tellPolicy(d.Config), Log: d.Log, Observe: d.metrics.noticed,
	}
	planner := &escalation.Planner{Desk: l, Policy: tellPolicy(d.Config), Now: now, Log: d.Log}
	life.started("escalation", service(context.WithoutCancel(ctx), func(ctx context.Context) { planner.Run(ctx, noticesEvery) }))
	life.started("notices", service(context.WithoutCancel(ctx), func(ctx context.Context) {
		if err := deliverer.Run(ctx, noticesEvery); err != nil {
			d.Log.Error("the delivery of notices ended", "error", err.Error())
		}
	}))
	return nil
}
