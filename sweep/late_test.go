package sweep

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

func TestAnAnswerAfterTheLeaseThatDisagreesIsAConflict(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	i := refund(1)
	s.open(i)
	token, _ := s.claim(i)
	s.exec(`UPDATE reconciler.operations SET state = 'failed', lease_token = NULL, closed_at = $1, version = version + 1 WHERE operation_id = $2`, s.now(), i.id)
	s.exec(`UPDATE reconciler.checks SET closed = true WHERE operation_id = $1`, i.id)
	out := s.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "succeeded", "effect_id": "re_late"})
	if out["applied"] != false {
		t.Fatalf("the answer was applied: %v", out)
	}
	s.pass(10 * time.Minute)
	if _, err := s.sweep.Reverify(t.Context(), Options{Now: s.now}); err != nil {
		t.Fatal(err)
	}
	found := s.findings(recon.FindConflict)
	if len(found) != 1 || found[0].Operations[0] != recon.OperationID(i.id) {
		t.Errorf("findings %+v", found)
	}
	s.wantState(i, recon.Failed)
}

func TestWhatAPersonAcceptedStaysAcceptedOverSweeps(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	i := refund(1)
	key := s.lose(i)
	if _, err := s.stripe.AddRefund(stripetest.Refund{
		Account: testAccount, Mode: "live", Charge: i.charge, Amount: i.amount - 5, Currency: "usd", Key: key, Metadata: map[string]string{testMarker: i.id},
	}); err != nil {
		t.Fatal(err)
	}
	s.pass(5 * time.Minute)
	s.run()
	s.wantState(i, recon.ManualReview)
	if found := s.findings(recon.FindMismatch); len(found) != 1 || len(found[0].Observed) != 2 {
		t.Fatalf("findings %+v", found)
	}
	s.exec(`UPDATE reconciler.findings SET state = 'settled', settled_at = $1, settled_by = 'ana', settled_as = 'accept'`, s.now())
	s.exec(`UPDATE reconciler.operations SET state = 'succeeded', closed_at = $1, version = version + 1`, s.now())
	s.exec(`UPDATE reconciler.checks SET closed = true, next_check = $1`, s.now())
	for range 2 {
		s.pass(40 * 24 * time.Hour)
		if _, err := s.sweep.Reverify(t.Context(), Options{Now: s.now}); err != nil {
			t.Fatal(err)
		}
	}
	s.wantState(i, recon.Succeeded)
	if found := s.findings(recon.FindMismatch); len(found) != 1 || found[0].State != recon.FindingSettled {
		t.Errorf("findings %+v", found)
	}
}
