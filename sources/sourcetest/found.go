package sourcetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

func emptyBatch(t *testing.T, b *bench) {
	ans := b.ask(t, b.Source(t, 3))
	if all, _ := b.Requests(); all != 0 || len(ans.Looks) != 0 {
		t.Errorf("an empty batch made %d requests and %d looks", all, len(ans.Looks))
	}
}

func foundByID(t *testing.T, b *bench) {
	s := b.done(t, "one")
	s.question.EffectID = s.id
	e := b.mustFind(t, b.ask(t, b.Source(t, 3), s.question), s)
	if e.Status != recon.Completed {
		t.Errorf("status is %s, want completed", e.Status)
	}
}

func foundByParent(t *testing.T, b *bench) {
	s := b.done(t, "one")
	s.question.Parent = s.effect.Parent
	b.mustFind(t, b.ask(t, b.Source(t, 3), s.question), s)
}

func foundInWindow(t *testing.T, b *bench) {
	s := b.done(t, "one")
	b.mustFind(t, b.ask(t, b.Source(t, 3), s.question), s)
}

func foundByKey(t *testing.T, b *bench) {
	src := b.Source(t, 3)
	if ability, ok := src.Sheet().Ability(recon.ByKey); !ok || !ability.Finds(b.Kind) {
		return // the sheet says that this provider cannot be asked so
	}
	s := b.send("one")
	s.effect.Reference = ""
	s.id = b.Make(t, s.effect)
	other := b.done(t, "other")
	s.question.Marks = []recon.Mark{recon.MarkKey}
	ans := b.ask(t, src, s.question, other.question)
	if e := b.mustFind(t, ans, s); e.Key != s.effect.Key {
		t.Errorf("effect %s has key %q, want %q: nothing else says whose it is", e.ID, e.Key, s.effect.Key)
	}
}

func smallPages(t *testing.T, b *bench) {
	var all []sent
	for i := range 7 {
		all = append(all, b.done(t, fmt.Sprint(i)))
		if i%3 == 0 {
			b.Advance(time.Second) // some share a second, some do not
		}
	}
	// Without marks there is no shorter way than the list.
	oldest := all[0].question
	oldest.Key, oldest.Marks = "", nil
	for size := 1; size <= 3; size++ {
		ans := b.ask(t, b.Source(t, size), oldest)
		for _, s := range all {
			b.mustFind(t, ans, s)
		}
		if _, ok := silent(b.Source(t, size), ans, oldest); !ok {
			t.Errorf("pages of %d: no complete look, though nothing failed", size)
		}
	}
}

func duplicates(t *testing.T, b *bench) {
	first := b.done(t, "twice")
	b.Advance(3 * time.Second)
	second := first
	second.effect.Key = "another-key"
	second.id = b.Make(t, second.effect)
	for _, parent := range []string{"", first.effect.Parent} {
		q := first.question
		q.Parent = parent
		ans := b.ask(t, b.Source(t, 1), q)
		b.mustFind(t, ans, first)
		b.mustFind(t, ans, second)
	}
}

func lateFailure(t *testing.T, b *bench) {
	if b.Final {
		return
	}
	s := b.done(t, "late")
	src := b.Source(t, 3)
	b.ask(t, src, s.question)
	b.Advance(10 * 24 * time.Hour)
	b.FailLate(t, s.effect, s.id)
	b.Advance(time.Minute)
	for _, q := range waysToAsk(s) {
		e := b.mustFind(t, b.ask(t, src, q), s)
		if e.Status != recon.EffectFailed && e.Status != recon.Reversed {
			t.Errorf("status is %s, want failed or reversed", e.Status)
		}
	}
}

func readLag(t *testing.T, b *bench) {
	lag := b.Source(t, 3).Sheet()
	ability, ok := lag.Ability(recon.ByList)
	if !ok || ability.Consistency != recon.Strong || ability.Lag == 0 {
		t.Fatal("the sheet promises strong lists without a lag")
	}
	b.SetLag(ability.Lag.Std())
	s := b.done(t, "slow")
	src := b.Source(t, 3)
	if ans := b.ask(t, src, s.question); len(ans.Effects) != 0 {
		t.Fatal("the provider's lag hides nothing; the harness does not do what it should")
	}
	b.Advance(ability.Lag.Std() + time.Second)
	b.mustFind(t, b.ask(t, src, s.question), s)
}

// waysToAsk gives the question by id, by parent and by window.
func waysToAsk(s sent) map[string]sources.Question {
	byID, byParent, byWindow := s.question, s.question, s.question
	byID.EffectID = s.id
	if s.id == "" {
		byID.EffectID = "nobody_has_this_id"
	}
	byParent.Parent = s.effect.Parent
	return map[string]sources.Question{"by id": byID, "by parent": byParent, "in the window": byWindow}
}
