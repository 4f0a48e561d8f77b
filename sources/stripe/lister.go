package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

var _ sources.Lister = (*Source)(nil)

// Lists gives a list for every account and mode of each kind that is observed here.
func (s *Source) Lists(kinds []string) []sources.List {
	var lists []sources.List
	for _, kind := range s.sheet.Kinds {
		if !slices.Contains(kinds, kind) {
			continue
		}
		for _, p := range s.places {
			lists = append(lists, sources.List{Kind: kind, Account: p.account, Mode: p.mode})
		}
	}
	return lists
}

// Page reads one page of a list. An error means that the context ended, or that the
// window or the cursor is none of this list's: then nothing was asked.
func (s *Source) Page(ctx context.Context, l sources.List, w recon.Window, cursor string, now func() time.Time) (sources.Page, error) {
	from, err := readCursor(cursor, l, w)
	if err != nil {
		return sources.Page{}, fmt.Errorf("%s: list %s: %w", s.name, l.Kind, err)
	}
	a := s.asking(now)
	r := a.resume(l, w, from)
	if err := a.readPage(ctx, r, from); err != nil {
		return sources.Page{}, fmt.Errorf("%s: list %s: %w", s.name, l.Kind, err)
	}
	return a.toldPage(l, w, r, cursor)
}

// resume opens a list where the page before ended, or at the newest object.
func (a *asking) resume(l sources.List, w recon.Window, from position) *reading {
	r := a.open(listing{
		place: a.place(l.Account, l.Mode), kind: l.Kind, limit: a.pageSize,
		since: w.From.Truncate(time.Second).UTC(), until: w.To.UTC(), after: from.After,
	})
	if l.Kind == kindRefund && a.memory.mayExpand(l, r.at) {
		r.expand = []string{"charge"}
	}
	r.begin = w.From.UTC()
	// Objects of the running second may still be made.
	r.to = r.at.Truncate(time.Second)
	if w.To.Before(r.to) {
		r.to = w.To.UTC()
	}
	if from.After != "" {
		r.to, r.oldest = from.To, from.Oldest
	}
	return r
}

// place gives the source's place, nil when it has none.
func (s *Source) place(account, mode string) *place {
	for _, p := range s.places {
		if p.account == account && p.mode == mode {
			return p
		}
	}
	return nil
}

// readPage reads the page that a list stands at.
func (a *asking) readPage(ctx context.Context, r *reading, from position) error {
	if !slices.Contains(a.sheet.Kinds, r.kind) {
		r.fault = a.fault("list", sources.Unsupported, errors.New("this source does not observe the kind"))
		return nil
	}
	return a.readOn(ctx, r, from, a.turnExpanded)
}

// readOn reads the page that a list stands at, with what turns its pages.
func (a *asking) readOn(ctx context.Context, r *reading, from position, turn func(context.Context, *reading) error) error {
	switch {
	case r.place == nil:
		r.fault = a.fault("list", sources.WrongAccount, errors.New("the account or mode is not one of the source's; add it to the source's accounts"))
		return nil
	case from.After == "" && !r.begin.Before(r.to):
		r.fault = a.fault("list", sources.OwnBug, errors.New("the window begins later than now; check the clocks"))
		return nil
	}
	fault, err := a.identify(ctx, r.place)
	if err != nil || fault != nil {
		r.fault = fault
		return err
	}
	if err := turn(ctx, r); err != nil {
		return err
	}
	if !r.lostCursor() {
		return nil
	}
	// The object at which the page before ended was deleted. All that is as old as it,
	// or older, is read again.
	r.after, r.fault, r.bad = "", nil, sources.Trail{}
	r.until = from.Oldest.Add(time.Second)
	return turn(ctx, r)
}

// turnExpanded reads the next page with its charges shown whole. A key may read refunds
// and no charges: then it reads the page without them, and what they would have told is
// not known.
func (a *asking) turnExpanded(ctx context.Context, r *reading) error {
	err := a.turn(ctx, r)
	var reply replyError
	if err != nil || r.fault == nil || len(r.expand) == 0 || !errors.As(r.fault.Err, &reply) || reply.Status != http.StatusForbidden {
		return err
	}
	a.forgive()
	r.expand, r.fault, r.bad = nil, nil, sources.Trail{}
	err = a.turn(ctx, r)
	if err == nil && r.fault == nil {
		a.memory.expansionRefused(sources.List{Kind: r.kind, Account: r.place.account, Mode: r.place.mode}, r.at)
	}
	return err
}

// lostCursor reports that the provider no longer knows the object that the page before
// ended with.
func (r *reading) lostCursor() bool {
	var reply replyError
	return r.fault != nil && r.after != "" && errors.As(r.fault.Err, &reply) && reply.missing() && reply.Param == "starting_after"
}

// toldPage gives what was read, and where to go on.
func (a *asking) toldPage(l sources.List, w recon.Window, r *reading, cursor string) (sources.Page, error) {
	method := recon.ByList
	if r.kind == kindEvent {
		method = recon.ByChanges
	}
	look := a.Look(l, method, r.at)
	next := ""
	if r.fault != nil {
		look.Window = recon.Window{From: r.begin, To: r.to}
		if !r.begin.Before(r.to) {
			look.Window.To = w.To.UTC()
		}
		a.Conclude(look, r.whole, r.badFound, r.fault)
		next = cursor
	} else {
		look.Window = recon.Window{From: r.from(), To: r.to}
		a.Conclude(look, r.whole, r.found, nil)
		if !r.done {
			next = sources.WriteCursor(position{After: r.after, Oldest: r.oldest, To: r.from()}, l, w)
		}
	}
	return a.AsPage(next)
}
