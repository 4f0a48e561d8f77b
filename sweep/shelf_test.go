package sweep

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// A list shows effects that no operation of its batch takes. A run that dies before it has
// recorded all of them must not leave word that their time was seen completely: while the
// provider is away, an audit would call operations missing whose effects the list has shown.
func TestARunThatDiesLeavesNoWordOfAListBeforeAllThatItShowedIsRecorded(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"record", "shelve"} { // of one, and of the first that nobody took
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			s.sweep.batch = 1
			s.listed(refund(1))
			s.listed(refund(3))
			lost := refund(2)
			lost.charge = ""
			s.happen(lost, s.lose(lost))
			s.pass(10 * time.Minute)
			died := errors.New("died")
			s.sweep.after = func(at string) error {
				if at == step {
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
		})
	}
}

// listed makes an operation that its sender closed, and that is looked for by a list of the
// window.
func (s *stand) listed(i intent) stripetest.Refund {
	s.Helper()
	i.charge = ""
	s.open(i)
	token, key := s.claim(i)
	made := s.happen(i, key)
	s.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "succeeded", "effect_id": made.ID})
	return made
}

// The same of what the database cannot store.
func TestARunLeavesNoWordOfAListThatShowedWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.sweep.batch = 1
	made := s.listed(refund(1))
	s.listed(refund(3))
	s.exec(fmt.Sprintf(`ALTER TABLE reconciler.effects ADD CHECK (id <> '%s')`, made.ID))
	lost := refund(2)
	lost.charge = ""
	s.happen(lost, s.lose(lost))
	s.pass(10 * time.Minute)
	s.run()
	s.wantState(lost, recon.Succeeded)
	if n := s.rows(`SELECT id FROM reconciler.effects`); len(n) != 2 {
		t.Fatalf("%v are stored, want two", n)
	}
	s.stripe.Script(stripetest.Fault{Kind: stripetest.Unauthorized, Times: stripetest.Always})
	s.audit(s.since())
	if found := s.findings(recon.FindMissing); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// An audit that meets such an effect has not seen the list, on whichever page it stands, and
// reads it from the start when it can be stored.
func TestAnAuditHasNotSeenAListThatShowsWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	for name, latest := range map[string]bool{"on the first page": true, "on the last page": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t)
			bad := s.listed(refund(1))
			s.pass(time.Minute)
			for n := range 100 { // as many as fit on one page
				s.stranger(n)
			}
			s.pass(time.Minute)
			if last := s.listed(refund(2)); latest {
				bad = last
			}
			s.exec(fmt.Sprintf(`ALTER TABLE reconciler.effects ADD CONSTRAINT refused CHECK (id <> '%s')`, bad.ID))
			s.pass(time.Hour)
			for range 2 {
				r := s.audit(s.since())
				if found := s.findings(recon.FindMissing); len(found) != 0 || len(r.Unseen) != 1 {
					t.Errorf("missing %+v, unseen %+v: want none, and the list", found, r.Unseen)
				}
				if n := s.rows(`SELECT id FROM reconciler.effects`); len(n) != 101 {
					t.Errorf("%d are stored, want the 101 others", len(n))
				}
				s.pass(time.Hour)
			}
			s.exec(`ALTER TABLE reconciler.effects DROP CONSTRAINT refused`)
			r := s.audit(s.since())
			if found := s.findings(recon.FindMissing); len(found) != 0 || len(r.Unseen) != 0 {
				t.Errorf("when it can be stored: missing %+v, unseen %+v", found, r.Unseen)
			}
			if n := s.rows(`SELECT id FROM reconciler.effects`); len(n) != 102 {
				t.Errorf("when it can be stored: %d are stored, want 102", len(n))
			}
		})
	}
}

// stranger makes a refund of which no operation knows.
func (s *stand) stranger(n int) {
	s.Helper()
	r := stripetest.Refund{Account: testAccount, Mode: "live", Charge: fmt.Sprintf("ch_stranger_%d", n), Amount: 100, Currency: "eur"}
	if _, err := s.stripe.AddRefund(r); err != nil {
		s.Fatal(err)
	}
}
