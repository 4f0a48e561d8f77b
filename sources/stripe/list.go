package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// reading is a list that is being read, newest first.
type reading struct {
	listing
	at       time.Time // when the first page was asked for
	begin    time.Time // where the list ends when it was read to its end
	to       time.Time // where what is read here begins: now, or where the page before ended
	pages    int       // read and understood
	objects  int
	found    []recon.EffectIdentity
	newest   time.Time     // created of the first object that was read
	oldest   time.Time     // created of the last object of the last good page
	done     bool          // read to its end
	good     sources.Trail // of the pages that were understood
	bad      sources.Trail // of the page that was not
	whole    sources.Trail // of all pages
	badFound []recon.EffectIdentity
	fault    *sources.Error
}

func (a *asking) open(l listing) *reading {
	at := a.now().UTC()
	return &reading{listing: l, at: at, begin: l.since, to: at, oldest: at}
}

// from is back to where the list was read without a gap. The last second is not
// counted unless the list ended: more objects of it may stand on the next page.
func (r *reading) from() time.Time {
	switch from := r.oldest.Add(time.Second); {
	case r.done:
		return r.begin
	case r.pages == 0 || from.After(r.to):
		return r.to
	default:
		return from
	}
}

// perSecond is how densely objects lay, negative when nothing was read. What is empty before
// the newest says nothing of what lies behind it, unless the list ended there.
func (r *reading) perSecond() float64 {
	switch {
	case r.pages == 0:
		return -1
	case r.done && !r.since.IsZero():
		return float64(r.objects) / max(1, r.to.Sub(r.since).Seconds())
	}
	return float64(r.objects) / max(1, r.newest.Sub(r.oldest).Seconds())
}

// turn reads the next page.
func (a *asking) turn(ctx context.Context, r *reading) error {
	ex, fault, err := a.do(func() (*exchange, *sources.Error, error) { return a.page(ctx, r.listing) })
	if err != nil {
		return err
	}
	follow(&r.whole, ex)
	if fault != nil {
		follow(&r.bad, ex)
		r.fault = fault
	} else {
		a.take(r, ex)
	}
	if r.fault != nil && r.pages > 0 {
		r.fault.Op += fmt.Sprintf(" page %d", r.pages+1)
	}
	return nil
}

// take reads the objects of a page. Only a page that is understood in full moves the
// list on; what could be read of another one is kept all the same.
func (a *asking) take(r *reading, ex *exchange) {
	var (
		fault  error
		kind   = sources.Malformed
		odd    int
		found  []recon.EffectIdentity
		oldest = r.oldest
		ended  = !*ex.page.HasMore
		cursor = r.after
	)
	for _, raw := range ex.page.Data {
		o, err := readObject(r.kind, raw)
		switch {
		case err != nil:
			fault = err
			continue
		case o.wrongMode(r.place.mode):
			odd++
			continue
		case (r.after != "" || len(found) > 0) && o.created().After(oldest):
			fault = errors.New("objects are not in order of creation, newest first")
		}
		e := a.effectOf(r.place, o)
		if r.parent != "" && !e.Under(r.parent) {
			fault = errors.New("the list holds an object of another parent")
			continue
		}
		if !r.since.IsZero() && o.created().Before(r.since) {
			ended = true // the filter was ignored; what it asks for was all read
			break
		}
		if !r.until.IsZero() && !o.created().Before(r.until) {
			oldest, cursor = o.created(), o.ID // the filter was ignored; what it asks for comes later
			continue
		}
		a.keep(e, o)
		found = append(found, e.Identity())
		oldest, cursor = o.created(), o.ID
	}
	switch {
	case odd > 0:
		kind, fault = sources.WrongAccount, fmt.Errorf("%d objects of another mode were set aside; the key is not one of %s mode", odd, r.place.mode)
	case fault == nil && !ended && cursor == r.after:
		kind, fault = sources.Truncated, errors.New("the list does not move on")
	}
	if fault != nil {
		follow(&r.bad, ex)
		r.badFound = found
		r.fault = a.fault("GET "+pathOf(r.kind), kind, fault)
		return
	}
	a.memory.wasAnswered(address{r.place, r.kind})
	if r.objects == 0 && len(found) > 0 {
		r.newest = a.Seen[found[0]].Effect.CreatedAt
	}
	follow(&r.good, ex)
	r.pages++
	r.objects += len(found)
	r.found = append(r.found, found...)
	r.oldest, r.after, r.done = oldest, cursor, ended
}

// byWindow lists what was created since the oldest question, as long as that is worth
// its pages, and gives the questions that it left to be asked singly.
func (a *asking) byWindow(ctx context.Context, g sources.Group, questions []sources.Question) ([]sources.Question, error) {
	asked := questions
	questions = atLatest(a.now().Add(-time.Second), questions)
	left := reaches(questions)
	density := a.memory.DensityOf(g.List)
	r := a.open(listing{
		place: a.place(g.Account, g.Mode), kind: g.Kind, limit: a.pageSize,
		since: sources.Since(questions[len(questions)-1].From),
	})
	reached, searched := 0, false
	for sources.Pays(left[reached:], r.oldest, density, a.pageSize) {
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
		if !searched && worthSearching(g.Kind, left[reached:], r, a.pageSize) {
			searched = true
			if err := a.bySearch(ctx, g, questions[reached:], left[reached:]); err != nil {
				return nil, err
			}
		}
	}
	if r.pages > 0 {
		a.memory.SawDensity(g.List, r.perSecond())
	}
	a.tell(g, r)
	halted := a.halted() != nil
	var singles, early []sources.Question
	for i, q := range asked {
		_, ok := singleOf(q)
		switch {
		case ok && i >= reached && !left[i].Forced && !halted:
			singles = append(singles, q)
		case !q.From.Before(r.at):
			early = append(early, q) // no window up to now holds its beginning
		}
	}
	if len(early) > 0 {
		a.Blind(g.Only(early), a.now(), a.fault("ask", sources.OwnBug, errors.New("a question begins later than now; check the clocks")))
	}
	return singles, nil
}

// atLatest lets no question begin later than a time, because a list answers only for
// what is older than itself; clocks differ.
func atLatest(latest time.Time, questions []sources.Question) []sources.Question {
	for i := range questions {
		if !questions[i].From.After(latest) {
			break // the others are older still
		}
		if i == 0 {
			questions = slices.Clone(questions)
		}
		questions[i].From = latest
	}
	return questions
}

// tell records a window list: what was read answers for its range, what was not is
// blind.
func (a *asking) tell(g sources.Group, r *reading) {
	l := a.Look(g.List, recon.ByList, r.at)
	outside := a.Ranged(l, recon.Window{From: r.from(), To: r.to}, r.good, r.found)
	if r.fault == nil {
		a.Outside(l, r.good, outside)
		return
	}
	l.Window = recon.Window{From: r.since, To: r.from()}
	a.Conclude(l, r.bad, append(outside, r.badFound...), r.fault)
}

// singly asks each question by its own call, each call once. It gives the questions
// whose parent does not exist in this account and mode.
func (a *asking) singly(ctx context.Context, g sources.Group, questions []sources.Question) ([]sources.Question, error) {
	var orphaned []sources.Question
	missing := map[single]bool{} // what was asked, and whether it does not exist
	once := func(one single) (bool, error) {
		gone, again := missing[one]
		if again {
			return gone, nil
		}
		var err error
		if one.id != "" {
			gone, err = a.byID(ctx, g, one.id)
		} else {
			gone, err = a.byParent(ctx, g, one)
		}
		missing[one] = gone
		return gone, err
	}
	for i, q := range questions {
		if fault := a.halted(); fault != nil {
			a.Blind(g.Only(questions[i:]), a.now(), fault)
			return nil, nil
		}
		if q.EffectID != "" {
			gone, err := once(single{id: q.EffectID})
			if err != nil {
				return nil, err
			}
			if !gone {
				continue
			}
			// The id that we hold is nobody's. The parent may hold another effect.
		}
		parent, ok := parentOf(q)
		if !ok {
			continue
		}
		gone, err := once(parent)
		if err != nil {
			return nil, err
		}
		if gone {
			orphaned = append(orphaned, q)
		}
	}
	return orphaned, nil
}

// byID asks for one object, and reports whether it is absent.
func (a *asking) byID(ctx context.Context, g sources.Group, id string) (absent bool, err error) {
	l := a.Look(g.List, recon.ByID, a.now().UTC())
	l.EffectID = id
	var t sources.Trail
	e, fault, err := a.read(ctx, g, id, &t)
	var reply replyError
	switch {
	case err != nil:
		return false, err
	case fault == nil:
		a.Conclude(l, t, []recon.EffectIdentity{e.Identity()}, nil)
	case errors.As(fault.Err, &reply) && reply.Status == http.StatusNotFound && reply.missing():
		a.Conclude(l, t, nil, nil)
		return true, nil
	default:
		a.Conclude(l, t, nil, fault)
	}
	return false, nil
}

// read reads one object by its id.
func (a *asking) read(ctx context.Context, g sources.Group, id string, t *sources.Trail) (recon.Effect, *sources.Error, error) {
	ex, fault, err := a.do(func() (*exchange, *sources.Error, error) { return a.one(ctx, a.place(g.Account, g.Mode), g.Kind, id) })
	if err != nil {
		return recon.Effect{}, nil, err
	}
	follow(t, ex)
	if fault != nil {
		return recon.Effect{}, fault, nil
	}
	endpoint := "GET " + pathOf(g.Kind) + "/{id}"
	o, bad := readObject(g.Kind, json.RawMessage(ex.body))
	switch {
	case deleted(ex.body, id):
		return recon.Effect{}, a.fault(endpoint, sources.OwnBug, gone), nil
	case bad != nil:
		return recon.Effect{}, a.fault(endpoint, sources.Malformed, bad), nil
	case o.ID != id:
		return recon.Effect{}, a.fault(endpoint, sources.Malformed, errors.New("the reply is another object than the one asked for")), nil
	case o.wrongMode(a.place(g.Account, g.Mode).mode):
		return recon.Effect{}, a.fault(endpoint, sources.WrongAccount, errors.New("the object is of another mode and was set aside")), nil
	}
	e := a.effectOf(a.place(g.Account, g.Mode), o)
	a.keep(e, o)
	return e, nil, nil
}

// gone is how Stripe would say that an object is not there.
var gone = replyError{Status: http.StatusNotFound, Type: "invalid_request_error", Code: "resource_missing", json: true}

// deleted reports that the reply is what is left of an object: its id, and that it was
// deleted. A customer, for instance, is answered so for ever.
func deleted(reply []byte, id string) bool {
	var o struct {
		ID      string `json:"id"`
		Deleted bool   `json:"deleted"`
	}
	return json.Unmarshal(reply, &o) == nil && o.Deleted && o.ID == id
}

// byParent lists what hangs under a parent, and reports whether the parent itself does
// not exist in this account and mode. That proves nothing by itself, since the parent
// may be misspelt or live elsewhere, so it leaves no look.
func (a *asking) byParent(ctx context.Context, g sources.Group, one single) (missing bool, err error) {
	r := a.open(listing{place: a.place(g.Account, g.Mode), kind: g.Kind, limit: a.pageSize, parent: one.parent, filter: one.filter})
	for !r.done && r.fault == nil {
		if err := a.turn(ctx, r); err != nil {
			return false, err
		}
	}
	var reply replyError
	if r.fault != nil && r.pages == 0 && errors.As(r.fault.Err, &reply) && reply.missing() {
		a.Spare += r.whole.Calls
		return true, nil
	}
	l := a.Look(g.List, recon.ByList, r.at)
	l.Parent = one.parent
	a.Conclude(l, r.whole, append(r.found, r.badFound...), r.fault)
	return false, nil
}
