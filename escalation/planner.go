package escalation

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	// planBatch is how many findings are planned together, and planRounds how many
	// batches one pass makes, so that a daemon that is told to stop does so soon.
	planBatch  = 500
	planRounds = 40
)

// Desk keeps what is to be told. The ledger implements it. Every change is guarded by
// what was read, so that any number of processes may plan at once and repeat.
type Desk interface {
	// PassOverFolded marks as planned what changed and is told by its incident alone.
	PassOverFolded(ctx context.Context) error
	// Crowds counts what waits to be told for the first time, by source and kind.
	Crowds(ctx context.Context, now, since time.Time) ([]recon.Crowd, error)
	// Fold takes a crowd into an incident, which is planned at a time.
	Fold(ctx context.Context, f recon.Fold, now, since, plan time.Time) (int, error)
	// Alarms gives findings that changed, or whose time has come.
	Alarms(ctx context.Context, now time.Time, limit int) ([]recon.Alarm, error)
	SaveTellings(ctx context.Context, tellings []recon.Telling, now time.Time) error
	// Incidents gives those whose time has come.
	Incidents(ctx context.Context, now time.Time, limit int) ([]recon.Incident, error)
	SaveIncident(ctx context.Context, t recon.Telling, up, now time.Time) error
	PlanDigest(ctx context.Context, day string, destinations []string, reason string, now time.Time) error
}

// Planner turns findings into notices: when they open, change and end, whoever wrote
// them, and when a step of their ladder comes due by the passing of time alone.
type Planner struct {
	Desk   Desk
	Policy Policy
	Now    func() time.Time
	Log    *slog.Logger // nil: the default one

	digest string // the newest that was planned
}

// Pass plans everything that is to be planned now, and says how many findings and
// incidents that were. To stop at any point and to run it again is safe.
func (p *Planner) Pass(ctx context.Context) (int, error) {
	planned := 0
	if err := p.Desk.PassOverFolded(ctx); err != nil {
		return 0, err
	}
	for range planRounds {
		n, err := p.round(ctx)
		planned += n
		if err != nil {
			return planned, err
		}
		if n < planBatch {
			break
		}
	}
	n, err := p.incidents(ctx)
	if err != nil {
		return planned, err
	}
	return planned + n, p.planDigest(ctx)
}

// round folds crowds and plans one batch of what stands for itself.
func (p *Planner) round(ctx context.Context) (int, error) {
	now := p.Now()
	since := now.Add(-p.Policy.foldWithin())
	crowds, err := p.Desk.Crowds(ctx, now, since)
	if err != nil {
		return 0, err
	}
	for _, f := range Folds(crowds, p.Policy, now) {
		n, err := p.Desk.Fold(ctx, f, now, since, now.Add(gather))
		if err != nil {
			return 0, fmt.Errorf("%s findings of %s: %w", f.Kind, f.Source, err)
		}
		p.log().InfoContext(ctx, "findings are told as one incident", "source", f.Source, "kind", f.Kind, "findings", n, "reason", f.Reason)
	}
	alarms, err := p.Desk.Alarms(ctx, now, planBatch)
	if err != nil || len(alarms) == 0 {
		return 0, err
	}
	tellings := Plan(alarms, p.Policy, now)
	for _, t := range tellings {
		p.log().DebugContext(ctx, "planned", "finding", t.Finding, "reason", t.Reason, "notices", len(t.Notices), "next", t.Next)
	}
	return len(alarms), p.Desk.SaveTellings(ctx, tellings, now)
}

// incidents plans those whose time has come.
func (p *Planner) incidents(ctx context.Context) (int, error) {
	now := p.Now()
	due, err := p.Desk.Incidents(ctx, now, planBatch)
	if err != nil {
		return 0, err
	}
	for _, i := range due {
		t, up := PlanIncident(i, p.Policy, now)
		if t.Over {
			p.log().InfoContext(ctx, "incident is over", "source", i.Source, "kind", i.Kind, "findings", i.Total, "open", i.Open, "reason", t.Reason)
		}
		if err := p.Desk.SaveIncident(ctx, t, up, now); err != nil {
			return 0, err
		}
	}
	return len(due), nil
}

// planDigest plans the digest that is due. The ledger keeps it to one a day; what this
// process planned it does not ask for again.
func (p *Planner) planDigest(ctx context.Context) error {
	now := p.Now()
	day := p.Policy.Digest.due(now)
	if day == "" || day == p.digest {
		return nil
	}
	if err := p.Desk.PlanDigest(ctx, day, p.Policy.Digest.To, "digest", now); err != nil {
		return err
	}
	p.digest = day
	return nil
}

// Run plans until the context ends. A ledger that is away is logged and asked again.
func (p *Planner) Run(ctx context.Context, every time.Duration) {
	for {
		wait := every
		if _, err := p.Pass(ctx); err != nil && ctx.Err() == nil {
			p.log().ErrorContext(ctx, "it cannot be planned who is told", "error", err)
			wait = max(every, 10*time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (p *Planner) log() *slog.Logger {
	if p.Log != nil {
		return p.Log
	}
	return slog.Default()
}
