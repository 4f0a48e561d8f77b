package httpapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// Lists gives a list for every account and mode of each kind that has one.
func (s *Source) Lists(kinds []string) []sources.List {
	var lists []sources.List
	for _, kind := range s.sheet.Kinds {
		if !slices.Contains(kinds, kind) || s.kinds[kind].list == nil {
			continue
		}
		for _, p := range s.places {
			lists = append(lists, sources.List{Kind: kind, Account: p.Account.Account, Mode: p.Mode})
		}
	}
	return lists
}

// Page reads one page of a list. An error means that the context ended, or that the window
// or the cursor is none of this list's: then nothing was asked.
func (s *Source) Page(ctx context.Context, l sources.List, w recon.Window, cursor string, now func() time.Time) (sources.Page, error) {
	from, err := sources.ReadCursor[position](cursor, l, w)
	if err != nil {
		return sources.Page{}, fmt.Errorf("%s: list %s: %w", s.name, l.Kind, err)
	}
	a := s.asking(now)
	at := now().UTC()
	// Objects of the running second may still be made.
	r := &reading{at: at, begin: w.From.UTC(), to: earlier(at.Truncate(time.Second), w.To.UTC())}
	if from != nil {
		r.to = from.To
	}
	if r.fault = a.refusePage(l, r, from); r.fault == nil {
		if err := a.readPage(ctx, l, r, from); err != nil {
			return sources.Page{}, fmt.Errorf("%s: list %s: %w", s.name, l.Kind, err)
		}
	}
	return a.toldPage(l, w, r, cursor)
}

// refusePage says why a page cannot be asked for, or nil.
func (a *asking) refusePage(l sources.List, r *reading, from *position) *sources.Error {
	if refusal := a.Refusal("list", l, a.sheet); refusal != nil {
		return refusal
	}
	switch {
	case a.kinds[l.Kind].list == nil:
		return a.fault("list", sources.Unsupported, errors.New("this source does not list the kind"))
	case from == nil && !r.begin.Before(r.to):
		return a.fault("list", sources.OwnBug, errors.New("the window begins later than now; check the clocks"))
	}
	return nil
}

// placeOf gives the source's place, nil when it has none.
func (s *Source) placeOf(account, mode string) *place {
	for _, p := range s.places {
		if p.Account.Account == account && p.Mode == mode {
			return p
		}
	}
	return nil
}

// readPage reads the page that a list stands at into r.
func (a *asking) readPage(ctx context.Context, l sources.List, r *reading, from *position) error {
	list := a.open(l, a.kinds[l.Kind].list, sources.Question{})
	list.at, list.begin, list.to = r.at, r.begin, r.to
	list.since = r.begin.Truncate(time.Second) // providers may count in whole seconds
	list.until = r.to
	if from != nil {
		list.pos, list.until = *from, from.Till
	}
	list.pos.Till = list.until
	err := a.turn(ctx, list)
	*r = *list
	return err
}

// toldPage gives what was read, and where to go on.
func (a *asking) toldPage(l sources.List, w recon.Window, r *reading, cursor string) (sources.Page, error) {
	look, next := a.Look(l, recon.ByList, r.at), ""
	if r.fault != nil {
		look.Window = recon.Window{From: w.From.UTC(), To: r.to}
		if cursor == "" {
			look.Window.To = w.To.UTC()
		}
		a.Conclude(look, r.bad, nil, r.fault)
		next = cursor
		clear(a.Seen)
	} else {
		look.Window = recon.Window{From: r.from(), To: r.to}
		a.Conclude(look, r.good, r.found, nil)
		if !r.done {
			at := r.pos
			at.To = r.from()
			next = sources.WriteCursor(at, l, w)
		}
	}
	return a.AsPage(next)
}

// Good reports whether a page can have ended here.
func (p position) Good() bool {
	return p.Count >= 0 && p.Turned >= 0 && (p.Turned > 0 || !p.Under.IsZero())
}

// Edges are when the last object was created, and back to where the list was read.
func (p position) Edges() (oldest, to time.Time) { return p.Oldest, p.To }
