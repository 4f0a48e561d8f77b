package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// maxPages bounds a list that leads nowhere.
const maxPages = 100

// lister gives a new source, false when it is none that lists.
func (b *bench) lister(t *testing.T, pageSize int) (sources.Lister, bool) {
	t.Helper()
	l, ok := b.Source(t, pageSize).(sources.Lister)
	return l, ok
}

// home is the list of the harness's kind at home.
func (b *bench) home() sources.List {
	return sources.List{Kind: b.Kind, Account: b.Home.Account, Mode: b.Home.Mode}
}

// turn reads a page of the home list and holds it against what every page must keep.
func (b *bench) turn(t *testing.T, src sources.Lister, w recon.Window, cursor string) sources.Page {
	t.Helper()
	before, _ := b.Requests()
	p, err := src.Page(t.Context(), b.home(), w, cursor, b.Now)
	if err != nil {
		t.Fatalf("Page: %v; a fault of the provider is a blind look, not an error", err)
	}
	ans := sources.Answer{Effects: p.Effects, Raw: p.Raw, Looks: []recon.Look{p.Look}}
	checkAnswer(t, src.(sources.Source), ans)
	b.checkCalls(t, ans, before)
	l, at := p.Look, b.home()
	if l.Method != recon.ByList || l.Kind != at.Kind || l.Account != at.Account || l.Mode != at.Mode {
		t.Errorf("the look of a page of %+v is %+v", at, l)
	}
	if l.Window.To.Before(l.Window.From) || l.Window.From.Before(w.From) || l.Window.To.After(w.To) {
		t.Errorf("a page covers %v, which is not part of %v", l.Window, w)
	}
	if l.Outcome == recon.Blind && p.Next != cursor {
		t.Errorf("a page that was not read leads from %q to %q", cursor, p.Next)
	}
	if l.Outcome != recon.Blind && l.Window.To.After(b.Now()) {
		t.Errorf("a page read at %s covers up to %s", b.Now(), l.Window.To)
	}
	return p
}

// listed is what the pages of one list brought so far.
type listed struct {
	window recon.Window
	edge   time.Time // where the page before ended
	seen   map[string]recon.Effect
	pages  int
}

// read reads on from a cursor to the end of the list or to a blind page, whose cursor it
// gives. Pages must join without a gap.
func (b *bench) read(t *testing.T, src sources.Lister, got *listed, cursor string) (next string, blind bool) {
	t.Helper()
	for range maxPages {
		p := b.turn(t, src, got.window, cursor)
		if p.Look.Outcome == recon.Blind {
			return p.Next, true
		}
		if !got.edge.IsZero() && !p.Look.Window.To.Equal(got.edge) {
			t.Errorf("a page begins at %s, and the one before ended at %s", p.Look.Window.To, got.edge)
		}
		got.edge = p.Look.Window.From
		got.pages++
		for _, e := range p.Effects {
			got.seen[e.ID] = e
		}
		if p.Next == "" {
			if !p.Look.Window.From.Equal(got.window.From) {
				t.Errorf("the last page ends at %s, want the window's beginning %s", p.Look.Window.From, got.window.From)
			}
			return "", false
		}
		cursor = p.Next
	}
	t.Fatalf("a list of %d effects has more than %d pages", len(got.seen), maxPages)
	return "", false
}

// spread makes effects some of which share a second, in a window that ends now.
func (b *bench) spread(t *testing.T, n int) (all []sent, w recon.Window) {
	t.Helper()
	w.From = b.Now()
	for i := range n {
		all = append(all, b.done(t, fmt.Sprint(i)))
		if i%4 == 3 {
			b.Advance(time.Second)
		}
	}
	b.Advance(time.Minute)
	w.To = b.Now()
	return all, w
}

// mustHold fails the test unless the list brought the effects as they were made.
func (b *bench) mustHold(t *testing.T, got *listed, all []sent) {
	t.Helper()
	ans := sources.Answer{}
	for _, e := range got.seen {
		ans.Effects = append(ans.Effects, e)
	}
	for _, s := range all {
		b.mustFind(t, ans, s)
	}
}

func begin(w recon.Window) *listed { return &listed{window: w, seen: map[string]recon.Effect{}} }

func listedWhole(t *testing.T, b *bench) {
	src, ok := b.lister(t, 3)
	if !ok {
		return
	}
	if lists := src.Lists([]string{b.Kind}); !slices.Contains(lists, b.home()) {
		t.Errorf("lists of %s are %v, want the one at %v among them", b.Kind, lists, b.Home)
	}
	if lists := src.Lists([]string{"no_such_kind"}); len(lists) != 0 {
		t.Errorf("a kind that nobody knows has the lists %v", lists)
	}
	before := b.done(t, "before the window")
	b.Advance(time.Second)
	all, w := b.spread(t, 10)
	after := b.done(t, "after the window")
	b.Advance(time.Second)
	for size := 1; size <= 3; size++ {
		src, _ := b.lister(t, size)
		got := begin(w)
		if _, blind := b.read(t, src, got, ""); blind {
			t.Fatalf("pages of %d: a page is blind, though nothing failed", size)
		}
		b.mustHold(t, got, all)
		for _, s := range []sent{before, after} {
			if _, ok := got.seen[s.id]; ok {
				t.Errorf("pages of %d: %s lies outside of the window", size, s.question.Operation)
			}
		}
		if most := len(all)/size + 2; got.pages > most {
			t.Errorf("pages of %d: %d pages for %d effects, want at most %d", size, got.pages, len(all), most)
		}
	}
	empty := begin(recon.Window{From: w.From.Add(-time.Hour), To: w.From.Add(-time.Minute)})
	if _, blind := b.read(t, src, empty, ""); blind || len(empty.seen) != 0 || empty.pages != 1 {
		t.Errorf("an empty window brought %d effects in %d pages", len(empty.seen), empty.pages)
	}
}

func listResumes(t *testing.T, b *bench) {
	if _, ok := b.lister(t, 2); !ok {
		return
	}
	all, w := b.spread(t, 9)
	for fault := range faults {
		got := begin(w)
		src, _ := b.lister(t, 2)
		b.Break(fault, 2)
		cursor, blind := b.read(t, src, got, "")
		b.Mend()
		if !blind || got.pages != 2 {
			t.Fatalf("%s on page 3: %d pages were read, blind %t", fault, got.pages, blind)
		}
		b.Advance(2 * time.Minute) // whatever silence the provider asked for
		made := b.done(t, "after the break by "+string(fault))
		another, _ := b.lister(t, 3) // as after a restart
		if _, blind := b.read(t, another, got, cursor); blind {
			t.Fatalf("%s: the list does not go on at its cursor", fault)
		}
		b.mustHold(t, got, all)
		if _, ok := got.seen[made.id]; ok {
			t.Errorf("%s: %s was made after the window", fault, made.id)
		}
	}
}

func listWhileMaking(t *testing.T, b *bench) {
	src, ok := b.lister(t, 1)
	if !ok {
		return
	}
	all, w := b.spread(t, 4)
	w.To = w.To.Add(time.Hour)
	late := b.done(t, "just before the list")
	got, cursor := begin(w), ""
	for range maxPages {
		p := b.turn(t, src, w, cursor)
		for _, e := range p.Effects {
			got.seen[e.ID] = e
		}
		all = append(all, b.done(t, fmt.Sprint("while listing ", got.pages)))
		got.pages++
		b.Advance(time.Second)
		if got.edge.IsZero() {
			got.edge = p.Look.Window.To
		}
		if cursor = p.Next; cursor == "" {
			break
		}
	}
	for _, s := range append(all, late) {
		made := b.createdAt(t, s)
		if _, ok := got.seen[s.id]; !ok && made.Before(got.edge) {
			t.Errorf("%s was made at %s and is not listed, though the list covers up to %s", s.question.Operation, made, got.edge)
		}
	}
	if len(got.seen) < 4 {
		t.Errorf("%d effects were listed, want the 4 that were there before", len(got.seen))
	}
}

// createdAt is when the provider says that an effect was made.
func (b *bench) createdAt(t *testing.T, s sent) time.Time {
	t.Helper()
	q := s.question
	q.EffectID = s.id
	return b.mustFind(t, b.ask(t, b.Source(t, 3), q), s).CreatedAt
}

func listUnfiltered(t *testing.T, b *bench) {
	heedless, can := b.Provider.(Heedless)
	if _, ok := b.lister(t, 2); !ok || !can {
		return
	}
	before := b.done(t, "before the window")
	b.Advance(time.Second)
	all, w := b.spread(t, 7)
	after := b.done(t, "after the window")
	b.Advance(time.Second)
	heedless.IgnoreWindows()
	src, _ := b.lister(t, 2)
	got := begin(w)
	if _, blind := b.read(t, src, got, ""); blind {
		t.Fatal("a list that holds more than was asked for is blind")
	}
	b.mustHold(t, got, all)
	for _, s := range []sent{before, after} {
		if _, ok := got.seen[s.id]; ok {
			t.Errorf("%s lies outside of the window", s.question.Operation)
		}
	}
}

func everyFaultOfAPage(t *testing.T, b *bench) {
	if _, ok := b.lister(t, 2); !ok {
		return
	}
	_, w := b.spread(t, 5)
	for fault, kinds := range faults {
		src, _ := b.lister(t, 2)
		b.Break(fault, 0)
		p := b.turn(t, src, w, "")
		b.Mend()
		if p.Look.Outcome != recon.Blind || !slices.Contains(kinds, sources.Kind(p.Look.Fault)) {
			t.Errorf("%s: the page is %s %q, want blind and one of %v", fault, p.Look.Outcome, p.Look.Fault, kinds)
		}
		if p.Look.Window != w && (!p.Look.Window.From.Equal(w.From) || !p.Look.Window.To.Equal(w.To)) {
			t.Errorf("%s: blind for %v, want all of %v", fault, p.Look.Window, w)
		}
		if len(p.Effects) != 0 {
			t.Errorf("%s: brought %d effects", fault, len(p.Effects))
		}
	}
	src, _ := b.lister(t, 2)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := src.Page(ended, b.home(), w, "", b.Now); !errors.Is(err, context.Canceled) || len(p.Effects) != 0 {
		t.Errorf("a page under a context that ended gives %d effects and %v, want the context's error", len(p.Effects), err)
	}
}

func listsApart(t *testing.T, b *bench) {
	src, ok := b.lister(t, 3)
	if !ok {
		return
	}
	from := b.Now()
	home := b.done(t, "here")
	away := b.send("there")
	away.effect.At = b.Away
	away.id = b.Make(t, away.effect)
	b.Advance(time.Second)
	w := recon.Window{From: from, To: b.Now()}
	got := begin(w)
	b.read(t, src, got, "")
	b.mustHold(t, got, []sent{home})
	if _, ok := got.seen[away.id]; ok || len(got.seen) != 1 {
		t.Errorf("the list at %v holds %d effects, want its own one", b.Home, len(got.seen))
	}
}

func strangersList(t *testing.T, b *bench) {
	src, ok := b.lister(t, 3)
	if !ok {
		return
	}
	w := recon.Window{From: b.Now().Add(-time.Hour), To: b.Now()}
	for want, list := range map[sources.Kind]sources.List{
		sources.WrongAccount: {Kind: b.Kind, Account: b.Stranger.Account, Mode: b.Stranger.Mode},
		sources.Unsupported:  {Kind: "no_such_kind", Account: b.Home.Account, Mode: b.Home.Mode},
	} {
		p, err := src.Page(t.Context(), list, w, "", b.Now)
		if err != nil || p.Look.Outcome != recon.Blind || p.Look.Fault != string(want) {
			t.Errorf("%+v: the page is %s %q with error %v, want blind %s", list, p.Look.Outcome, p.Look.Fault, err, want)
		}
	}
	if all, _ := b.Requests(); all != 0 {
		t.Errorf("%d requests were made for what is not the source's", all)
	}
}

func listRefuses(t *testing.T, b *bench) {
	src, ok := b.lister(t, 1)
	if !ok {
		return
	}
	_, w := b.spread(t, 3)
	cursor := b.turn(t, src, w, "").Next
	if cursor == "" {
		t.Fatal("a page of 1 of 3 effects leads to no other")
	}
	other := recon.Window{From: w.From.Add(-time.Hour), To: w.To}
	away := sources.List{Kind: b.Kind, Account: b.Away.Account, Mode: b.Away.Mode}
	for name, ask := range map[string]func() (sources.Page, error){
		"an empty window": func() (sources.Page, error) {
			return src.Page(t.Context(), b.home(), recon.Window{From: w.To, To: w.From}, "", b.Now)
		},
		"no window":           func() (sources.Page, error) { return src.Page(t.Context(), b.home(), recon.Window{}, "", b.Now) },
		"a cursor of nothing": func() (sources.Page, error) { return src.Page(t.Context(), b.home(), w, "nonsense", b.Now) },
		"of another window":   func() (sources.Page, error) { return src.Page(t.Context(), b.home(), other, cursor, b.Now) },
		"of another list":     func() (sources.Page, error) { return src.Page(t.Context(), away, w, cursor, b.Now) },
	} {
		if p, err := ask(); err == nil {
			t.Errorf("%s: a page that covers %v, want an error", name, p.Look.Window)
		}
	}
}
