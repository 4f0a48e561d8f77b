package sweep

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// A lost answer is found out for every kind of object that Stripe makes on request, and
// what turns bad after it was good is found by the ladder of closed operations.
func TestEveryKindIsFoundOutAndSeenToTurn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		effect, object, parent, under string
		begins                        string // the status that it is made in
		bare                          bool   // it has no amount
		later                         []string
		done                          bool // later it is done
		turns                         string
	}{
		{effect: "transfer", object: "transfer", parent: "ch_1", under: "source_transaction", done: true, turns: "reversed"},
		{effect: "payout", object: "payout", begins: "pending", later: []string{"in_transit", "paid"}, done: true, turns: "failed"},
		{effect: "customer", object: "customer", bare: true, done: true},
		{effect: "invoice", object: "invoice", parent: "cus_1", under: "customer", begins: "draft", later: []string{"open", "paid"}, done: true},
		{effect: "invoice", object: "invoice", parent: "cus_1", under: "customer", begins: "draft", later: []string{"open", "void"}},
		{effect: "subscription", object: "subscription", parent: "cus_1", under: "customer", begins: "incomplete", bare: true, later: []string{"active"}, done: true, turns: "canceled"},
		{effect: "checkout_session", object: "checkout.session", parent: "cus_1", under: "customer", begins: "open", later: []string{"complete"}, done: true},
		{effect: "checkout_session", object: "checkout.session", begins: "open", later: []string{"expired"}},
		{effect: "credit_note", object: "credit_note", parent: "in_1", under: "invoice", begins: "issued", done: true, turns: "void"},
	} {
		name := tt.effect + " that is done"
		if !tt.done {
			name = tt.effect + " that comes to nothing"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, func(p *recon.Policy) { p.Effect = tt.effect })
			i := intent{id: "op_kind"}
			in := map[string]any{"action": "refund.create", "target": "order:1", "id": i.id, "request": map[string]any{"kind": tt.effect}}
			r := stripetest.Resource{Kind: tt.object, Account: testAccount, Mode: "live", Status: tt.begins,
				Metadata: map[string]string{testMarker: i.id}, Fields: map[string]any{}}
			if !tt.bare {
				in["amount"], in["currency"], r.Amount, r.Currency = 4200, "EUR", 4200, "eur"
			}
			if tt.parent != "" {
				in["parent"], r.Fields[tt.under] = tt.parent, tt.parent
			}
			if out := s.call("open_operation", in); out["verdict"] != "new" {
				t.Fatalf("open: %v", out)
			}
			token, key := s.claim(i)
			s.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "indeterminate"})
			r.Key = key
			made, err := s.stripe.AddResource(r)
			if err != nil {
				t.Fatal(err)
			}
			s.pass(5 * time.Minute)
			s.run()
			if tt.later != nil {
				if story := s.wantState(i, recon.Unknown); story.Operation.EffectID != made.ID {
					t.Errorf("in flight, its effect is %q, want %s", story.Operation.EffectID, made.ID)
				}
			}
			for _, status := range tt.later {
				s.turn(made, status)
			}
			s.pass(20 * time.Minute)
			s.run()
			want := recon.Succeeded
			if !tt.done {
				want = recon.Failed
			}
			if story := s.wantState(i, want); tt.done && story.Operation.EffectID != made.ID {
				t.Errorf("its effect is %q, want %s", story.Operation.EffectID, made.ID)
			}
			if tt.turns == "" {
				return
			}
			s.turn(made, tt.turns)
			s.pass(30 * time.Hour)
			if _, err := s.sweep.Reverify(t.Context(), Options{Now: s.now}); err != nil {
				t.Fatal(err)
			}
			s.wantState(i, recon.ManualReview)
			if found := s.findings(recon.FindReversed); len(found) != 1 {
				t.Errorf("findings %+v, want one that it was reversed", found)
			}
		})
	}
}

// turn lets a resource take a status; a transfer is reversed.
func (s *stand) turn(r stripetest.Resource, status string) {
	s.Helper()
	err := error(nil)
	if status == "reversed" {
		err = s.stripe.ReverseTransfer(r, r.Amount)
	} else {
		err = s.stripe.TurnResource(r, stripetest.Turn{Status: status})
	}
	if err != nil {
		s.Fatal(err)
	}
}
