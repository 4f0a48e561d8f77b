package stripe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// Ask answers a batch: see the package comment for its plan. It makes at most 2,000
// requests; a 429 ends the batch at once, and so do two requests in a row that find
// Stripe out of reach, or five that bring no answer. Refused credentials end their
// group. What is then left is told by one blind look a group.
func (s *Source) Ask(ctx context.Context, batch []sources.Question, now func() time.Time) (sources.Answer, error) {
	a := s.asking(now)
	groups, foreign := sources.Partition(batch, s.sheet)
	for _, g := range foreign {
		a.Refuse(g, s.sheet, now())
	}
	for _, g := range groups {
		if err := a.group(ctx, g); err != nil {
			return sources.Answer{}, fmt.Errorf("%s: ask: %w", s.name, err)
		}
	}
	return a.Answer()
}

func (s *Source) asking(now func() time.Time) *asking {
	return &asking{Source: s, Notes: sources.NewNotes(s.name), now: now}
}

// asking is the state of one Ask.
type asking struct {
	*Source
	*sources.Notes
	now     func() time.Time
	calls   int
	outages int            // requests in a row that found Stripe out of reach
	faults  int            // requests in a row that brought no answer of any kind
	stopped *sources.Error // why nothing more is asked
	closed  *sources.Error // why nothing more is asked in this group
}

// group asks all that one account, mode and kind is asked.
func (a *asking) group(ctx context.Context, g sources.Group) error {
	a.closed = nil
	if fault := a.halted(); fault != nil {
		a.Blind(g, a.now(), fault)
		return nil
	}
	if fault, err := a.identify(ctx, a.place(g.Account, g.Mode)); err != nil {
		return err
	} else if fault != nil {
		a.Blind(g, a.now(), fault)
		return nil
	}
	left, err := a.nearby(ctx, g)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		if left, err = a.byWindow(ctx, g, left); err != nil {
			return err
		}
	}
	orphaned, err := a.singly(ctx, g, left)
	if err != nil {
		return err
	}
	if len(orphaned) > 0 {
		// Their parents do not exist here. What they look for would be in the window.
		for i := range orphaned {
			orphaned[i].EffectID, orphaned[i].Parent = "", ""
		}
		if _, err := a.byWindow(ctx, g, orphaned); err != nil {
			return err
		}
	}
	return a.byKey(ctx, g)
}

// halted gives why nothing more is asked, or nil.
func (a *asking) halted() *sources.Error {
	switch {
	case a.stopped != nil:
	case a.now().Before(a.memory.Quiet()):
		a.stopped = a.fault("ask", sources.RateLimited, errors.New("Stripe asked for silence until "+a.memory.Quiet().UTC().Format(time.RFC3339)))
	case a.calls >= maxCalls:
		a.stopped = a.fault("ask", sources.RateLimited, errors.New("the batch needs more requests than one Ask may make"))
	}
	if a.stopped != nil {
		return a.stopped
	}
	return a.closed
}

// do makes one request of the batch, unless the batch was given up.
func (a *asking) do(request func() (*exchange, *sources.Error, error)) (*exchange, *sources.Error, error) {
	if fault := a.halted(); fault != nil {
		return &exchange{}, fault, nil
	}
	ex, fault, err := request()
	if ex.sent {
		a.calls++
	}
	a.judge(fault)
	return ex, fault, err
}

// judge decides after each request whether the batch goes on.
func (a *asking) judge(fault *sources.Error) {
	var reply replyError
	if fault == nil || errors.As(fault.Err, &reply) && reply.missing() {
		a.outages, a.faults = 0, 0
		return
	}
	a.faults++
	switch fault.Kind {
	case sources.RateLimited:
		a.memory.KeepQuiet(a.now().Add(fault.RetryAfter))
		a.stopped = fault
	case sources.Unavailable, sources.Timeout:
		a.outages++
	case sources.BadCredentials, sources.WrongAccount:
		a.closed = fault // the next account, or kind, may be open
		a.outages = 0
	default:
		a.outages = 0
	}
	if a.outages >= maxOutages || a.faults >= maxFaults {
		a.stopped = fault
	}
}

// forgive forgets a fault that says nothing about the requests to come.
func (a *asking) forgive() { a.closed, a.faults, a.outages = nil, 0, 0 }

// follow takes a request into a trail, if it was sent.
func follow(t *sources.Trail, ex *exchange) {
	if ex.sent {
		t.Add(ex.requestID(), ex.body)
	}
}

// keep takes an object into the answer. The later reading of an object stands; a key
// that was learned stays.
func (a *asking) keep(e recon.Effect, o object) {
	if before, ok := a.Seen[e.Identity()]; ok {
		e.Key = before.Effect.Key
	}
	a.Seen[e.Identity()] = &sources.Sighting{Effect: e, Raw: o.reduced(a.marker)}
}

// inGroup gives what was seen of a group.
func (a *asking) inGroup(g sources.List) []recon.Effect {
	var list []recon.Effect
	for _, s := range a.Seen {
		if e := s.Effect; e.Account == g.Account && e.Mode == g.Mode && e.Kind == g.Kind {
			list = append(list, e)
		}
	}
	return list
}
