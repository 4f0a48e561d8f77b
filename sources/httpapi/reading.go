package httpapi

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// reading is a look-up that is being read, page by page. One that shows a single object is
// a list of one page.
type reading struct {
	*endpoint
	kind    *kind
	place   *place
	vars    vars
	want    string    // what every object must hold in the field matches
	since   time.Time // created at or after; zero is no bound
	until   time.Time // created before; zero is no bound
	at      time.Time // when the first page was asked for
	begin   time.Time // where the list ends when it was read to its end
	to      time.Time // where what is read here begins: now, or where the page before ended
	pos     position
	pages   int // read and understood
	objects int
	found   []recon.EffectIdentity
	done    bool          // read to its end
	missing bool          // the reply is one that is declared to mean "not there"
	good    sources.Trail // of the pages that were understood
	bad     sources.Trail // of the page that was not
	fault   *sources.Error
}

func (a *asking) open(l sources.List, e *endpoint, q sources.Question) *reading {
	p := a.placeOf(l.Account, l.Mode)
	at := a.now().UTC()
	pos := e.begin()
	pos.Oldest, pos.To = at, at
	return &reading{endpoint: e, kind: a.kinds[l.Kind], place: p, vars: a.vars(p, q), at: at, to: at, pos: pos}
}

// list names what is read.
func (r *reading) list() sources.List {
	return sources.List{Kind: r.kind.name, Account: r.place.Account.Account, Mode: r.place.Mode}
}

// from is back to where the list was read without a gap. The last second is not counted
// unless the list ended: more objects of it may stand on the next page. A list of oldest
// first has no such place before its end.
func (r *reading) from() time.Time {
	switch from := r.pos.Oldest.Truncate(time.Second).Add(time.Second); {
	case r.done:
		return r.begin
	case r.pages == 0 || !r.newestFirst || from.After(r.to):
		return r.to
	default:
		return from
	}
}

// perSecond is how densely objects lay, negative when nothing was read.
func (r *reading) perSecond() float64 {
	if r.pages == 0 {
		return -1
	}
	from := r.pos.Oldest
	if r.done {
		from = r.begin
	}
	return float64(r.objects) / max(1, r.at.Sub(from).Seconds())
}

// turn reads the next page. Only one that is understood in full moves the list on.
func (a *asking) turn(ctx context.Context, r *reading) error {
	reply, fault, err := a.do(func() (*reply, *sources.Error, error) {
		return a.get(ctx, request{r.place, r.kind, r.endpoint, r.vars, r.pos, r.bounds()})
	})
	if err != nil {
		return err
	}
	if fault != nil && errors.Is(fault, errNotThere) {
		a.follow(&r.good, reply)
		r.pages, r.done, r.missing = r.pages+1, true, true
		return nil
	}
	if fault == nil {
		fault, err = a.take(ctx, r, reply)
	}
	if err != nil {
		return err
	}
	if fault != nil {
		a.follow(&r.bad, reply)
		r.fault = fault
	}
	return nil
}

// bounds are the parameters of the window, which ask for a little more than it.
func (r *reading) bounds() url.Values {
	query := url.Values{}
	if b := r.endpoint.since; b != nil && !r.since.IsZero() {
		query.Set(b.param, b.dates.write(r.since.Add(-b.dates.wide(r.since))))
	}
	until := r.until
	if under := r.pos.Under; !under.IsZero() && (until.IsZero() || under.Before(until)) {
		until = under
	}
	if b := r.endpoint.until; b != nil && !until.IsZero() {
		query.Set(b.param, b.dates.write(until.Add(b.dates.wide(until))))
	}
	return query
}

// objects gives the objects of a reply.
func (e *endpoint) objects(r *reply) ([]any, error) {
	if e.items == nil {
		v, there, err := e.object.find(r.value)
		if _, ok := v.(map[string]any); err != nil || !there || !ok {
			return nil, errors.New("the reply holds no object where one is expected")
		}
		return []any{v}, nil
	}
	v, there, err := e.items.find(r.value)
	list, ok := v.([]any)
	if err != nil || !there || !ok {
		return nil, errors.New("the reply holds no list where one is expected")
	}
	return list, nil
}

// take reads the objects of a page.
func (a *asking) take(ctx context.Context, r *reading, reply *reply) (*sources.Error, error) {
	name := "GET " + r.kind.name + " " + r.name
	items, err := r.endpoint.objects(reply)
	if err != nil {
		return a.fault(name, sources.Malformed, err), nil
	}
	next, ended := r.pos, true
	if r.paging != nil {
		if next, ended, err = r.paging.turn(r.pos, reply, items, reply.address); err != nil {
			return a.fault(name, sources.Truncated, err), nil
		}
	}
	p := &pageOf{reading: r, asking: a, oldest: r.pos.Oldest, name: name}
	for _, item := range items {
		if fault, err := p.object(ctx, item); fault != nil || err != nil {
			return fault, err
		}
	}
	if len(items) == 0 && r.objects == 0 && r.want != "" && !r.notFound.empty {
		return a.fault(name, sources.Malformed, errors.New("the list is empty, and nothing says that this means \"not there\": declare not_found.empty")), nil
	}
	next.Oldest = p.oldest
	if !ended && !p.ended {
		next, err = r.beyond(next)
		if err != nil {
			return a.fault(name, sources.Truncated, err), nil
		}
	}
	for _, s := range p.seen {
		a.Seen[s.Effect.Identity()] = s
		r.found = append(r.found, s.Effect.Identity())
	}
	a.follow(&r.good, reply)
	r.good.Join(p.more)
	r.pages, r.objects = r.pages+1, r.objects+len(p.seen)
	r.pos, r.done = next, ended || p.ended
	return nil, nil
}

// beyond begins a list anew where the provider shows no more of it.
func (r *reading) beyond(next position) (position, error) {
	if r.paging.reach == 0 || next.Count+int64(next.Size) <= int64(r.paging.reach) {
		return next, nil
	}
	under := next.Oldest.Add(time.Second).Truncate(time.Second)
	if r.endpoint.until == nil || !r.newestFirst || !next.Under.IsZero() && !under.Before(next.Under) {
		return next, errors.New("the provider shows no more of this list, and it has not ended")
	}
	return position{Size: next.Size, Under: under, Oldest: next.Oldest, To: next.To, Till: next.Till}, nil
}

// pageOf is a page whose objects are being read.
type pageOf struct {
	*asking
	reading *reading
	name    string
	oldest  time.Time
	read    int
	seen    []*sources.Sighting
	more    sources.Trail // of what was read by id for it
	ended   bool          // an object lies before what is asked for
}

// object reads one object of the page.
func (p *pageOf) object(ctx context.Context, item any) (*sources.Error, error) {
	r := p.reading
	s, ours, kind, err := r.kind.read(item, r.place.Account, r.items == nil)
	if err != nil {
		return p.fault(p.name, kind, err), nil
	}
	if !ours {
		return nil, nil
	}
	p.complete(&s.Effect)
	if r.matches != nil && !r.obeyed(&s.Effect) {
		if r.strong {
			return p.fault(p.name, sources.Malformed, errors.New("the reply holds what was not asked for: the filter is not obeyed")), nil
		}
		return nil, nil
	}
	if r.order() {
		if fault, pass := p.place(s.Effect.CreatedAt); fault != nil || pass {
			return fault, nil
		}
	}
	if r.kind.summary && r.items != nil && s.Effect.Status == recon.Completed {
		if fault, err := p.whole(ctx, &s); fault != nil || err != nil {
			return fault, err
		}
	}
	p.seen = append(p.seen, &s)
	return nil, nil
}

// obeyed reports whether an effect holds what was asked for.
func (r *reading) obeyed(e *recon.Effect) bool {
	switch r.name {
	case "by_id":
		return e.ID == r.want
	case "by_reference":
		return strings.TrimSpace(e.Reference) == strings.TrimSpace(r.want)
	case "by_key":
		return e.Key == r.want
	case "by_parent":
		return e.Under(r.want)
	}
	return true
}

// order reports whether objects come in the order of their creation.
func (r *reading) order() bool { return r.name == "list" }

// place holds an object against the order and the window of its list. pass is set for one
// that lies outside: providers may ignore bounds, and ours are wider than the window.
func (p *pageOf) place(created time.Time) (fault *sources.Error, pass bool) {
	r := p.reading
	// Pages by number slip when objects are made meanwhile: the next one then begins with
	// what the one before ended with.
	numbered := r.paging != nil && (r.paging.style == stylePage || r.paging.style == styleOffset)
	if first := p.read == 0; !first || r.pages+int(r.pos.Turned) > 0 && !numbered && r.pos.Under.IsZero() {
		wrong := created.After(p.oldest)
		if !r.newestFirst {
			wrong = created.Before(p.oldest)
		}
		if wrong {
			return p.fault(p.name, sources.Malformed, errors.New("objects are not in the order of creation that is configured")), true
		}
	}
	p.read++
	p.oldest = created
	early := !r.since.IsZero() && created.Before(r.since)
	late := !r.until.IsZero() && !created.Before(r.until)
	if early && r.newestFirst || late && !r.newestFirst {
		p.ended = true
	}
	return nil, early || late || p.ended
}

// whole reads an object by its id, because lists do not show all of it.
func (p *pageOf) whole(ctx context.Context, s *sources.Sighting) (*sources.Error, error) {
	one := p.open(p.reading.list(), p.reading.kind.byID, sources.Question{EffectID: s.Effect.ID})
	one.want = s.Effect.ID
	err := p.turn(ctx, one)
	p.more.Join(one.good)
	p.more.Join(one.bad)
	switch {
	case err != nil || one.fault != nil:
		return one.fault, err
	case one.missing || len(one.found) == 0:
		return p.fault(p.name, sources.Malformed, errors.New("an object that the list shows is not there by its id")), nil
	}
	*s = *p.asking.Seen[one.found[0]]
	return nil, nil
}

// complete names what every effect of this source bears.
func (a *asking) complete(e *recon.Effect) { e.Source, e.System = a.name, a.sheet.System }
