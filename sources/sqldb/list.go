package sqldb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// reading is a list of a window that is being read, newest first.
type reading struct {
	list  sources.List
	since time.Time
	until time.Time // zero is no bound
	at    time.Time // when the first page was asked for
	to    time.Time // where what is read here begins
	pos   position
	found []recon.EffectIdentity
	done  bool
	trail sources.Trail
	bad   int // requests that were made in vain
	fault *sources.Error
}

// position is where a page ended: the row after which the next one begins.
type position struct {
	ID     string    `json:"id"` // of its last row; empty: nothing was read yet
	Oldest time.Time `json:"oldest"`
	To     time.Time `json:"to"` // back to where the list was read without a gap
}

// Good reports whether a page can have ended here.
func (p position) Good() bool { return p.ID != "" && len(p.ID) <= maxText }

// Edges are when the last row was made, and back to where the list was read.
func (p position) Edges() (oldest, to time.Time) { return p.Oldest, p.To }

// maxText bounds an id in a cursor.
const maxText = 10_000

// from is back to where the list was read without a gap: others of the last row's instant
// may stand on the next page.
func (r *reading) from() time.Time {
	switch from := r.pos.Oldest.Add(time.Microsecond); {
	case r.done:
		return r.since
	case r.pos.ID == "" || from.After(r.to):
		return r.to
	default:
		return from
	}
}

// turn reads the next page.
func (a *asking) turn(ctx context.Context, r *reading) error {
	k := a.kinds[r.list.Kind]
	var page []*sources.Sighting
	made, fault, err := a.do(ctx, request{name: "SELECT " + r.list.Kind + " list", behind: k.lagOf(), run: func(ctx context.Context, t tx) (err error) {
		page, err = a.page(ctx, t, r)
		return err
	}})
	if err != nil {
		return err
	}
	if r.fault = fault; fault != nil {
		if made {
			r.bad++
		}
		return nil
	}
	var raw []byte
	for _, s := range page {
		a.Seen[s.Effect.Identity()] = s
		r.found = append(r.found, s.Effect.Identity())
		raw = append(append(raw, s.Raw...), '\n')
	}
	r.trail.Add("", raw)
	if len(page) > 0 {
		last := page[len(page)-1].Effect
		r.pos.ID, r.pos.Oldest = last.ID, last.CreatedAt
	}
	r.done = len(page) < a.settings.PageSize
	return nil
}

// page reads the rows after the last one, in the order of creation and id. A row without a
// time of creation would be in no window: while there is one, no list is whole.
func (a *asking) page(ctx context.Context, t tx, r *reading) ([]*sources.Sighting, error) {
	k := a.kinds[r.list.Kind]
	rel, err := a.table(ctx, t, k)
	if err != nil {
		return nil, err
	}
	created, id := rel.col(k.Columns.CreatedAt), rel.col(k.Columns.ID)
	if !rel.columns[k.Columns.CreatedAt].notNull {
		var undated bool
		var q query
		where := append(k.among(&q, rel, r.list), created+" IS NULL")
		if err := t.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+rel.from()+" WHERE "+conditions(where)+")", q.args...).Scan(&undated); err != nil {
			return nil, err
		}
		if undated {
			return nil, &rowError{"created_at", errEmpty}
		}
	}
	var q query
	where := append(k.among(&q, rel, r.list), created+" >= "+rel.bound(k.Columns.CreatedAt, q.arg(r.since)))
	if !r.until.IsZero() {
		where = append(where, created+" < "+rel.bound(k.Columns.CreatedAt, q.arg(r.until)))
	}
	if r.pos.ID != "" {
		after := rel.bound(k.Columns.CreatedAt, q.arg(r.pos.Oldest))
		where = append(where, fmt.Sprintf("(%s, %s) < (%s, %s::text::%s)", created, id, after, q.arg(r.pos.ID), rel.cast(k.Columns.ID)))
	}
	order := fmt.Sprintf(" ORDER BY %s DESC, %s DESC LIMIT %s", created, id, q.arg(a.settings.PageSize))
	rows, err := a.rows(ctx, t, statement{k: k, relation: rel, where: where, args: q.args, order: order})
	if err != nil {
		return nil, err
	}
	return a.sightings(rows, r.list)
}

// window lists what was created since the oldest question, for questions that nothing else
// can answer.
func (a *asking) window(ctx context.Context, g sources.Group) error {
	at := a.now().UTC()
	if fault := a.halted(); fault != nil {
		a.Blind(g, at, fault)
		return nil
	}
	since := g.Oldest()
	if latest := at.Add(-time.Second); since.After(latest) {
		since = latest // a list answers only for what is older than itself
	}
	// No end: a row that a clock ahead of ours has dated later is seen all the same.
	r := &reading{list: g.List, since: sources.Since(since), at: at, to: at}
	for !r.done && r.fault == nil {
		if err := a.turn(ctx, r); err != nil {
			return err
		}
	}
	l := a.Look(g.List, recon.ByList, at)
	outside := a.Ranged(l, recon.Window{From: r.from(), To: r.to}, r.trail, r.found)
	if r.fault == nil {
		a.Outside(l, r.trail, outside)
	} else {
		l.Window = recon.Window{From: r.since, To: r.from()}
		a.Spare += r.bad
		a.Conclude(l, sources.Trail{}, outside, r.fault)
	}
	if early := slices.DeleteFunc(slices.Clone(g.Questions), func(q sources.Question) bool { return q.From.Before(at) }); len(early) > 0 {
		a.Blind(g.Only(early), at, a.fault("ask", sources.OwnBug, errors.New("a question begins later than now; check the clocks")))
	}
	return nil
}

// Lists gives a list for every account and mode of each kind.
func (s *Source) Lists(kinds []string) []sources.List {
	var lists []sources.List
	for _, kind := range s.sheet.Kinds {
		if !slices.Contains(kinds, kind) {
			continue
		}
		for _, at := range s.sheet.Accounts {
			lists = append(lists, sources.List{Kind: kind, Account: at.Account, Mode: at.Mode})
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
	defer a.close(ctx)
	at := now().UTC()
	r := &reading{list: l, since: w.From.UTC(), until: w.To.UTC(), at: at, to: at.Truncate(time.Second)}
	if r.until.Before(r.to) {
		r.to = r.until
	}
	if from != nil {
		r.pos, r.to = *from, from.To
	}
	switch {
	case a.Refusal("list", l, s.sheet) != nil:
		r.fault = a.Refusal("list", l, s.sheet)
	case from == nil && !r.since.Before(r.to):
		r.fault = s.fault("list", sources.OwnBug, errors.New("the window begins later than now; check the clocks"))
	default:
		if err := a.turn(ctx, r); err != nil {
			return sources.Page{}, fmt.Errorf("%s: list %s: %w", s.name, l.Kind, err)
		}
	}
	return a.toldPage(r, w, cursor)
}

// toldPage gives what was read, and where to go on.
func (a *asking) toldPage(r *reading, w recon.Window, cursor string) (sources.Page, error) {
	look, next := a.Look(r.list, recon.ByList, r.at), ""
	if r.fault != nil {
		look.Window = recon.Window{From: r.since, To: r.to}
		if cursor == "" {
			look.Window.To = r.until
		}
		a.Spare += r.bad
		a.Conclude(look, sources.Trail{}, nil, r.fault)
		next = cursor
	} else {
		look.Window = recon.Window{From: r.from(), To: r.to}
		a.Conclude(look, r.trail, r.found, nil)
		if !r.done {
			next = sources.WriteCursor(position{ID: r.pos.ID, Oldest: r.pos.Oldest, To: r.from()}, r.list, w)
		}
	}
	return a.AsPage(next)
}
