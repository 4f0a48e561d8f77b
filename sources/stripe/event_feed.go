package stripe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

var _ sources.Feeder = (*Source)(nil)

// Feeds are all accounts and modes of the source.
func (s *Source) Feeds() []recon.Account { return slices.Clone(s.sheet.Accounts) }

// Events reads one page of the events of an account and mode. Stripe lists them for 30
// days: of a window that begins earlier the last page ends where the list does, as its
// look says, and what lies before was not looked at. A window that lies before altogether
// is blind, unsupported; its objects can be listed. The events have the shape of the API
// version in which they were made. An error means that the context ended, or that the
// window or the cursor is none of this feed's: then nothing was asked.
func (s *Source) Events(ctx context.Context, feed recon.Account, w recon.Window, cursor string, now func() time.Time) (sources.EventPage, error) {
	l := sources.List{Kind: kindEvent, Account: feed.Account, Mode: feed.Mode}
	from, err := readCursor(cursor, l, w)
	if err != nil {
		return sources.EventPage{}, fmt.Errorf("%s: list events: %w", s.name, err)
	}
	a := s.asking(now)
	f := &feedPage{asking: a, list: a.resume(l, w, from)}
	if err := f.read(ctx, from); err != nil {
		return sources.EventPage{}, fmt.Errorf("%s: list events: %w", s.name, err)
	}
	page, err := a.toldPage(l, w, f.list, cursor)
	if err != nil {
		return sources.EventPage{}, err
	}
	return sources.EventPage{Events: f.events, Next: page.Next, Look: page.Look}, nil
}

// feedPage is a page of a feed that is being read.
type feedPage struct {
	asking *asking
	list   *reading
	events []recon.Event
}

// read reads the page, no further back than Stripe lists events.
func (f *feedPage) read(ctx context.Context, from position) error {
	listed := f.list.at.Add(-eventHistory).Add(time.Second).Truncate(time.Second)
	if f.list.begin.Before(listed) {
		if !listed.Before(f.list.to) {
			f.list.fault = f.asking.fault("list events", sources.Unsupported,
				errors.New("the window lies before the 30 days for which Stripe lists events; list its objects instead"))
			return nil
		}
		f.list.begin, f.list.since = listed, listed
	}
	return f.asking.readOn(ctx, f.list, from, f.turn)
}

// turn reads the next page.
func (f *feedPage) turn(ctx context.Context, r *reading) error {
	ex, fault, err := f.asking.do(func() (*exchange, *sources.Error, error) { return f.asking.page(ctx, r.listing) })
	if err != nil {
		return err
	}
	follow(&r.whole, ex)
	if fault == nil {
		fault = f.take(r, ex)
	}
	r.fault = fault
	return nil
}

// take reads the events of a page. One that cannot be read leaves the whole page unread.
func (f *feedPage) take(r *reading, ex *exchange) *sources.Error {
	cursor, oldest, ended := r.after, r.oldest, !*ex.page.HasMore
	var events []recon.Event
	var found []recon.EffectIdentity
	for _, raw := range ex.page.Data {
		e, ok := readEvent(raw)
		created := time.Unix(int64(e.Created), 0).UTC()
		if kind, err := oddEvent(r.place, e, ok, cursor != "" && created.After(oldest)); err != nil {
			return f.asking.fault(feedEndpoint, kind, err)
		}
		if created.Before(r.since) {
			ended = true // the filter was ignored; what it asks for was all read
			break
		}
		cursor, oldest = string(e.ID), created
		if !created.Before(r.until) {
			continue // the filter was ignored; what it asks for comes later
		}
		events = append(events, f.asking.listed(r.place, e, raw))
		if id, ok := f.asking.about(r.place, e); ok {
			found = append(found, id)
		}
	}
	if !ended && cursor == r.after {
		return f.asking.fault(feedEndpoint, sources.Truncated, errors.New("the list does not move on"))
	}
	r.pages++
	r.oldest, r.after, r.done = oldest, cursor, ended
	r.found, f.events = found, events
	return nil
}

const feedEndpoint = "GET /v1/events"

// oddEvent says why an event does not belong where it stands.
func oddEvent(p *place, e event, read, newer bool) (sources.Kind, error) {
	switch {
	case !read:
		return sources.Malformed, errors.New("an event is not what the API sends")
	case e.Livemode != nil && *e.Livemode != (p.mode == modeLive):
		return sources.WrongAccount, errors.New("an event is of another mode; the key is not one of " + p.mode + " mode")
	case newer:
		return sources.Malformed, errors.New("events are not in order of creation, newest first")
	}
	return "", nil
}

// listed is an event that was read from a place. Its account is the one that it names.
func (s *Source) listed(p *place, e event, raw []byte) recon.Event {
	out := recon.Event{
		Source: s.name, System: s.system, Account: e.account(p.account), Mode: p.mode, ID: string(e.ID), Type: string(e.Type),
		CreatedAt: time.Unix(int64(e.Created), 0).UTC(), Signed: true, Body: raw,
	}
	if !eventTypes.MatchString(out.Type) {
		out.Type = unknownType
	}
	return out
}

// about names the object of an event, false for one of a kind that is not observed.
func (s *Source) about(p *place, e event) (recon.EffectIdentity, bool) {
	_, ok := ourKind(string(e.Data.Object.Object))
	id := recon.EffectIdentity{System: s.system, Account: p.account, Mode: p.mode, ID: string(e.Data.Object.ID)}
	return id, ok && eventIDs.MatchString(id.ID)
}
