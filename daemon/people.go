package daemon

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// wakeEvery is how often findings that somebody put off are looked through. People put
// things off by hours, so a minute is prompt.
const wakeEvery = time.Minute

// People gives the configured people and limits as the ledger keeps them.
func People(c *config.Config) ledger.People {
	p := ledger.People{People: make([]ledger.Person, 0, len(c.People)), ApproveAbove: c.ApproveAbove}
	for _, person := range c.People {
		p.People = append(p.People, ledger.Person{Name: person.Name, Role: person.Role, Slack: person.Slack, DBRole: person.DBRole})
	}
	return p
}

// NewDesk takes what people decide, and looks effects up at the configured sources. watch
// is told of every request to a provider; nil: nobody is.
func NewDesk(c *config.Config, l *ledger.Ledger, now func() time.Time, watch config.Watch) *sweep.Desk {
	return &sweep.Desk{Ledger: l, Now: now, Source: func(name recon.SourceName) (sources.Source, error) {
		s, ok := c.Source(name)
		if !ok {
			return nil, nil // taken out of the configuration since: what is stored is all there is
		}
		return s.Open(watch) // a client of its own: the sweep's is the sweep's
	}}
}

// applyPeople stores who may act, and above which amounts two must agree.
func applyPeople(ctx context.Context, l *ledger.Ledger, c *config.Config, now time.Time) error {
	if err := l.ApplyPeople(ctx, People(c), now); err != nil {
		return fmt.Errorf("apply the configured people: %w", err)
	}
	return nil
}

// wake opens findings again whose acknowledgement or snooze is over. A failure is
// told and tried again: nothing depends on the minute.
func (d *daemon) wake(ctx context.Context, l *ledger.Ledger) {
	tick := time.NewTicker(wakeEvery)
	defer tick.Stop()
	for {
		now, err := l.Now(ctx)
		n := 0
		if err == nil {
			n, err = l.WakeFindings(ctx, now.Add(-wakeEvery)) // the planning of notices goes first, and tells people
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			d.Log.Warn("findings that were put off were not looked through", "error", err.Error())
		case n > 0:
			d.Log.Info("findings that were put off are open again", "count", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
