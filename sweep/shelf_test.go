package sweep

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// A list shows effects that no operation of its batch takes. A run that dies before it has
// recorded them must not leave word that their time was seen completely: while the provider is
// away, an audit would call operations missing whose effects the list has shown.
func TestARunThatDiesLeavesNoWordOfAListBeforeAllThatItShowedIsRecorded(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	closed, lost := refund(1), refund(2)
	closed.charge, lost.charge = "", "" // so that they are looked for by a list of the window
	s.open(closed)
	token, key := s.claim(closed)
	made := s.happen(closed, key)
	s.call("finish_attempt", map[string]any{"operation_id": closed.id, "token": token, "class": "succeeded", "effect_id": made.ID})
	s.happen(lost, s.lose(lost))
	s.pass(10 * time.Minute)
	died := errors.New("died")
	s.sweep.after = func(step string) error {
		if step == "record" {
			return died
		}
		return nil
	}
	if _, err := s.sweep.Run(t.Context(), Options{Now: s.now}); !errors.Is(err, died) {
		t.Fatalf("sweep: %v", err)
	}
	s.sweep.after = nil
	s.wantState(lost, recon.Succeeded)
	s.stripe.Script(stripetest.Fault{Kind: stripetest.Unauthorized, Times: stripetest.Always})
	s.audit(s.since())
	if found := s.findings(recon.FindMissing); len(found) != 0 {
		t.Errorf("%+v", found)
	}
	s.stripe.ClearFaults()
	s.run()
	s.audit(s.since())
	if found := s.findings(recon.FindMissing); len(found) != 0 {
		t.Errorf("when the provider answers again: %+v", found)
	}
}
