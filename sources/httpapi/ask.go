package httpapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// Ask answers a batch: see the package comment for its plan. It makes at most 2,000
// requests; a 429 ends the batch at once, and so do three requests in a row that bring no
// answer. What is then left is told by one blind look a group.
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

// asking is the state of one Ask, or of one Page.
type asking struct {
	*Source
	*sources.Notes
	now     func() time.Time
	calls   int
	faults  int            // requests in a row that brought no answer
	stopped *sources.Error // why nothing more is asked
}

func (s *Source) asking(now func() time.Time) *asking {
	return &asking{Source: s, Notes: sources.NewNotes(s.name), now: now}
}

// halted gives why nothing more is asked, or nil.
func (a *asking) halted() *sources.Error {
	switch quiet := a.memory.Quiet(); {
	case a.stopped != nil:
	case a.now().Before(quiet):
		a.stopped = a.fault("ask", sources.RateLimited, errors.New("the provider asked for silence until "+quiet.UTC().Format(time.RFC3339)))
	case a.calls >= maxCalls:
		a.stopped = a.fault("ask", sources.RateLimited, errors.New("the batch needs more requests than one Ask may make"))
	}
	return a.stopped
}

// do makes one request of the batch, unless the batch was given up.
func (a *asking) do(send func() (*reply, *sources.Error, error)) (*reply, *sources.Error, error) {
	if fault := a.halted(); fault != nil {
		return &reply{}, fault, nil
	}
	r, fault, err := send()
	if r.sent {
		a.calls++
	}
	switch {
	case fault == nil || errors.Is(fault, errNotThere) || fault.Kind == sources.Unsupported:
		a.faults = 0
		return r, fault, err
	case fault.Kind == sources.RateLimited:
		a.memory.KeepQuiet(a.now().Add(fault.RetryAfter))
		a.stopped = fault
	}
	if a.faults++; a.faults >= maxFaults {
		a.stopped = fault
	}
	return r, fault, err
}

// group asks all that one account, mode and kind is asked: first the list of the window, as
// far as it is worth its pages, then each question alone, then the list for those that
// nothing else has answered. A list whose silence proves nothing does not stand in for
// requests that may find more, nor does one whose objects must be read singly anyway.
func (a *asking) group(ctx context.Context, g sources.Group) error {
	if fault := a.halted(); fault != nil {
		a.Blind(g, a.now(), fault)
		return nil
	}
	k := a.kinds[g.Kind]
	left := g.Questions
	if k.list != nil && k.list.strong && !k.summary {
		var err error
		if left, err = a.byWindow(ctx, g, func(q sources.Question) bool { return len(k.singles(q)) == 0 }); err != nil {
			return err
		}
	}
	unanswered, err := a.singly(ctx, g, left)
	if err != nil || len(unanswered) == 0 {
		return err
	}
	if k.list == nil {
		a.Blind(g.Only(unanswered), a.now(), a.fault("ask", sources.Unsupported, errors.New("no look-up of this kind can answer: what it asks for was not sent")))
		return nil
	}
	_, err = a.byWindow(ctx, g.Only(unanswered), func(sources.Question) bool { return true })
	return err
}

// byWindow lists what was created since the oldest question, as long as that is worth its
// pages, and gives the questions that it did not reach.
func (a *asking) byWindow(ctx context.Context, g sources.Group, forced func(sources.Question) bool) ([]sources.Question, error) {
	r := a.open(g.List, a.kinds[g.Kind].list, sources.Question{})
	latest := r.at.Add(-time.Second) // a list answers only for what is older than itself
	left := make([]sources.Reach, len(g.Questions))
	for i, q := range g.Questions {
		left[i] = sources.Reach{From: sources.Since(earlier(q.From, latest)), Saves: 1, Forced: forced(q)}
	}
	r.since = left[len(left)-1].From
	r.begin = r.since
	density, size := a.memory.DensityOf(g.List), a.sheet.PageSize
	reached := 0
	for reached < len(left) && sources.Pays(left[reached:], r.pos.Oldest, density, size) {
		if err := a.turn(ctx, r); err != nil {
			return nil, err
		}
		for reached < len(left) && !left[reached].From.Before(r.from()) {
			reached++
		}
		if r.fault != nil || r.done {
			break
		}
		density = r.perSecond()
	}
	if r.pages > 0 {
		a.memory.SawDensity(g.List, r.perSecond())
	}
	a.tell(g.List, r)
	return unforced(g.Questions[reached:], left[reached:], r.fault != nil), nil
}

// unforced drops the questions that a list which broke off has told blind, and that
// nothing else can answer.
func unforced(questions []sources.Question, left []sources.Reach, broken bool) []sources.Question {
	var list []sources.Question
	for i, q := range questions {
		if !broken || !left[i].Forced {
			list = append(list, q)
		}
	}
	return list
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// tell records a window list: what was read answers for its range, what was not is blind.
func (a *asking) tell(g sources.List, r *reading) {
	l := a.Look(g, recon.ByList, r.at)
	outside := a.Ranged(l, recon.Window{From: r.from(), To: r.at}, r.good, r.found)
	if r.fault == nil {
		a.Outside(l, r.good, outside)
		return
	}
	l.Window = recon.Window{From: r.since, To: r.from()}
	a.Conclude(l, r.bad, outside, r.fault)
}

// singly asks each question by requests of its own until one answers, each request once.
// It gives the questions that none answered and that the list may.
func (a *asking) singly(ctx context.Context, g sources.Group, questions []sources.Question) ([]sources.Question, error) {
	k := a.kinds[g.Kind]
	var unanswered []sources.Question
	asked := map[single]answer{}
	for i, q := range questions {
		if fault := a.halted(); fault != nil {
			a.Blind(g.Only(questions[i:]), a.now(), fault)
			return unanswered, nil
		}
		var best answer
		for _, s := range k.singles(q) {
			got, again := asked[s]
			if !again {
				var err error
				if got, err = a.one(ctx, g, s, q); err != nil {
					return nil, err
				}
				asked[s] = got
			}
			if best = max(best, got); best == answered {
				break
			}
		}
		// An id of the provider's own that is nobody's is enough, unless something else could
		// be asked; and a list whose silence proves nothing either adds nothing.
		if best == nothing || best == silent && k.list != nil && k.list.strong {
			unanswered = append(unanswered, q)
		}
	}
	return unanswered, nil
}

// answer is what a single look-up brought, the least first.
type answer int

const (
	nothing  answer = iota // no look: the parent is not there
	silent                 // silence that proves nothing
	gone                   // an id that is nobody's
	answered               // found, silence that counts, or a fault: then nothing else may be taken for an answer
)

// one makes a single look-up. A parent that is not there proves nothing, since it may be
// misspelt or live elsewhere.
func (a *asking) one(ctx context.Context, g sources.Group, s single, q sources.Question) (answer, error) {
	r := a.open(g.List, s.endpoint, q)
	r.want = s.want
	if err := a.toEnd(ctx, r); err != nil {
		return nothing, err
	}
	if s.name == "by_reference" && q.Group != "" && q.Group != s.want && r.fault == nil {
		if err := a.underGroup(ctx, g, r, q); err != nil {
			return nothing, err
		}
	}
	l := a.Look(g.List, s.method, r.at)
	switch s.name {
	case "by_id":
		l.EffectID = s.want
	case "by_reference":
		l.Reference = s.want
	case "by_key":
		l.Key = s.want
	case "by_parent":
		if r.missing {
			a.Spare += r.good.Calls
			return nothing, nil
		}
		l.Parent = s.want
	}
	t := r.good
	t.Join(r.bad)
	a.Conclude(l, t, r.found, r.fault)
	switch {
	case r.fault != nil || len(r.found) > 0:
		return answered, nil
	case !s.strong:
		return silent, nil
	case s.method == recon.ByID:
		return gone, nil
	}
	return answered, nil
}

// toEnd reads a look-up to its end, or to a fault.
func (a *asking) toEnd(ctx context.Context, r *reading) error {
	for !r.done && r.fault == nil {
		if err := a.turn(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// underGroup asks by the reference of an operation's group as well, into the same look: the
// provider may hold either, and silence under one of them alone is none.
func (a *asking) underGroup(ctx context.Context, g sources.Group, r *reading, q sources.Question) error {
	q.Operation = recon.OperationID(q.Group)
	whole := a.open(g.List, r.endpoint, q)
	whole.want = q.Group
	if err := a.toEnd(ctx, whole); err != nil {
		return err
	}
	r.good.Join(whole.good)
	r.bad.Join(whole.bad)
	r.found, r.fault = append(r.found, whole.found...), whole.fault
	return nil
}

// follow takes a request into a trail, if it was sent.
func (s *Source) follow(t *sources.Trail, r *reply) {
	if r.sent {
		t.Add(r.requestID(s.settings.RequestID), r.body)
	}
}
