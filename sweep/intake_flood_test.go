package sweep

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// renamed is another source of the same provider.
type renamed struct {
	IntakeSource
	name recon.SourceName
}

func (r renamed) Name() recon.SourceName { return r.name }

// While one source's events keep coming a pass does not end. The event of another, which had
// none when the pass began, must not wait for that, and neither must what is to be asked.
func TestAFloodOfOneSourceHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	const other, rounds = recon.SourceName("shops"), 5
	h.intake.Sources = []IntakeSource{h.source, renamed{h.source, other}}
	store := func(source recon.SourceName, id, typ string) {
		t.Helper()
		body := []byte(h.event(id, typ, map[string]any{"id": "ch_1", "object": "charge", "refunded": true}))
		e, err := h.source.Verify(http.Header{"Stripe-Signature": {stripetest.Sign(h.now(), body, hookSecret)}}, body, h.now())
		if err != nil {
			t.Fatal(err)
		}
		e.Source, e.System = source, string(source)
		if _, err := h.inbox.Receive(t.Context(), inbox.Delivery{Event: e, At: h.now()}); err != nil {
			t.Fatal(err)
		}
	}
	round, took, asked := 1, 0, 0
	h.intake.Watch.Ended = func(e inbox.Ending) {
		if e.Of.Event.Source == other {
			took = round
		}
	}
	h.intake.Watch.Left = func(recon.SourceName) {
		if asked == 0 {
			asked = round
		}
	}
	h.intake.Rest = func(context.Context, int, time.Duration) {
		if round == 1 {
			store(other, "evt_other", "customer.created")
		}
		if round < rounds {
			store(testSource, fmt.Sprintf("evt_%d", round), "customer.created")
		}
		round++
	}
	store(testSource, "evt_0", "charge.refunded")
	h.take()
	if round <= rounds || took != 2 {
		t.Errorf("the other source's event was taken in round %d of %d, want the one after it came", took, round)
	}
	if asked != 1 {
		t.Errorf("what must be asked was told in round %d, want the first", asked)
	}
}
