package sweep

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestEventsChangeNoMoreThanOneRunMay(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	h.intake.Changes = 1
	turn := func(n int, status string) {
		i := refund(n)
		h.post2(h.event(fmt.Sprintf("evt_%d_%s", n, status), "refund.updated", refundObject(i, "re_"+i.id, status, h.now())))
	}
	const all = 3
	for n := range all {
		h.lose(refund(n))
		turn(n, "succeeded")
	}
	h.take()
	wantReversed := func(want int) {
		t.Helper()
		reversed := 0
		for n := range all {
			switch state := h.story(refund(n)).Operation.State; state {
			case recon.ManualReview:
				reversed++
			case recon.Succeeded:
			default:
				t.Errorf("operation %d is %s: successes are not limited", n, state)
			}
		}
		if reversed != want {
			t.Errorf("%d operations are reversed, want %d", reversed, want)
		}
	}
	wantReversed(0)
	h.pass(intakeSpan)
	for n := range all {
		turn(n, "failed")
	}
	for want := 1; want <= all; want++ {
		for range 2 { // passes of one minute are one run
			var held *HeldBackError
			if _, err := h.intake.Run(t.Context(), h.now); errors.As(err, &held) && (held.Changed != 1 || held.Limit != 1) || err != nil && held == nil {
				t.Fatalf("the pass ends with %v", err)
			}
			wantReversed(want)
			h.pass(10 * time.Second)
		}
		h.pass(intakeSpan)
	}
	for id, state := range h.states() {
		if state != inbox.Done {
			t.Errorf("event %s is %s", id, state)
		}
	}
}
