package sourcetest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// Deliverer is a provider that delivers events to the source under test. A provider
// without this method is not held to what receivers keep.
type Deliverer interface {
	// Deliveries gives what it posts for all that happened since it was last asked, in
	// that order, signed now.
	Deliveries(t *testing.T) []Delivery
}

// Delivery is one request of the provider, as it arrives.
type Delivery struct {
	Header http.Header
	Body   []byte
}

// receiver gives a new source and its provider's deliveries, false when there are none.
func (b *bench) receiver(t *testing.T) (sources.Receiver, Deliverer, bool) {
	t.Helper()
	src, takes := b.Source(t, 3).(sources.Receiver)
	from, sends := b.Provider.(Deliverer)
	return src, from, takes && sends && !b.Quiet
}

// take verifies deliveries and gives their events.
func (b *bench) take(t *testing.T, src sources.Receiver, list []Delivery) []recon.Event {
	t.Helper()
	if len(list) == 0 {
		t.Fatal("the provider delivered nothing")
	}
	var events []recon.Event
	for _, d := range list {
		e, err := src.Verify(d.Header, d.Body, b.Now())
		if err != nil {
			t.Fatalf("a delivery of the provider's own is refused: %v", err)
		}
		if !e.Signed || e.ID == "" || e.Type == "" || e.CreatedAt.IsZero() || e.Source != src.(sources.Source).Name() || !bytes.Equal(e.Body, d.Body) {
			t.Errorf("event %q of type %q lacks something: %+v", e.ID, e.Type, e)
		}
		events = append(events, e)
	}
	return events
}

// show decodes events and gives what all of them show. What is shown twice must be the
// same, unless it changed in between.
func show(t *testing.T, src sources.Receiver, events []recon.Event) sources.Shown {
	t.Helper()
	var all sources.Shown
	for _, e := range events {
		s, err := src.Decode(e)
		if err != nil {
			t.Fatalf("event %s of type %s is not understood: %v", e.ID, e.Type, err)
		}
		known := map[recon.EffectIdentity]bool{}
		for _, effect := range s.Effects {
			if known[effect.Identity()] {
				t.Errorf("event %s shows effect %s twice", e.ID, effect.ID)
			}
			known[effect.Identity()] = true
		}
		for _, raw := range s.Raw {
			if !known[raw.Effect] {
				t.Errorf("event %s: raw bytes of %v belong to no effect of it", e.ID, raw.Effect)
			}
		}
		for _, h := range s.Hints {
			if h.Kind == "" || h.Account == "" || h.Mode == "" || h.ID == "" && h.Parent == "" {
				t.Errorf("event %s has a hint that names nothing: %+v", e.ID, h)
			}
		}
		all.Effects, all.Hints = append(all.Effects, s.Effects...), append(all.Hints, s.Hints...)
	}
	return all
}

// mustShow holds what events show of an effect against what is read of it: an effect
// that is shown at last is the one that is read, or there is a hint to read it.
func (b *bench) mustShow(t *testing.T, shown sources.Shown, s sent) {
	t.Helper()
	q := s.question
	q.EffectID = s.id
	read := b.mustFind(t, b.ask(t, b.Source(t, 3), q), s)
	var last *recon.Effect
	for i, e := range shown.Effects {
		if e.Identity() == read.Identity() {
			last = &shown.Effects[i]
			if e.Key != "" && e.Key != s.effect.Key {
				t.Errorf("effect %s is shown with key %q, want %q", e.ID, e.Key, s.effect.Key)
			}
		}
	}
	if last != nil {
		told := *last
		told.Key, read.Key = "", ""
		if diff := cmp.Diff(read, told); diff != "" {
			t.Errorf("effect %s as it is read and as events show it (-read +shown):\n%s", s.id, diff)
		}
		return
	}
	for _, h := range shown.Hints {
		if h.Account == read.Account && h.Mode == read.Mode && h.Kind == read.Kind && (h.ID == read.ID || read.Under(h.Parent)) {
			return
		}
	}
	t.Errorf("effect %s of %s is neither shown nor hinted at", s.id, s.question.Operation)
}

func deliveredAsRead(t *testing.T, b *bench) {
	src, from, ok := b.receiver(t)
	if !ok {
		return
	}
	for _, at := range []recon.Account{b.Home, b.Away} {
		s := b.send("at " + at.Account + " " + at.Mode)
		s.effect.At, s.question.Account, s.question.Mode = at, at.Account, at.Mode
		s.id = b.Make(t, s.effect)
		list := from.Deliveries(t)
		events := b.take(t, src, list)
		for i, e := range events {
			if e.Account != at.Account || e.Mode != at.Mode {
				t.Errorf("event %s is of %s %s, want %v", e.ID, e.Account, e.Mode, at)
			}
			if again := b.take(t, src, list[i:i+1]); again[0].ID != e.ID {
				t.Errorf("the same delivery is event %s, and then %s", e.ID, again[0].ID)
			}
		}
		b.mustShow(t, show(t, src, events), s)
		b.Advance(time.Minute)
	}
}

func deliveredLateFailure(t *testing.T, b *bench) {
	src, from, ok := b.receiver(t)
	if !ok || b.Final {
		return
	}
	s := b.done(t, "late")
	b.Advance(72 * time.Hour)
	b.FailLate(t, s.effect, s.id)
	b.mustShow(t, show(t, src, b.take(t, src, from.Deliveries(t))), s)
}

// forgery is a delivery that must not be taken, and why.
type forgery struct {
	name   string
	want   sources.RefusalKind
	header http.Header
	body   []byte
	at     time.Time // when it comes
}

// refused fails the test unless a delivery is refused for its reason.
func refused(t *testing.T, src sources.Receiver, f forgery) {
	t.Helper()
	_, err := src.Verify(f.header, f.body, f.at)
	var r *sources.Refusal
	if !errors.As(err, &r) || r.Why != f.want {
		t.Errorf("%s: %v, want a refusal as %s", f.name, err, f.want)
	}
}

func forgedDeliveries(t *testing.T, b *bench) {
	src, from, ok := b.receiver(t)
	if !ok {
		return
	}
	b.done(t, "one")
	b.Advance(time.Second)
	b.done(t, "two")
	list := from.Deliveries(t)
	first, last := list[0], list[len(list)-1]
	refused(t, src, forgery{"no header", sources.BadSignature, http.Header{}, first.Body, b.Now()})
	refused(t, src, forgery{"another delivery's header", sources.BadSignature, last.Header, first.Body, b.Now()})
	refused(t, src, forgery{"no body", sources.BadSignature, first.Header, nil, b.Now()})
	for i := range first.Body {
		forged := bytes.Clone(first.Body)
		forged[i] ^= 1
		refused(t, src, forgery{fmt.Sprintf("byte %d of the body changed", i), sources.BadSignature, first.Header, forged, b.Now()})
	}
	for _, off := range []time.Duration{25 * time.Hour, -25 * time.Hour} {
		refused(t, src, forgery{fmt.Sprintf("signed %v ago", off), sources.TooOld, first.Header, first.Body, b.Now().Add(off)})
		refused(t, src, forgery{fmt.Sprintf("forged %v ago", off), sources.BadSignature, first.Header, last.Body, b.Now().Add(off)})
	}
}

func eventsThatShowNothing(t *testing.T, b *bench) {
	src, from, ok := b.receiver(t)
	if !ok {
		return
	}
	b.done(t, "one")
	for _, e := range b.take(t, src, from.Deliveries(t)) {
		unknown, foreign, unsigned, dropped := e, e, e, e
		unknown.Type = "sourcetest.never_heard_of"
		foreign.Account, foreign.Mode = b.Stranger.Account, b.Stranger.Mode
		unsigned.Signed = false
		dropped.Body = nil
		for name, e := range map[string]recon.Event{"an unknown type": unknown, "a foreign account or mode": foreign} {
			if s, err := src.Decode(e); err != nil || len(s.Effects)+len(s.Hints) != 0 {
				t.Errorf("%s shows %d effects and %d hints with error %v, want nothing", name, len(s.Effects), len(s.Hints), err)
			}
		}
		for name, e := range map[string]recon.Event{"an event that nobody vouches for": unsigned, "an event without its bytes": dropped} {
			if s, _ := src.Decode(e); len(s.Effects)+len(s.Raw) != 0 {
				t.Errorf("%s shows %d effects; it is no evidence", name, len(s.Effects))
			}
		}
	}
}

// takenByMany has deliveries taken by many at once, while the holder of the lease asks.
// What it holds, the race detector sees.
func takenByMany(t *testing.T, b *bench) {
	src, from, ok := b.receiver(t)
	if !ok {
		return
	}
	s := b.done(t, "one")
	list := from.Deliveries(t)
	want := show(t, src, b.take(t, src, list))
	var takers sync.WaitGroup
	for range 8 {
		takers.Go(func() {
			for _, d := range list {
				e, err := src.Verify(d.Header, d.Body, b.Now())
				if err == nil {
					_, err = src.Decode(e)
				}
				if err != nil {
					t.Errorf("one of many at once: %v", err)
				}
			}
		})
	}
	b.mustFind(t, b.ask(t, src.(sources.Source), s.question), s)
	takers.Wait()
	if diff := cmp.Diff(want, show(t, src, b.take(t, src, list))); diff != "" {
		t.Errorf("what the deliveries show before and after (-before +after):\n%s", diff)
	}
}
