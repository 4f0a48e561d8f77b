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
	// claim is how long a notice is held: longer than a look-back of several pages and
	// two posts at ten seconds each.
	claim = 2 * time.Minute
	// settleWithin bounds the recording of a message that was sent while the process
	// was told to stop.
	settleWithin = 5 * time.Second
)

// lane is one destination: its pace, and what is remembered of its faults.
type lane struct {
	*Deliverer
	name     string
	notifier Notifier
	pace     *rate.Limiter
	failures int // in a row
	blind    int // look-backs that failed in a row
	// last is the outcome that holds the lane back. Until last.hold no request is made,
	// and notices that come due get the same outcome.
	last outcome
}

func newLane(d *Deliverer, name string) *lane {
	return &lane{Deliverer: d, name: name, notifier: d.Notifiers[name], pace: d.paceOf(name)}
}

// place is where a destination posts: several may name one channel.
func (d *Deliverer) place(name string) string {
	if p, ok := d.Notifiers[name].(Placed); ok {
		return p.Place()
	}
	return name
}

// paceOf gives the pace of the place that a destination posts to. One a second is what
// Slack and most others allow in one channel, however many destinations name it.
func (d *Deliverer) paceOf(name string) *rate.Limiter {
	place := d.place(name)
	if d.paces == nil {
		d.paces = map[string]*rate.Limiter{}
	}
	if d.paces[place] == nil {
		d.paces[place] = rate.NewLimiter(rate.Every(time.Second), 1)
	}
	return d.paces[place]
}

// one claims a notice, delivers it and records how it went.
func (l *lane) one(ctx context.Context, n recon.Notice, told map[string]recon.Told) error {
	held := l.Now().Before(l.last.hold)
	if !held {
		if err := l.wait(ctx); err != nil {
			return err
		}
	}
	m, err := l.message(ctx, n, told)
	if err != nil {
		return fmt.Errorf("read what notice %s tells: %w", n.ID, err)
	}
	now := l.Now()
	ok, err := l.Outbox.ClaimNotice(ctx, n.ID, m.About.Version, now, now.Add(claim))
	if err != nil {
		return fmt.Errorf("claim notice %s: %w", n.ID, err)
	}
	if !ok {
		return nil
	}
	var out outcome
	if held {
		out = l.last.heldBack(n)
	} else {
		out = l.try(ctx, n, m)
	}
	out.delivery.Instead = l.instead(n, out)
	if l.Observe != nil {
		l.Observe(l.name, out.result)
	}
	// What was posted must be recorded even when the process was told to stop meanwhile.
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	if err := l.Outbox.SettleNotice(sctx, n.ID, n.Edition, out.delivery, l.Now()); err != nil {
		return fmt.Errorf("record notice %s: %w", n.ID, err)
	}
	return nil
}

// instead names the destination that gets a notice which this one refuses. A change of
// a message belongs to that message alone.
func (l *lane) instead(n recon.Notice, o outcome) string {
	if o.result != Undelivered || n.Act != recon.ActTell || n.Refused != "" || n.Destination == l.Fallback {
		return ""
	}
	return l.Fallback
}

// try makes the requests and judges how they went.
func (l *lane) try(ctx context.Context, n recon.Notice, m Message) outcome {
	d, result, err := l.deliver(ctx, n, m)
	if err == nil {
		l.failures, l.last = 0, outcome{}
		return outcome{delivery: d, result: result}
	}
	out := judgeFailure(n, err, l.failures, l.Now())
	if !out.hold.IsZero() {
		l.failures++
		l.last = out
	}
	level := slog.LevelWarn
	if out.delivery.Undelivered {
		level = slog.LevelError
	}
	l.log().LogAttrs(ctx, level, "notice not delivered", slog.String("destination", l.name),
		slog.String("notice", n.ID), slog.String("finding", n.Finding), slog.String("incident", n.Incident),
		slog.String("error", err.Error()), slog.Time("next", out.delivery.Next))
	return out
}

// deliver makes the requests for one notice.
func (l *lane) deliver(ctx context.Context, n recon.Notice, m Message) (recon.Delivery, Result, error) {
	if l.notifier == nil {
		return recon.Delivery{}, "", &Error{Destination: l.name, Op: "deliver", Kind: Refused, Code: "no such destination in the configuration"}
	}
	if n.Act == recon.ActTell {
		return l.post(ctx, n, m)
	}
	err := l.notifier.Edit(ctx, n.Root, m)
	if errors.Is(err, Gone) {
		// The old message cannot be changed any more. It may still say "open", so what is so
		// now is told anew.
		n.Root = recon.Receipt{}
		return l.post(ctx, n, m)
	}
	return recon.Delivery{Done: true}, Edited, err
}

// post sends a new message, or an answer in the thread of the one that stands, after
// looking for an earlier one where there may be one.
func (l *lane) post(ctx context.Context, n recon.Notice, m Message) (recon.Delivery, Result, error) {
	if n.Doubt {
		r, found, err := l.notifier.Find(ctx, m, n.Root, n.FirstTry.Add(-recon.ClockSkew))
		if err != nil && worthLookingAgain(err, l.blind) {
			l.blind++
			return recon.Delivery{}, "", fmt.Errorf("look for an earlier post: %w", err)
		}
		l.blind = 0
		if err == nil && found {
			return recon.Delivery{Receipt: r, Root: n.Root.IsZero()}, Recovered, nil
		}
		m.Repeat = true
	}
	d, result, err := l.send(ctx, n, m)
	if m.Repeat {
		result = Repeated
	}
	return d, result, err
}

func (l *lane) send(ctx context.Context, n recon.Notice, m Message) (recon.Delivery, Result, error) {
	if n.Root.IsZero() {
		r, err := l.notifier.Send(ctx, m)
		return recon.Delivery{Receipt: r, Root: true}, Posted, err
	}
	r, err := l.notifier.Reply(ctx, n.Root, m)
	if errors.Is(err, Gone) {
		r, err = l.notifier.Send(ctx, m) // nothing stands that it could answer
		return recon.Delivery{Receipt: r, Root: true}, Posted, err
	}
	return recon.Delivery{Receipt: r}, Replied, err
}

// wait keeps the pace.
func (l *lane) wait(ctx context.Context) error {
	now := l.Now()
	return l.pause(ctx, l.pace.ReserveN(now, 1).DelayFrom(now))
}
