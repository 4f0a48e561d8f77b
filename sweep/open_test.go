package sweep

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestALostAnswerFindsItsTruth(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	done, nothing := refund(1), refund(2)
	made := s.happen(done, s.lose(done))
	s.lose(nothing)
	s.pass(5 * time.Minute)
	out := s.run()
	if out.Claimed != 2 || out.Succeeded != 1 || out.Kept != 1 {
		t.Errorf("outcome %+v", out)
	}
	story := s.wantState(done, recon.Succeeded)
	if story.Operation.EffectID != made.ID || story.Operation.ClosedAt.IsZero() {
		t.Errorf("closed as %q at %v, want effect %s", story.Operation.EffectID, story.Operation.ClosedAt, made.ID)
	}
	if len(story.Looks) == 0 || len(story.Effects) != 1 {
		t.Errorf("no evidence: looks %v, effects %v", story.Looks, story.Effects)
	}
	open := s.wantState(nothing, recon.Unknown)
	if !open.Check.Next.After(s.now()) || len(open.Findings) != 0 {
		t.Errorf("an operation that may still land: next check %v, findings %v", open.Check.Next, open.Findings)
	}
	if s.stripe.Writes() != 0 {
		t.Errorf("the sweep made %d writes at the provider", s.stripe.Writes())
	}
}
