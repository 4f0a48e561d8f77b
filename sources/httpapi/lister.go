package httpapi

import (
	"context"
	"encoding/json"
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
	from, err := readCursor(cursor, l, w)
	if err != nil {
		return sources.Page{}, fmt.Errorf("%s: list %s: %w", s.name, l.Kind, err)
	}
	a := s.asking(now)
	g := groupID{l.Account, l.Mode, l.Kind}
	at := now().UTC()
	// Objects of the running second may still be made.
	r := &reading{at: at, begin: w.From.UTC(), to: earlier(at.Truncate(time.Second), w.To.UTC())}
	if from != nil {
		r.to = from.To
	}
	if r.fault = s.refusePage(l, r, from); r.fault == nil {
		if err := a.readPage(ctx, g, r, w, from); err != nil {
			return sources.Page{}, fmt.Errorf("%s: list %s: %w", s.name, l.Kind, err)
		}
	}
	return a.toldPage(l, w, r, cursor)
}

// refusePage says why a page cannot be asked for, or nil.
func (s *Source) refusePage(l sources.List, r *reading, from *position) *sources.Error {
	k := s.kinds[l.Kind]
	switch {
	case k == nil || k.list == nil:
		return s.fault("list", sources.Unsupported, errors.New("this source does not list the kind"))
	case s.placeOf(l.Account, l.Mode) == nil:
		return s.fault("list", sources.WrongAccount, errors.New("the account or mode is not one of the source's; add it to the source's accounts"))
	case from == nil && !r.begin.Before(r.to):
		return s.fault("list", sources.OwnBug, errors.New("the window begins later than now; check the clocks"))
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
func (a *asking) readPage(ctx context.Context, g groupID, r *reading, w recon.Window, from *position) error {
	list := a.open(g, a.placeOf(g.account, g.mode), a.kinds[g.kind].list, sources.Question{})
	list.at, list.begin, list.to = r.at, r.begin, r.to
	list.since = w.From.UTC().Truncate(time.Second) // providers may count in whole seconds
	list.until = earlier(w.To.UTC(), r.to)
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
	look := a.look(groupID{l.Account, l.Mode, l.Kind}, recon.ByList, r.at)
	page := sources.Page{}
	if r.fault != nil {
		look.Window = recon.Window{From: w.From.UTC(), To: r.to}
		if cursor == "" {
			look.Window.To = w.To.UTC()
		}
		a.conclude(look, r.bad, nil, r.fault)
		page.Next, a.seen = cursor, nil
	} else {
		look.Window = recon.Window{From: r.from(), To: r.to}
		a.conclude(look, r.good, r.found, nil)
		if !r.done {
			next := r.pos
			next.To = r.from()
			page.Next = next.cursor(l, w)
		}
	}
	ans, err := a.answer()
	if err != nil {
		return sources.Page{}, err
	}
	page.Effects, page.Raw, page.Look = ans.Effects, ans.Raw, ans.Looks[0]
	return page, nil
}

// bookmark is a position as it is stored. It names its list and window, since with another
// one it would claim what was never read.
type bookmark struct {
	position
	List  sources.List `json:"list"`
	Begin time.Time    `json:"begin"`
	End   time.Time    `json:"end"`
}

// cursor writes a position of a list.
func (p position) cursor(l sources.List, w recon.Window) string {
	b, err := json.Marshal(bookmark{position: p, List: l, Begin: w.From.UTC(), End: w.To.UTC()})
	if err != nil {
		return "" // unreachable: times within 2000 to 2100 and texts
	}
	return string(b)
}

// readCursor reads a position, nil for the beginning. It refuses a window that is none,
// and what was not written for this list and window.
func readCursor(cursor string, l sources.List, w recon.Window) (*position, error) {
	if w.From.IsZero() || !w.From.Before(w.To) {
		return nil, errors.New("the window is empty; give one that ends after it begins")
	}
	if cursor == "" {
		return nil, nil
	}
	var b bookmark
	err := json.Unmarshal([]byte(cursor), &b)
	switch {
	case err != nil || b.Count < 0 || b.Turned < 0 || b.Turned == 0 && b.Under.IsZero():
		return nil, errors.New("the cursor cannot be read; begin the list anew without one")
	case b.List != l || !b.Begin.Equal(w.From) || !b.End.Equal(w.To):
		return nil, errors.New("the cursor is of another list or window; begin the list anew without one")
	case b.Oldest.Before(minTime) || !b.Oldest.Before(maxTime) || b.To.After(w.To) || b.To.Before(w.From):
		return nil, errors.New("the cursor stands outside of its window; begin the list anew without one")
	}
	return &b.position, nil
}
