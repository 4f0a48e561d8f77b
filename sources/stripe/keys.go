package stripe

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// maxEventPages bounds the feed of one group: 5,000 events.
const maxEventPages = 50

// feed is a list of events that is being read for keys.
type feed struct {
	listing
	at    time.Time
	opens identity          // what the place's key opens
	left  map[string]bool   // keys that were not met yet
	made  map[string]string // id of the object by key
	pages int
	done  bool
	trail sources.Trail
	fault *sources.Error
}

// byKey looks for the keys of the questions that nothing else has answered. There is
// no filter by key: the events of the kind are listed, and the keys compared.
func (a *asking) byKey(ctx context.Context, g sources.Group) error {
	seen := sight(a.inGroup(g.List))
	var open []sources.Question
	for _, q := range g.Questions {
		if seen.wantsKey(q) {
			open = append(open, q)
		}
	}
	if len(open) == 0 || len(kinds[g.Kind].made) == 0 || a.halted() != nil {
		return nil
	}
	at := a.now().UTC()
	from := sources.Since(open[len(open)-1].From)
	if history := at.Add(-eventHistory); from.Before(history) {
		from = history.Truncate(time.Second)
	}
	f := &feed{
		listing: listing{place: a.place(g.Account, g.Mode), kind: kindEvent, since: from, types: kinds[g.Kind].made, limit: a.pageSize},
		at:      at, opens: a.memory.identityOf(a.place(g.Account, g.Mode)), left: map[string]bool{}, made: map[string]string{},
	}
	for _, q := range open {
		f.left[q.Key] = true
	}
	for !f.done && f.fault == nil && len(f.left) > 0 {
		if err := a.follow(ctx, g, f); err != nil {
			return err
		}
	}
	return a.tellKeys(ctx, g, f, open)
}

// follow reads the next page of the feed.
func (a *asking) follow(ctx context.Context, g sources.Group, f *feed) error {
	if f.pages >= maxEventPages {
		f.fault = a.fault("GET /v1/events", sources.Truncated, errors.New("there are more events than one look reads"))
		return nil
	}
	ex, fault, err := a.do(func() (*exchange, *sources.Error, error) { return a.page(ctx, f.listing) })
	if err != nil {
		return err
	}
	follow(&f.trail, ex)
	if fault != nil {
		f.fault = fault
		return nil
	}
	cursor := f.after
	for _, raw := range ex.page.Data {
		e, ok := readEvent(raw)
		if !ok {
			f.fault = a.fault("GET /v1/events", sources.Malformed, errors.New("an event is not what the API sends"))
			return nil
		}
		cursor = string(e.ID)
		f.note(g, e)
	}
	f.pages++
	f.done = !*ex.page.HasMore
	if !f.done && cursor == f.after {
		f.fault = a.fault("GET /v1/events", sources.Truncated, errors.New("the list does not move on"))
	}
	f.after = cursor
	return nil
}

// note takes an event's key, unless the event is of another mode, account or kind.
func (f *feed) note(g sources.Group, e event) {
	switch {
	case e.Livemode != nil && *e.Livemode != (f.place.mode == modeLive),
		e.Account != "" && f.opens == isRight && string(e.Account) != f.place.account,
		string(e.Data.Object.Object) != kinds[g.Kind].objectName(g.Kind) || e.Data.Object.ID == "",
		!f.left[e.Request.Key]:
		return
	}
	f.made[e.Request.Key] = string(e.Data.Object.ID)
	delete(f.left, e.Request.Key)
}

// tellKeys records one look for each key, and reads the objects that were found: an
// event is a snapshot. Where a reference was sent too, silence and faults of the feed
// are not told, since another look has already answered the question.
func (a *asking) tellKeys(ctx context.Context, g sources.Group, f *feed, open []sources.Question) error {
	told := map[string]bool{}
	for _, q := range open {
		if told[q.Key] {
			continue
		}
		told[q.Key] = true
		l := a.Look(g.List, recon.ByKey, f.at)
		l.Key, l.Window = q.Key, recon.Window{From: f.since, To: f.at}
		fault := f.fault
		var found []recon.EffectIdentity
		if id := f.made[q.Key]; id != "" {
			var err error
			if found, fault, err = a.learn(ctx, g, id, q.Key, &f.trail); err != nil {
				return err
			}
		} else if slices.Contains(q.Marks, recon.MarkReference) {
			continue
		}
		a.Conclude(l, f.trail, found, fault)
		f.trail = sources.Trail{}
	}
	a.Spare += f.trail.Calls
	return nil
}

// learn gives an object its key, after reading it where it was not read yet.
func (a *asking) learn(ctx context.Context, g sources.Group, id, key string, t *sources.Trail) ([]recon.EffectIdentity, *sources.Error, error) {
	identity := recon.EffectIdentity{System: a.system, Account: g.Account, Mode: g.Mode, ID: id}
	if _, ok := a.Seen[identity]; !ok {
		_, fault, err := a.read(ctx, g, id, t)
		if err != nil || fault != nil {
			return nil, fault, err
		}
	}
	a.Seen[identity].Effect.Key = key
	return []recon.EffectIdentity{identity}, nil, nil
}
