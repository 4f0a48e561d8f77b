package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// NewSweep joins a configured source with a ledger. watch is told of every request to
// the provider; nil: nobody is.
func NewSweep(c *config.Config, source config.Source, l sweep.Ledger, watch config.Watch) (*sweep.Sweep, error) {
	client, err := source.Open(watch)
	if err != nil {
		return nil, err
	}
	witnesses, err := witnessesOf(c, source.Name)
	if err != nil {
		return nil, err
	}
	return &sweep.Sweep{
		Ledger: l, Source: client, Witnesses: witnesses, Changes: c.Limits.ChangesPerRun, BlindAfter: blindAfter(c, source.Name),
	}, nil
}

// witnessesOf opens the sources whose business objects the source's actions name.
func witnessesOf(c *config.Config, source recon.SourceName) (map[string]sources.Witness, error) {
	witnesses := map[string]sources.Witness{}
	for _, p := range c.Policies {
		if p.Source != source || p.Witness == "" || witnesses[p.Witness] != nil {
			continue
		}
		for _, s := range c.Sources {
			if !slices.Contains(s.Witnesses, p.Witness) {
				continue
			}
			client, err := s.Open(nil) // its requests are not the source's
			if err != nil {
				return nil, err
			}
			witnesses[p.Witness], _ = client.(sources.Witness) // it has named its witnesses
		}
	}
	return witnesses, nil
}

// NewAudit joins a configured source with a ledger, for an audit.
func NewAudit(c *config.Config, source config.Source, l *ledger.Ledger, watch config.Watch) (*sweep.Audit, error) {
	s, err := NewSweep(c, source, l, watch)
	if err != nil {
		return nil, err
	}
	a := &sweep.Audit{Sweep: s, Accounts: l, Zone: c.Zone}
	for _, p := range c.Policies {
		if p.Source == source.Name {
			a.Policies = append(a.Policies, p)
		}
	}
	if feeder, can := s.Source.(sweep.FeedSource); can && len(feeder.Feeds()) > 0 {
		a.Recover = recovery(c, a, l, feeder)
	}
	return a, nil
}

// recovery reads a source's feed of changes into the inbox, under the place of its run, and
// takes in what it brought. Where another process does so now, that is enough.
func recovery(c *config.Config, a *sweep.Audit, l *ledger.Ledger, feeder sweep.FeedSource) func(context.Context, func() time.Time) (sweep.Recovered, error) {
	return func(ctx context.Context, now func() time.Time) (sweep.Recovered, error) {
		box := inbox.Open(l)
		read, err := readFeed(ctx, l, a.Holder, &sweep.Recovery{Inbox: box, Source: feeder, Oldest: l.FirstOpened, Look: a.Watch.Look}, now)
		if err != nil {
			return read, err
		}
		receiver, can := feeder.(sweep.IntakeSource)
		if !can {
			return read, nil
		}
		in := &sweep.Intake{Inbox: box, Ledger: l, Sources: []sweep.IntakeSource{receiver}, Sheets: map[recon.SourceName]recon.Sheet{},
			Kinds: kindsOf(c.Policies), Changes: c.Limits.ChangesPerRun, Watch: sweep.IntakeWatch{Judged: a.Watch.Judged, Look: a.Watch.Look}}
		for _, s := range c.Sources {
			in.Sheets[s.Name] = s.Sheet
		}
		_, err = in.Run(ctx, now)
		return read, err
	}
}

// Clock gives the database's time as it goes on, by which decisions are judged: the
// one clock that all processes and the acting side share.
func Clock(ctx context.Context, l *ledger.Ledger) (func() time.Time, error) {
	base, err := l.Now(ctx)
	if err != nil {
		return nil, err
	}
	read := time.Now()
	return func() time.Time { return base.Add(time.Since(read)).UTC() }, nil
}

// tellPolicy says who is told of findings, and when.
func tellPolicy(c *config.Config) escalation.Policy {
	p := c.Escalation.Policy
	if spec := c.Escalation.Digest.Schedule; !spec.Off() {
		p.Digest = escalation.Digest{
			Last: func(now time.Time) time.Time { return lastDue(spec, now) }, To: c.Escalation.Digest.To, Zone: c.Zone,
		}
	}
	return p
}

// blindAfter is the shortest time after which an action of the source wants to know
// that it cannot be asked; 0 when it has no action.
func blindAfter(c *config.Config, source recon.SourceName) time.Duration {
	var shortest time.Duration
	for _, p := range c.Policies {
		if d := p.BlindAfter.Std(); p.Source == source && (shortest == 0 || d < shortest) {
			shortest = d
		}
	}
	return shortest
}
