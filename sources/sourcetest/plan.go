package sourcetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// mixed makes effects at both places and asks for them and for what is not there, by
// every way.
func mixed(t *testing.T, b *bench) (batch []sources.Question, all []sent) {
	for i := range 12 {
		b.Advance(40 * time.Second)
		s := b.send(fmt.Sprint(i))
		if i%4 == 3 {
			s.effect.At = b.Away
			s.question.Account, s.question.Mode = b.Away.Account, b.Away.Mode
		}
		if i%5 != 4 {
			s.id = b.Make(t, s.effect)
		}
		switch i % 3 {
		case 0:
			s.question.Parent = s.effect.Parent
		case 1:
			s.question.EffectID = s.id
		}
		batch, all = append(batch, s.question), append(all, s)
	}
	return batch, all
}

func allCovered(t *testing.T, b *bench) {
	batch, all := mixed(t, b)
	ans := b.ask(t, b.Source(t, 3), batch...)
	for _, s := range all {
		if s.id != "" {
			b.mustFind(t, ans, s)
		}
	}
	for fault := range faults {
		for good := range 4 {
			b.Break(fault, good)
			b.ask(t, b.Source(t, 2), batch...) // asserts that each question is covered
			b.Mend()
		}
	}
}

func cheapPlan(t *testing.T, b *bench) {
	const n, page = 40, 10
	var batch []sources.Question
	for i := range n {
		s := b.done(t, fmt.Sprint(i))
		s.question.Parent = s.effect.Parent
		batch = append(batch, s.question)
		b.Advance(30 * time.Second)
	}
	// Dense questions: a list of the window is cheaper than a call for each.
	calls := b.count(t, batch, page)
	if most := n/page + 2; calls > most {
		t.Errorf("%d questions about %d effects in pages of %d cost %d requests, want at most %d", n, n, page, calls, most)
	}
	// Thin questions: a call for each is cheaper than listing all that lies between.
	thin := []sources.Question{batch[0], batch[n-1]}
	if calls := b.count(t, thin, page); calls > len(thin)+1 && thin[0].Parent != "" {
		t.Errorf("2 questions far apart cost %d requests, want at most %d", calls, len(thin)+1)
	}
	// Without parent and id nothing but the list can answer.
	for i := range batch {
		batch[i].Parent = ""
	}
	if calls, most := b.count(t, batch, page), n/page+2; calls > most {
		t.Errorf("%d questions without parent cost %d requests, want at most %d", n, calls, most)
	}
}

// count gives the requests that a batch costs a new source.
func (b *bench) count(t *testing.T, batch []sources.Question, page int) int {
	t.Helper()
	src := b.Source(t, page)
	before, _ := b.Requests()
	b.ask(t, src, batch...)
	after, _ := b.Requests()
	return after - before
}

func anyOrder(t *testing.T, b *bench) {
	batch, _ := mixed(t, b)
	want := b.ask(t, b.Source(t, 3), batch...)
	slices.Reverse(batch)
	got := b.ask(t, b.Source(t, 3), batch...)
	// A reply's hash and id change from request to request at any provider.
	same := cmpopts.IgnoreFields(recon.Look{}, "ID", "RequestID", "ReplyHash")
	if diff := cmp.Diff(want, got, same); diff != "" {
		t.Errorf("another order of questions gives another answer (-one +other):\n%s", diff)
	}
}
