package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// Ask answers a batch: see the package comment for its plan. It makes at most 2,000
// requests; a 429 ends the batch at once, and so do three requests in a row that bring no
// answer. What is then left is told by one blind look a group.
func (s *Source) Ask(ctx context.Context, batch []sources.Question, now func() time.Time) (sources.Answer, error) {
	a := s.asking(now)
	groups, foreign := s.partition(batch)
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

// asking is the state of one Ask, or of one Page.
type asking struct {
	*Source
	now     func() time.Time
	calls   int
	faults  int            // requests in a row that brought no answer
	stopped *sources.Error // why nothing more is asked
	looks   []recon.Look
	spare   trail // requests that belong to no look yet: the next one takes them
	seen    map[recon.EffectIdentity]*sighting
}

func (s *Source) asking(now func() time.Time) *asking {
	return &asking{Source: s, now: now, seen: map[recon.EffectIdentity]*sighting{}}
}

// halted gives why nothing more is asked, or nil.
func (a *asking) halted() *sources.Error {
	switch quiet := a.memory.quiet(); {
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
		a.memory.keepQuiet(a.now().Add(fault.RetryAfter))
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
func (a *asking) group(ctx context.Context, g group) error {
	if fault := a.halted(); fault != nil {
		a.blind(g, fault)
		return nil
	}
	k := a.kinds[g.id.kind]
	left := g.questions
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
		a.blind(group{g.id, g.place, unanswered}, a.fault("ask", sources.Unsupported, errors.New("no look-up of this kind can answer: what it asks for was not sent")))
		return nil
	}
	_, err = a.byWindow(ctx, group{g.id, g.place, unanswered}, func(sources.Question) bool { return true })
	return err
}

// byWindow lists what was created since the oldest question, as long as that is worth its
// pages, and gives the questions that it did not reach.
func (a *asking) byWindow(ctx context.Context, g group, forced func(sources.Question) bool) ([]sources.Question, error) {
	r := a.open(g.id, g.place, a.kinds[g.id.kind].list, sources.Question{})
	latest := r.at.Add(-time.Second) // a list answers only for what is older than itself
	left := make([]reach, len(g.questions))
	for i, q := range g.questions {
		left[i] = reach{from: earlier(q.From, latest).Add(-overlap), forced: forced(q)}
	}
	r.since = left[len(left)-1].from.UTC()
	r.begin = r.since
	density, size := a.memory.densityOf(g.id), a.sheet.PageSize
	reached := 0
	for reached < len(left) && pays(left[reached:], r.pos.Oldest, density, size) {
		if err := a.turn(ctx, r); err != nil {
			return nil, err
		}
		for reached < len(left) && !left[reached].from.Before(r.from()) {
			reached++
		}
		if r.fault != nil || r.done {
			break
		}
		density = r.perSecond()
	}
	if r.pages > 0 {
		a.memory.sawDensity(g.id, r.perSecond())
	}
	a.tell(g.id, r)
	return unforced(g.questions[reached:], left[reached:], r.fault != nil), nil
}

// unforced drops the questions that a list which broke off has told blind, and that
// nothing else can answer.
func unforced(questions []sources.Question, left []reach, broken bool) []sources.Question {
	var list []sources.Question
	for i, q := range questions {
		if !broken || !left[i].forced {
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
func (a *asking) tell(g groupID, r *reading) {
	l := a.look(g, recon.ByList, r.at)
	if r.pages > 0 && r.from().Before(r.at) {
		l.Window = recon.Window{From: r.from(), To: r.at}
		a.conclude(l, r.good, r.found, nil)
	} else {
		a.spare.join(r.good)
	}
	if r.fault != nil {
		l.Window = recon.Window{From: r.since, To: r.from()}
		a.conclude(l, r.bad, nil, r.fault)
	}
}

// singly asks each question by requests of its own until one answers, each request once.
// It gives the questions that none answered and that the list may.
func (a *asking) singly(ctx context.Context, g group, questions []sources.Question) ([]sources.Question, error) {
	k := a.kinds[g.id.kind]
	var unanswered []sources.Question
	asked := map[single]answer{}
	for i, q := range questions {
		if fault := a.halted(); fault != nil {
			a.blind(group{g.id, g.place, questions[i:]}, fault)
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
func (a *asking) one(ctx context.Context, g group, s single, q sources.Question) (answer, error) {
	r := a.open(g.id, g.place, s.endpoint, q)
	r.want = s.want
	if err := a.toEnd(ctx, r); err != nil {
		return nothing, err
	}
	if s.name == "by_reference" && q.Group != "" && q.Group != s.want && r.fault == nil {
		if err := a.underGroup(ctx, g, r, q); err != nil {
			return nothing, err
		}
	}
	l := a.look(g.id, s.method, r.at)
	switch s.name {
	case "by_id":
		l.EffectID = s.want
	case "by_reference":
		l.Reference = s.want
	case "by_key":
		l.Key = s.want
	case "by_parent":
		if r.missing {
			a.spare.join(r.good)
			return nothing, nil
		}
		l.Parent = s.want
	}
	t := r.good
	t.join(r.bad)
	a.conclude(l, t, r.found, r.fault)
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
func (a *asking) underGroup(ctx context.Context, g group, r *reading, q sources.Question) error {
	q.Operation = recon.OperationID(q.Group)
	whole := a.open(g.id, g.place, r.endpoint, q)
	whole.want = q.Group
	if err := a.toEnd(ctx, whole); err != nil {
		return err
	}
	r.good.join(whole.good)
	r.bad.join(whole.bad)
	r.found, r.fault = append(r.found, whole.found...), whole.fault
	return nil
}

// trail collects what the requests of one look said.
type trail struct {
	calls     int
	requestID string
	hash      hash.Hash
}

func (t *trail) add(s *Source, r *reply) {
	if !r.sent {
		return
	}
	if t.hash == nil {
		t.hash = sha256.New()
	}
	t.calls++
	t.requestID = r.requestID(s.settings.RequestID)
	t.hash.Write(r.body)
}

// join adds the requests of another trail.
func (t *trail) join(other trail) {
	if other.calls == 0 {
		return
	}
	if t.hash == nil {
		t.hash = sha256.New()
	}
	t.calls, t.requestID = t.calls+other.calls, other.requestID
	t.hash.Write(other.hash.Sum(nil))
}

func (a *asking) look(g groupID, m recon.Method, at time.Time) recon.Look {
	return recon.Look{Source: a.name, Method: m, Kind: g.kind, Account: g.account, Mode: g.mode, At: at}
}

// conclude records a look: blind with a fault, found with effects, else absent.
func (a *asking) conclude(l recon.Look, t trail, found []recon.EffectIdentity, fault *sources.Error) {
	l.Calls, l.RequestID = t.calls+a.spare.calls, t.requestID
	a.spare = trail{}
	if t.hash != nil {
		l.ReplyHash = t.hash.Sum(nil)
	}
	slices.SortFunc(found, func(a, b recon.EffectIdentity) int { return cmp.Compare(a.ID, b.ID) })
	l.Found = slices.Compact(found)
	switch {
	case fault != nil:
		l.Outcome, l.Fault, l.Detail = recon.Blind, string(fault.Kind), fault.Op
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
func (a *asking) blind(g group, fault *sources.Error) {
	at := a.now().UTC()
	l := a.look(g.id, recon.ByList, at)
	l.Window = recon.Window{From: g.oldest().Add(-overlap), To: at}
	if youngest := g.questions[0].From; !youngest.Before(at) {
		l.Window.To = youngest.Add(time.Second)
	}
	a.conclude(l, trail{}, nil, fault)
}

// refuse tells of questions that are none of this source's.
func (a *asking) refuse(g group) {
	if a.kinds[g.id.kind] == nil {
		a.blind(g, a.fault("ask", sources.Unsupported, errors.New("this source does not observe the kind; add it to the source's effects")))
		return
	}
	a.blind(g, a.fault("ask", sources.WrongAccount, errors.New("the account or mode is not one of the source's; add it to the source's accounts")))
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
	ans.Looks = a.looks
	for _, s := range a.seen {
		ans.Effects = append(ans.Effects, s.effect)
		ans.Raw = append(ans.Raw, sources.Raw{Effect: s.effect.Identity(), Bytes: s.raw})
	}
	slices.SortFunc(ans.Effects, func(x, y recon.Effect) int {
		return cmp.Or(y.CreatedAt.Compare(x.CreatedAt), compareIdentity(x.Identity(), y.Identity()))
	})
	slices.SortFunc(ans.Raw, func(x, y sources.Raw) int { return compareIdentity(x.Effect, y.Effect) })
	return ans, nil
}

func compareIdentity(a, b recon.EffectIdentity) int {
	return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.ID, b.ID))
}
