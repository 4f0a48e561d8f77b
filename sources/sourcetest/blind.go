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

func absent(t *testing.T, b *bench) {
	other := b.done(t, "other") // the parent exists and has another child
	s := b.send("nothing")
	s.effect.Parent = other.effect.Parent
	for way, q := range waysToAsk(s) {
		ans := b.ask(t, b.Source(t, 3), q)
		if _, ok := silent(b.Source(t, 3), ans, q); !ok {
			t.Errorf("%s: no look that could count as absence: %+v", way, ans.Looks)
		}
		for _, e := range ans.Effects {
			if e.Reference == s.effect.Reference {
				t.Errorf("%s: effect %s came from nowhere", way, e.ID)
			}
		}
	}
}

func everyFault(t *testing.T, b *bench) {
	made, missing := b.done(t, "made"), b.send("missing")
	missing.effect.Parent = made.effect.Parent
	for fault, kinds := range faults {
		for _, s := range []sent{made, missing} {
			for way, q := range waysToAsk(s) {
				src := b.Source(t, 3)
				b.Break(fault, 0)
				ans := b.ask(t, src, q)
				b.Mend()
				name := fmt.Sprintf("%s, %s, %s", fault, s.question.Operation, way)
				if l, ok := silent(src, ans, q); ok {
					t.Errorf("%s: look %s is %s; it could not look, and silence would be counted", name, l.Method, l.Outcome)
				}
				for _, l := range covering(ans, q) {
					if !slices.Contains(kinds, sources.Kind(l.Fault)) {
						t.Errorf("%s: told as %q, want one of %v", name, l.Fault, kinds)
					}
				}
				if len(ans.Effects) != 0 {
					t.Errorf("%s: brought %d effects", name, len(ans.Effects))
				}
			}
		}
	}
}

func brokenList(t *testing.T, b *bench) {
	old := b.send("old") // was never done, or its page is not reached
	var younger []sent
	for i := range 6 {
		b.Advance(10 * time.Minute)
		younger = append(younger, b.done(t, fmt.Sprint("young", i)))
	}
	newest := younger[5]
	for fault := range faults {
		src := b.Source(t, 2)
		b.Break(fault, 2)
		ans := b.ask(t, src, old.question, newest.question)
		b.Mend()
		// A source may ask for the old one alone, and need no list.
		if l, ok := silent(src, ans, old.question); ok && l.Method == recon.ByList {
			t.Errorf("%s on page 3: a list that broke off is %s for what it did not reach", fault, l.Outcome)
		}
		b.mustFind(t, ans, newest)
	}
}

func stranger(t *testing.T, b *bench) {
	s := b.send("foreign")
	s.question.Account, s.question.Mode = b.Stranger.Account, b.Stranger.Mode
	for way, q := range waysToAsk(s) {
		ans := b.ask(t, b.Source(t, 3), q)
		for _, l := range covering(ans, q) {
			if l.Outcome != recon.Blind || l.Fault != string(sources.WrongAccount) {
				t.Errorf("%s: look is %s %q, want blind wrong_account", way, l.Outcome, l.Fault)
			}
		}
	}
	unknown := b.send("kind").question
	unknown.Kind = "no_such_kind"
	for _, l := range covering(b.ask(t, b.Source(t, 3), unknown), unknown) {
		if l.Outcome != recon.Blind || l.Fault != string(sources.Unsupported) {
			t.Errorf("unknown kind: look is %s %q, want blind unsupported", l.Outcome, l.Fault)
		}
	}
	if all, _ := b.Requests(); all != 0 {
		t.Errorf("%d requests were made for what is not the source's", all)
	}
}

func placesApart(t *testing.T, b *bench) {
	home := b.send("same")
	away := home
	away.effect.At = b.Away
	away.id = b.Make(t, away.effect)
	for way, q := range waysToAsk(home) {
		for _, e := range b.ask(t, b.Source(t, 3), q).Effects {
			t.Errorf("%s: asked at %v, got %s of %s %s", way, b.Home, e.ID, e.Account, e.Mode)
		}
	}
	q := home.question
	q.EffectID = away.id
	if ans := b.ask(t, b.Source(t, 3), q); len(ans.Effects) != 0 {
		t.Errorf("an id of %v was found at %v", b.Away, b.Home)
	}
	home.id = b.Make(t, home.effect)
	q = home.question
	q.Account, q.Mode = b.Away.Account, b.Away.Mode
	ans := b.ask(t, b.Source(t, 3), home.question, q)
	b.mustFind(t, ans, home)
	b.mustFind(t, ans, away)
}

func everywhere(t *testing.T, b *bench) {
	s := b.send("somewhere")
	s.effect.At = b.Away
	s.id = b.Make(t, s.effect)
	q := s.question
	q.Account, q.Mode = "", ""
	b.mustFind(t, b.ask(t, b.Source(t, 3), q), s)
}

func contextEnds(t *testing.T, b *bench) {
	s := b.done(t, "one")
	src := b.Source(t, 1)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	ans, err := src.Ask(ended, []sources.Question{s.question}, b.Now)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want the context's", err)
	}
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	b.Break(Hangs, 0)
	late, err := src.Ask(short, []sources.Question{s.question}, b.Now)
	b.Mend()
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error is %v, want the context's", err)
	}
	for _, a := range []sources.Answer{ans, late} {
		if len(a.Looks)+len(a.Effects)+len(a.Raw) != 0 {
			t.Errorf("an Ask that was cut short still told %d looks and %d effects", len(a.Looks), len(a.Effects))
		}
	}
	// Not by b.ask: the request that was given up may still be on its way, and counted.
	again, err := src.Ask(t.Context(), []sources.Question{s.question}, b.Now)
	if err != nil {
		t.Fatal(err)
	}
	b.mustFind(t, again, s)
}

func probe(t *testing.T, b *bench) {
	src := b.Source(t, 3)
	if err := src.Probe(t.Context()); err != nil {
		t.Errorf("Probe: %v, though the provider answers", err)
	}
	for fault, kinds := range faults {
		b.Break(fault, 0)
		err := b.Source(t, 3).Probe(t.Context())
		b.Mend()
		var told *sources.Error
		if !errors.As(err, &told) || !slices.Contains(kinds, told.Kind) {
			t.Errorf("%s: Probe gives %v, want an error of kind %v", fault, err, kinds)
		}
	}
}
