package escalation

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// batch is how many notices one pass reads. At one a second a pass stays short enough
// for a daemon that is told to stop.
const batch = 20

// Result is how one notice went, for metrics.
type Result string

const (
	Posted      Result = "posted"
	Replied     Result = "replied"     // in the thread of its message
	Repeated    Result = "repeated"    // posted again after a lost answer, and marked so
	Recovered   Result = "recovered"   // a lost answer's message was found in the channel
	Edited      Result = "edited"      // the message was changed in place
	Postponed   Result = "postponed"   // to be tried again soon
	Undelivered Result = "undelivered" // refused until somebody mends it; tried again later
)

// Results lists every result.
var Results = []Result{Posted, Replied, Repeated, Recovered, Edited, Postponed, Undelivered}

// Deliverer delivers what is due, at most one message a second to each destination.
// One goroutine uses it; several processes may, since a claim is exclusive.
type Deliverer struct {
	Notifiers map[string]Notifier // by the destination's name
	// Fallback is the destination that gets what another one refuses until somebody mends
	// it; empty: none. What it refuses itself is counted and logged.
	Fallback string
	Outbox   Outbox
	Stories  Stories
	// Policy is that of the planner; messages show what it will do next.
	Policy Policy
	Now    func() time.Time
	// Pause waits; nil waits in real time. A simulated clock brings its own.
	Pause func(context.Context, time.Duration) error
	Log   *slog.Logger // nil: the default one
	// Observe is told every result, by one goroutine per destination; nil: nobody.
	Observe func(destination string, r Result)

	lanes map[string]*lane
	paces map[string]*rate.Limiter // by place
}

// Run delivers until the context ends. A ledger that is away is logged and asked
// again; it never ends the run.
func (d *Deliverer) Run(ctx context.Context, every time.Duration) error {
	for {
		wait := every
		if _, err := d.Pass(ctx); err != nil && ctx.Err() == nil {
			d.log().ErrorContext(ctx, "notices cannot be read or recorded", "error", err)
			wait = max(every, 10*time.Second)
		}
		if d.pause(ctx, wait) != nil {
			return nil // told to stop
		}
	}
}

// Pass deals once with what is due, and says with how many notices. Places go side by
// side, so that a slow one delays no other. An error means that the outbox
// could not be read or written, or that the context ended.
func (d *Deliverer) Pass(ctx context.Context) (int, error) {
	due, err := d.Outbox.DueNotices(ctx, d.Now(), batch)
	if err != nil {
		return 0, fmt.Errorf("read due notices: %w", err)
	}
	told, err := d.told(ctx, due)
	if err != nil {
		return 0, err
	}
	byPlace := map[string][]recon.Notice{}
	lanes := map[string]*lane{}
	for _, n := range due {
		lanes[n.Destination] = d.lane(n.Destination)
		place := d.place(n.Destination)
		byPlace[place] = append(byPlace[place], n)
	}
	var g errgroup.Group
	for _, notices := range byPlace {
		g.Go(func() error {
			for _, n := range notices {
				if err := lanes[n.Destination].one(ctx, n, told); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return len(due), g.Wait()
}

// lane gives what is remembered of a destination between passes.
func (d *Deliverer) lane(name string) *lane {
	l, ok := d.lanes[name]
	if !ok {
		l = newLane(d, name)
		if d.lanes == nil {
			d.lanes = map[string]*lane{}
		}
		d.lanes[name] = l
	}
	return l
}

// digestSpan is how far a digest looks back.
const digestSpan = 24 * time.Hour

// told reads at once what the notices about findings show. Who claims one says which
// version of the finding was read: what changes before its turn comes is read again by the
// next pass.
func (d *Deliverer) told(ctx context.Context, due []recon.Notice) (map[string]recon.Told, error) {
	var findings []string
	for _, n := range due {
		if n.Finding != "" && !slices.Contains(findings, n.Finding) {
			findings = append(findings, n.Finding)
		}
	}
	if len(findings) == 0 {
		return nil, nil
	}
	told, err := d.Stories.Told(ctx, findings)
	if err != nil {
		return nil, fmt.Errorf("read what %d findings tell: %w", len(findings), err)
	}
	return told, nil
}

// message makes what a notice shows, and reads it where it is not about a finding.
func (d *Deliverer) message(ctx context.Context, n recon.Notice, told map[string]recon.Told) (Message, error) {
	now := d.Now()
	m := Message{
		Notice: n.ID, Edition: n.Edition, Act: n.Act, Step: n.Step, Reason: Reason(n.Reason),
		Mention: n.Mention, Refused: n.Refused, Now: now,
	}
	switch {
	case n.Incident != "":
		i, err := d.Stories.Incident(ctx, n.Incident, now)
		m.Incident = &i
		return m, err
	case n.Digest != "":
		digest, err := d.Stories.Digest(ctx, now.Add(-digestSpan), now)
		digest.Day = n.Digest
		slices.SortFunc(digest.Kinds, func(a, b recon.DigestKind) int { return cmp.Compare(Gravity(a.Kind), Gravity(b.Kind)) })
		m.Digest = &digest
		return m, err
	case n.Report != "":
		r, err := d.Stories.DayReport(ctx, n.Report)
		m.Report = &r
		return m, err
	}
	t, ok := told[n.Finding]
	if !ok {
		return m, fmt.Errorf("finding %s is not there", n.Finding)
	}
	m.About, m.Story, m.Assignee, m.PausedUntil, m.Proposal = t.Finding, t.Story, t.Assignee, t.PausedUntil, t.Proposal
	m.Next = upcoming(t.Alarm, d.Policy, now)
	return m, nil
}

func (d *Deliverer) pause(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return ctx.Err()
	}
	if d.Pause != nil {
		return d.Pause(ctx, wait)
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (d *Deliverer) log() *slog.Logger {
	if d.Log != nil {
		return d.Log
	}
	return slog.Default()
}
