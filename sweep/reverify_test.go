package sweep

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

func TestAnEffectThatTurnsBadAfterItWasGoodIsFound(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	turns, stays := refund(1), refund(2)
	made := s.happen(turns, s.lose(turns))
	s.happen(stays, s.lose(stays))
	s.pass(5 * time.Minute)
	s.run()
	s.wantState(turns, recon.Succeeded)
	if err := s.stripe.TurnRefund(made, stripetest.Turn{Status: "failed", Reason: "lost_or_stolen_card"}); err != nil {
		t.Fatal(err)
	}
	reverify := func() Outcome {
		out, err := s.sweep.Reverify(t.Context(), Options{Now: s.now})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := reverify(); out.Claimed != 0 {
		t.Errorf("looked at before its time: %+v", out)
	}
	s.pass(30 * time.Hour) // the first rung is a day, a fifth more or less
	if out := reverify(); out.Claimed != 2 || out.ManualReview != 1 || out.Kept != 1 {
		t.Errorf("outcome %+v", out)
	}
	s.wantState(turns, recon.ManualReview)
	if found := s.findings(recon.FindReversed); len(found) != 1 {
		t.Errorf("findings %+v", found)
	}
	if story := s.wantState(stays, recon.Succeeded); !story.Check.Next.After(s.now().Add(24 * time.Hour)) {
		t.Errorf("the next rung is at %v", story.Check.Next)
	}
	if out := reverify(); out.Claimed != 0 {
		t.Errorf("looked at twice: %+v", out)
	}
}
