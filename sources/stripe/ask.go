package stripe

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// Ask answers a batch: see the package comment for its plan. It makes at most 2,000
// requests; a 429 ends the batch at once, and so do two requests in a row that find
// Stripe out of reach, or five that bring no answer. Refused credentials end their
// group. What is then left is told by one blind look a group.
func (s *Source) Ask(ctx context.Context, batch []sources.Question, now func() time.Time) (sources.Answer, error) {
	a := &asking{Source: s, now: now, seen: map[recon.EffectIdentity]*sighting{}}
	groups, foreign := partition(batch, s.places)
	for _, g := range foreign {
		a.refuse(g)
	}
	for _, g := range groups {
		if err := a.group(ctx, g); err != nil {
			return sources.Answer{}, fmt.Errorf("%s: ask: %w", s.name, err)
		}
	}
	return a.answer()
}

// asking is the state of one Ask.
type asking struct {
	*Source
	now     func() time.Time
	calls   int
	outages int            // requests in a row that found Stripe out of reach
	faults  int            // requests in a row that brought no answer of any kind
	stopped *sources.Error // why nothing more is asked
	closed  *sources.Error // why nothing more is asked in this group
	looks   []recon.Look
	spare   trail // requests that belong to no look yet: the next one takes them
	seen    map[recon.EffectIdentity]*sighting
}

// sighting is an object as it was last read.
type sighting struct {
	effect recon.Effect
	raw    []byte
}

// group asks all that one account, mode and kind is asked.
func (a *asking) group(ctx context.Context, g group) error {
	a.closed = nil
	if fault := a.halted(); fault != nil {
		a.blind(g, trail{}, fault)
		return nil
	}
	if fault, err := a.identify(ctx, g.place); err != nil {
		return err
	} else if fault != nil {
		a.blind(g, trail{}, fault)
		return nil
	}
	left, err := a.byWindow(ctx, g, g.questions)
	if err != nil {
		return err
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
	case a.now().Before(a.memory.quiet()):
		a.stopped = a.fault("ask", sources.RateLimited, errors.New("Stripe asked for silence until "+a.memory.quiet().UTC().Format(time.RFC3339)))
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
		a.memory.keepQuiet(a.now().Add(fault.RetryAfter))
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

// trail collects what the requests of one look said.
type trail struct {
	calls     int
	requestID string
	replies   hash.Hash
}

func (t *trail) add(ex *exchange) {
	if !ex.sent {
		return
	}
	if t.replies == nil {
		t.replies = sha256.New()
	}
	t.calls++
	t.requestID = ex.requestID()
	t.replies.Write(ex.body)
}

// look begins a look at a group.
func (a *asking) look(g groupID, m recon.Method, at time.Time) recon.Look {
	return recon.Look{Source: a.name, Method: m, Kind: g.kind, Account: g.account, Mode: g.mode, At: at}
}

// conclude records a look: blind with a fault, found with effects, else absent.
func (a *asking) conclude(l recon.Look, t trail, found []recon.EffectIdentity, fault *sources.Error) {
	l.Calls, l.RequestID = t.calls+a.spare.calls, t.requestID
	a.spare = trail{}
	if t.replies != nil {
		l.ReplyHash = t.replies.Sum(nil)
	}
	l.Found = distinct(found)
	switch {
	case fault != nil:
		l.Outcome, l.Complete, l.Fault = recon.Blind, false, string(fault.Kind)
		l.Detail = fault.Op
		if fault.Err != nil {
			l.Detail += ": " + fault.Err.Error()
		}
	case len(found) > 0:
		l.Outcome, l.Complete = recon.Found, true
	default:
		l.Outcome, l.Complete = recon.Absent, true
	}
	a.looks = append(a.looks, l)
}

// blind tells of all questions of a group at once that they could not be asked.
func (a *asking) blind(g group, t trail, fault *sources.Error) {
	at := a.now()
	l := a.look(g.id, recon.ByList, at)
	l.Window = recon.Window{From: since(g.oldest()), To: at}
	if youngest := g.questions[0].From; !youngest.Before(at) {
		l.Window.To = youngest.Add(time.Second)
	}
	a.conclude(l, t, nil, fault)
}

// refuse tells of questions that are none of this source's.
func (a *asking) refuse(g group) {
	fault := a.fault("ask", sources.WrongAccount, errors.New("the account or mode is not one of the source's; add it to the source's accounts"))
	if !slices.Contains(a.sheet.Kinds, g.id.kind) {
		fault = a.fault("ask", sources.Unsupported, errors.New("this source does not observe the kind"))
	}
	a.blind(g, trail{}, fault)
}

// keep takes an object into the answer. The later reading of an object stands; a key
// that was learned stays.
func (a *asking) keep(e recon.Effect, o object) {
	if before, ok := a.seen[e.Identity()]; ok {
		e.Key = before.effect.Key
	}
	a.seen[e.Identity()] = &sighting{effect: e, raw: o.reduced(a.marker)}
}

// inGroup gives what was seen of a group.
func (a *asking) inGroup(g groupID) []recon.Effect {
	var list []recon.Effect
	for _, s := range a.seen {
		if s.effect.Account == g.account && s.effect.Mode == g.mode && s.effect.Kind == g.kind {
			list = append(list, s.effect)
		}
	}
	return list
}

// answer puts everything in an order that does not depend on that of the questions.
func (a *asking) answer() (sources.Answer, error) {
	var ans sources.Answer
	for i := range a.looks {
		id, err := uuid.NewV7()
		if err != nil {
			return sources.Answer{}, fmt.Errorf("%s: name a look: %w", a.name, err)
		}
		a.looks[i].ID = id.String()
	}
	if n := len(a.looks); n > 0 {
		a.looks[n-1].Calls += a.spare.calls
	}
	ans.Looks = a.looks
	all := slices.SortedFunc(maps.Values(a.seen), func(x, y *sighting) int {
		return cmp.Or(x.effect.CreatedAt.Compare(y.effect.CreatedAt), compareIdentity(x.effect.Identity(), y.effect.Identity()))
	})
	for _, s := range all {
		ans.Effects = append(ans.Effects, s.effect)
		ans.Raw = append(ans.Raw, sources.Raw{Effect: s.effect.Identity(), Bytes: s.raw})
	}
	return ans, nil
}

func compareIdentity(a, b recon.EffectIdentity) int {
	return cmp.Or(cmp.Compare(a.System, b.System), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.ID, b.ID))
}

func distinct(ids []recon.EffectIdentity) []recon.EffectIdentity {
	list := slices.Clone(ids)
	slices.SortFunc(list, compareIdentity)
	return slices.Compact(list)
}

// since is where a list begins so that nothing of the second of t is left out.
func since(t time.Time) time.Time { return t.Add(-overlap).Truncate(time.Second).UTC() }
