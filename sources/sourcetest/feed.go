package sourcetest

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// feeder gives a new source, false when its provider has no list of events, or none of the
// kind.
func (b *bench) feeder(t *testing.T, pageSize int) (sources.Feeder, bool) {
	t.Helper()
	f, ok := b.Source(t, pageSize).(sources.Feeder)
	return f, ok && !b.Quiet
}

// feedPage reads a page of the home feed and holds it against what every page must keep.
func (b *bench) feedPage(t *testing.T, src sources.Feeder, w recon.Window, cursor string) sources.EventPage {
	t.Helper()
	before, _ := b.Requests()
	p, err := src.Events(t.Context(), b.Home, w, cursor, b.Now)
	if err != nil {
		t.Fatalf("Events: %v; a fault of the provider is a blind look, not an error", err)
	}
	l := p.Look
	b.checkCalls(t, sources.Answer{Looks: []recon.Look{l}}, before)
	blind := l.Outcome == recon.Blind
	switch {
	case l.ID == "" || l.At.IsZero() || l.Method != recon.ByChanges || l.Account != b.Home.Account || l.Mode != b.Home.Mode:
		t.Errorf("the look of a page of events is %+v", l)
	case blind == l.Complete || blind != (l.Fault != ""):
		t.Errorf("a look contradicts itself: outcome %s, complete %t, fault %q", l.Outcome, l.Complete, l.Fault)
	case l.Window.To.Before(l.Window.From) || l.Window.From.Before(w.From) || l.Window.To.After(w.To):
		t.Errorf("a page covers %v, which is not part of %v", l.Window, w)
	case blind && (p.Next != cursor || len(p.Events) > 0):
		t.Errorf("a page that was not read brings %d events and leads from %q to %q", len(p.Events), cursor, p.Next)
	}
	for _, e := range p.Events {
		if !e.Signed || e.Account != b.Home.Account || e.Mode != b.Home.Mode || e.CreatedAt.Before(w.From.Truncate(time.Second)) || len(e.Body) == 0 {
			t.Errorf("event %s of the feed is %+v", e.ID, e)
		}
	}
	return p
}

// readFeed reads the home feed to its end or to a blind page, and gives its events and
// where to go on. Pages must join without a gap.
func (b *bench) readFeed(t *testing.T, src sources.Feeder, w recon.Window, cursor string) (events []recon.Event, next string, blind bool) {
	t.Helper()
	var edge time.Time
	for range maxPages {
		p := b.feedPage(t, src, w, cursor)
		if p.Look.Outcome == recon.Blind {
			return events, p.Next, true
		}
		if !edge.IsZero() && !p.Look.Window.To.Equal(edge) {
			t.Errorf("a page begins at %s, and the one before ended at %s", p.Look.Window.To, edge)
		}
		edge = p.Look.Window.From
		events = append(events, p.Events...)
		if cursor = p.Next; cursor == "" {
			if !edge.Equal(w.From) {
				t.Errorf("the last page ends at %s, want the window's beginning %s", edge, w.From)
			}
			return events, "", false
		}
	}
	t.Fatalf("a feed of %d events has more than %d pages", len(events), maxPages)
	return nil, "", false
}

func names(events []recon.Event) []string {
	list := []string{}
	for _, e := range events {
		list = append(list, e.ID)
	}
	slices.Sort(list)
	return list
}

func feedAsDelivered(t *testing.T, b *bench) {
	receiver, from, ok := b.receiver(t)
	if _, feeds := b.feeder(t, 1); !ok || !feeds {
		return
	}
	_, w := b.spread(t, 6)
	away := b.send("away")
	away.effect.At = b.Away
	delivered := b.take(t, receiver, from.Deliveries(t))
	b.Make(t, away.effect)
	for size := 1; size <= 3; size++ {
		src, _ := b.feeder(t, size)
		listed, _, blind := b.readFeed(t, src, w, "")
		if blind {
			t.Fatalf("pages of %d: a page is blind, though nothing failed", size)
		}
		if diff := cmp.Diff(names(delivered), names(listed)); diff != "" {
			t.Fatalf("pages of %d: events (-delivered +listed):\n%s", size, diff)
		}
		at := map[string]recon.Event{}
		for _, e := range listed {
			at[e.ID] = e
		}
		for _, e := range delivered {
			want, got := show(t, receiver, []recon.Event{e}), show(t, receiver, []recon.Event{at[e.ID]})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("event %s shows (-delivered +listed):\n%s", e.ID, diff)
			}
		}
	}
}

func feedResumes(t *testing.T, b *bench) {
	if _, ok := b.feeder(t, 2); !ok {
		return
	}
	_, w := b.spread(t, 6)
	for fault, kinds := range faults {
		src, _ := b.feeder(t, 2)
		whole, _, _ := b.readFeed(t, src, w, "")
		src, _ = b.feeder(t, 2)
		b.Break(fault, 1)
		first, cursor, blind := b.readFeed(t, src, w, "")
		if !blind || len(first) != 2 {
			t.Errorf("%s on page 2: %d events were read, blind %t", fault, len(first), blind)
		}
		another, _ := b.feeder(t, 3)
		if p := b.feedPage(t, another, w, cursor); !slices.Contains(kinds, sources.Kind(p.Look.Fault)) {
			t.Errorf("%s: told as %q, want one of %v", fault, p.Look.Fault, kinds)
		}
		b.Mend()
		b.Advance(2 * time.Minute) // whatever silence the provider asked for
		b.done(t, "after the break by "+string(fault))
		another, _ = b.feeder(t, 3) // as after a restart
		rest, _, blind := b.readFeed(t, another, w, cursor)
		if diff := cmp.Diff(names(whole), names(append(first, rest...))); blind || diff != "" {
			t.Errorf("%s: events in one go and with a break (-whole +broken):\n%s", fault, diff)
		}
	}
}

func feedOfStrangers(t *testing.T, b *bench) {
	src, ok := b.feeder(t, 3)
	if !ok {
		return
	}
	if !slices.Contains(src.Feeds(), b.Home) || slices.Contains(src.Feeds(), b.Stranger) {
		t.Errorf("feeds are %v, want %v among them and not %v", src.Feeds(), b.Home, b.Stranger)
	}
	w := recon.Window{From: b.Now().Add(-time.Hour), To: b.Now()}
	p, err := src.Events(t.Context(), b.Stranger, w, "", b.Now)
	if err != nil || p.Look.Outcome != recon.Blind || p.Look.Fault != string(sources.WrongAccount) {
		t.Errorf("the page is %s %q with error %v, want blind %s", p.Look.Outcome, p.Look.Fault, err, sources.WrongAccount)
	}
	if all, _ := b.Requests(); all != 0 {
		t.Errorf("%d requests were made for what is not the source's", all)
	}
	if _, err := src.Events(t.Context(), b.Home, recon.Window{From: w.To, To: w.From}, "", b.Now); err == nil {
		t.Error("a window that ends before it begins is read")
	}
	if _, err := src.Events(t.Context(), b.Home, w, "of another list", b.Now); err == nil {
		t.Error("a cursor of nowhere is followed")
	}
}
