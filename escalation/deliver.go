package escalation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	// batch is how many notices one pass reads; at one a second it is well under the
	// time that a restart may take.
	batch = 20
	// claim is how long a notice is held: longer than a look-back, a post and a plain
	// post after a refusal, at ten seconds each.
	claim = time.Minute
	// settleWithin bounds the recording of a message that was sent while the process
	// was told to stop.
	settleWithin = 5 * time.Second
)

// Result is how one notice went, for metrics.
type Result string

const (
	Posted      Result = "posted"
	Repeated    Result = "repeated"  // posted again after a lost answer, and marked so
	Recovered   Result = "recovered" // a lost answer's message was found in the channel
	Edited      Result = "edited"
	Postponed   Result = "postponed"   // to be tried again soon
	Undelivered Result = "undelivered" // refused until somebody mends it; tried again later
)

// Results lists every result.
var Results = []Result{Posted, Repeated, Recovered, Edited, Postponed, Undelivered}

// Deliverer delivers the notices of one destination, at most one a second. One
// goroutine uses it; several processes may, since a claim is exclusive.
type Deliverer struct {
	Destination string
	Notifier    Notifier
	Outbox      Outbox
	Stories     Stories
	Now         func() time.Time
	// Pause waits; nil waits in real time. A simulated clock brings its own.
	Pause func(context.Context, time.Duration) error
	Log   *slog.Logger // nil: the default one
	// Observe is told every result; nil: nobody.
	Observe func(destination string, r Result)

	pace     *rate.Limiter
	held     time.Time // nothing is sent before
	failures int       // in a row
}

// Run delivers until the context ends. A ledger that is away is logged and tried
// again; it never ends the run.
func (d *Deliverer) Run(ctx context.Context, every time.Duration) error {
	for {
		wait := every
		if _, err := d.Pass(ctx); err != nil && ctx.Err() == nil {
			d.log().ErrorContext(ctx, "notices cannot be read or recorded", "destination", d.Destination, "error", err)
			wait = max(every, 10*time.Second)
		}
		if err := d.pause(ctx, wait); err != nil {
			return nil // told to stop
		}
	}
}

// Pass delivers what is due, once, and says how many notices it dealt with. It stops
// early, without an error, when the destination asks for time. An error means that
// the outbox could not be read or written, or that the context ended.
func (d *Deliverer) Pass(ctx context.Context) (int, error) {
	if d.Now().Before(d.held) {
		return 0, nil
	}
	due, err := d.Outbox.DueNotices(ctx, d.Destination, d.Now(), batch)
	if err != nil {
		return 0, fmt.Errorf("read due notices for %s: %w", d.Destination, err)
	}
	for i, n := range due {
		if err := d.wait(ctx); err != nil {
			return i, err
		}
		if err := d.one(ctx, n); err != nil {
			return i, err
		}
		if d.Now().Before(d.held) {
			return i + 1, nil
		}
	}
	return len(due), nil
}

// one reads what the notice shows, claims it, delivers it and records how it went.
func (d *Deliverer) one(ctx context.Context, n recon.Notice) error {
	story, err := d.Stories.Story(ctx, n.Operation)
	if err != nil {
		return fmt.Errorf("read operation %s for notice %s: %w", n.Operation, n.ID, err)
	}
	now := d.Now()
	ok, err := d.Outbox.ClaimNotice(ctx, n.ID, now, now.Add(claim))
	if err != nil {
		return fmt.Errorf("claim notice %s: %w", n.ID, err)
	}
	if !ok {
		return nil
	}
	receipt, result, sendErr := d.deliver(ctx, n, d.message(n, story, now))
	after := d.Now()
	out := outcome{receipt: receipt, result: result}
	if sendErr != nil {
		out = judgeFailure(n, sendErr, d.failures, after)
		d.failures++
		d.log().LogAttrs(ctx, out.level(), "notice not delivered", slog.String("destination", d.Destination),
			slog.String("notice", n.ID), slog.String("operation", string(n.Operation)),
			slog.String("error", sendErr.Error()), slog.Time("next", out.delivery.Next))
	} else {
		d.failures = 0
		out.delivery.Receipt = receipt
	}
	d.held = out.hold
	if d.Observe != nil {
		d.Observe(d.Destination, out.result)
	}
	// What was posted must be recorded even when the process was told to stop meanwhile.
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	if err := d.Outbox.SettleNotice(sctx, n.ID, out.delivery, after); err != nil {
		return fmt.Errorf("record notice %s: %w", n.ID, err)
	}
	return nil
}

// message makes what the notice shows. An edit shows the finding that its message
// was posted for.
func (d *Deliverer) message(n recon.Notice, story recon.Story, now time.Time) Message {
	m := Message{Notice: n.ID, Step: n.Step, Story: story, Now: now}
	print := n.Finding
	if n.Message != "" {
		print = n.Message
	}
	for _, f := range story.Findings {
		if f.Fingerprint() == print {
			m.About = f
		}
	}
	return m
}

// deliver makes the requests for one notice.
func (d *Deliverer) deliver(ctx context.Context, n recon.Notice, m Message) (recon.Receipt, Result, error) {
	if n.Step == StepFirst {
		return d.post(ctx, n, m)
	}
	err := d.Notifier.Edit(ctx, n.Root, m)
	if errors.Is(err, Gone) {
		// The old message cannot be changed any more. It may still say "open", so the end
		// is told anew.
		return d.post(ctx, n, m)
	}
	return n.Root, Edited, err
}

// post sends a new message, after looking for an earlier one where there may be one.
func (d *Deliverer) post(ctx context.Context, n recon.Notice, m Message) (recon.Receipt, Result, error) {
	result := Posted
	if n.Doubt {
		r, found, err := d.Notifier.Find(ctx, n.ID, n.FirstTry.Add(-recon.ClockSkew))
		switch {
		case err != nil && worthLookingAgain(n, err):
			return recon.Receipt{}, "", fmt.Errorf("look for an earlier post: %w", err)
		case found:
			return r, Recovered, nil
		}
		m.Repeat, result = true, Repeated
	}
	r, err := d.Notifier.Send(ctx, m)
	return r, result, err
}

// wait keeps to one message a second, the rate that Slack and most others allow.
func (d *Deliverer) wait(ctx context.Context) error {
	if d.pace == nil {
		d.pace = rate.NewLimiter(rate.Every(time.Second), 1)
	}
	now := d.Now()
	return d.pause(ctx, d.pace.ReserveN(now, 1).DelayFrom(now))
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
