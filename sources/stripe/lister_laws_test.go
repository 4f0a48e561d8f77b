package stripe_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// TestAListNeverClaimsMoreThanItRead: whatever lies where, however long the pages are,
// wherever the provider breaks and the process starts anew, and whatever is made
// meanwhile, each page begins where the one before ended, and every refund in what the
// pages cover was in one of them.
func TestAListNeverClaimsMoreThanItRead(t *testing.T) {
	t.Parallel()
	kinds := []stripetest.FaultKind{stripetest.ServerError, stripetest.RateLimited, stripetest.Truncated, stripetest.EmptyObject, stripetest.Forbidden, stripetest.Closed}
	rapid.Check(t, func(rt *rapid.T) {
		f := newFake(t)
		defer f.Close()
		gap := func(name string) {
			f.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 300, 1000, 1700, 60_000}).Draw(rt, name)) * time.Millisecond)
		}
		begin := f.Now()
		for range rapid.IntRange(0, 25).Draw(rt, "effects") {
			gap("gap")
			f.refund(t, stripetest.Refund{}, "")
		}
		w := recon.Window{
			From: begin.Add(time.Duration(rapid.IntRange(-3000, 9000).Draw(rt, "from")) * time.Millisecond),
			To:   f.Now().Add(time.Duration(rapid.IntRange(-2000, 5000).Draw(rt, "to")) * time.Millisecond),
		}
		// It begins before the running second, as every window that is asked for, and is not empty.
		if latest := f.Now().Truncate(time.Second).Add(-time.Second); w.From.After(latest) {
			w.From = latest
		}
		if !w.From.Before(w.To) {
			w.To = w.From.Add(time.Millisecond)
		}
		f.Script(stripetest.Fault{Kind: rapid.SampledFrom(kinds).Draw(rt, "fault"), Path: "/v1/refunds",
			Nth: rapid.IntRange(1, 8).Draw(rt, "nth"), Times: rapid.IntRange(1, 2).Draw(rt, "times")})
		got := listing{edge: time.Time{}, seen: map[string]bool{}}
		src, cursor := open(t, f.settings(), stripe.Options{PageSize: rapid.IntRange(1, 5).Draw(rt, "page")}), ""
		for turn := 0; turn == 0 || cursor != "" || got.broke; turn++ {
			if turn > 200 {
				rt.Fatal("a list without an end")
			}
			p, err := src.Page(context.Background(), refundsLive, w, cursor, f.Now)
			if err != nil {
				rt.Fatal(err)
			}
			got.take(rt, p, cursor)
			cursor = p.Next
			if got.broke || rapid.IntRange(0, 4).Draw(rt, "restart") == 0 {
				f.Add(10 * time.Second) // the silence that a 429 asks for
				src = open(t, f.settings(), stripe.Options{PageSize: rapid.IntRange(1, 5).Draw(rt, "page")})
			}
			if rapid.Bool().Draw(rt, "makes") {
				f.refund(t, stripetest.Refund{}, "")
			}
		}
		got.hold(rt, f, w)
	})
}

// listing is what the pages of a list claimed and brought.
type listing struct {
	top, edge time.Time // the covered part, from the newest to the oldest
	seen      map[string]bool
	broke     bool // the last page was not read
}

func (l *listing) take(rt *rapid.T, p sources.Page, cursor string) {
	l.broke = p.Look.Outcome == recon.Blind
	switch {
	case l.broke && p.Next != cursor:
		rt.Fatalf("a page that was not read leads from %q to %q", cursor, p.Next)
	case l.broke:
		return
	case l.top.IsZero():
		l.top = p.Look.Window.To
	case !p.Look.Window.To.Equal(l.edge):
		rt.Fatalf("a page begins at %s, and the one before ended at %s", p.Look.Window.To, l.edge)
	}
	l.edge = p.Look.Window.From
	for _, e := range p.Effects {
		l.seen[e.ID] = true
	}
}

func (l *listing) hold(rt *rapid.T, f fake, w recon.Window) {
	if !l.edge.Equal(w.From) {
		rt.Fatalf("a list that was read to its end covers from %s, want %s", l.edge, w.From)
	}
	covered := recon.Window{From: w.From.Truncate(time.Second), To: l.top}
	for _, r := range f.Refunds() {
		if at := r.Created.Truncate(time.Second); covered.Contains(at) && !l.seen[r.ID] {
			rt.Fatal(fmt.Sprintf("%s of %s is covered by %v and was in no page", r.ID, at, covered))
		}
	}
	if f.Writes() != 0 {
		rt.Fatal("the source wrote")
	}
}
