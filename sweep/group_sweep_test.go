package sweep

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// loseInGroup records and sends refunds of one group, and no answer comes.
func (s *stand) loseInGroup(group string, amounts ...int64) []intent {
	s.Helper()
	var members []intent
	for n, amount := range amounts {
		i := refund(n + 1)
		i.amount, i.charge = amount, "ch_group"
		out := s.call("open_operation", map[string]any{
			"action": "refund.create", "target": "order:" + i.id, "id": i.id, "amount": i.amount, "currency": "EUR", "parent": i.charge,
			"group": group, "request": map[string]any{"amount": i.amount},
		})
		if out["verdict"] != "new" {
			s.Fatalf("open %s: %v", i.id, out)
		}
		token, _ := s.claim(i)
		s.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "indeterminate"})
		members = append(members, i)
	}
	return members
}

// happenForGroup makes one refund at Stripe that names a group.
func (s *stand) happenForGroup(group string, amount int64) stripetest.Refund {
	s.Helper()
	r, err := s.stripe.AddRefund(stripetest.Refund{
		Account: testAccount, Mode: "live", Charge: "ch_group", Amount: amount, Currency: "eur", Metadata: map[string]string{testMarker: group},
	})
	if err != nil {
		s.Fatal(err)
	}
	return r
}

func (s *stand) allocations() []string {
	rows := s.rows(`SELECT a.operation_id || ' ' || a.effect_id || ' ' || a.amount FROM reconciler.allocations a WHERE a.tenant = 'default'`)
	slices.Sort(rows)
	return rows
}

func TestB62_OneRefundConcludesTheOperationsOfItsGroupWithAShareEach(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	members := s.loseInGroup("batch-1", 1000, 2010, 2990)
	r := s.happenForGroup("batch-1", 6000)
	s.pass(5 * time.Minute)
	if out, err := s.sweep.Run(t.Context(), Options{Now: s.now, Limit: 2}); err != nil || out.Succeeded != 2 {
		t.Fatalf("the first two: %+v, %v", out, err)
	}
	want := []string{"op_0001 " + r.ID + " 1000", "op_0002 " + r.ID + " 2010", "op_0003 " + r.ID + " 2990"}
	if diff := cmp.Diff(want, s.allocations()); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	s.pass(time.Minute)
	if out := s.run(); out.Succeeded != 1 {
		t.Errorf("the third: %+v", out)
	}
	if diff := cmp.Diff(want, s.allocations()); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	for _, i := range members {
		story := s.wantState(i, recon.Succeeded)
		if share := story.Shares[story.Effects[0].Identity()]; share != i.amount {
			t.Errorf("%s: a share of %d, want %d", i.id, share, i.amount)
		}
		if story.Operation.EffectID != r.ID || len(story.Effects) != 1 || story.Effects[0].Owner != "batch-1" {
			t.Errorf("%s: effect %q, effects %+v", i.id, story.Operation.EffectID, story.Effects)
		}
	}
	if n := len(s.findings()); n != 0 {
		t.Errorf("%d findings", n)
	}
}

func TestB40_AGroupIsSettledOnlyWhenTheRestIsExactlyNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	members := s.loseInGroup("batch-1", 1000, 2010, 2990)
	r := s.happenForGroup("batch-1", 5999)
	s.pass(5 * time.Minute)
	s.run()
	for _, i := range members {
		s.wantState(i, recon.ManualReview)
	}
	rows := s.findings()
	if len(rows) != 1 || rows[0].Kind != recon.FindMismatch || len(rows[0].Operations) != 3 || rows[0].Money.Minor != 6000 {
		t.Fatalf("findings %+v", rows)
	}
	if len(s.allocations()) != 0 {
		t.Errorf("shares of a sum that is off: %v", s.allocations())
	}
	// A second refund makes up the cent: both are parts now, and used up exactly.
	more := s.happenForGroup("batch-1", 1)
	s.pass(25 * time.Hour)
	s.run()
	for _, i := range members {
		s.wantState(i, recon.Succeeded)
	}
	want := []string{"op_0001 " + r.ID + " 1000", "op_0002 " + r.ID + " 2010", "op_0003 " + more.ID + " 1", "op_0003 " + r.ID + " 2989"}
	slices.Sort(want)
	if diff := cmp.Diff(want, s.allocations()); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	if rows := s.findings(); len(rows) != 1 || rows[0].Open() {
		t.Errorf("findings %+v", rows)
	}
}

func TestAnOperationThatJoinsAGroupThatIsPaidIsAMismatch(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	s.loseInGroup("batch-1", 1000, 2000)
	s.happenForGroup("batch-1", 3000)
	s.pass(5 * time.Minute)
	if out := s.run(); out.Succeeded != 2 {
		t.Fatalf("%+v", out)
	}
	shares := s.allocations()
	late := refund(9)
	late.charge = "ch_group"
	s.call("open_operation", map[string]any{"action": "refund.create", "target": "order:9", "id": late.id, "amount": 500, "currency": "EUR",
		"parent": "ch_group", "group": "batch-1", "request": map[string]any{"amount": 500}})
	token, _ := s.claim(late)
	s.call("finish_attempt", map[string]any{"operation_id": late.id, "token": token, "class": "indeterminate"})
	s.pass(5 * time.Minute)
	s.run()
	s.wantState(late, recon.ManualReview)
	if rows := s.findings(recon.FindMismatch); len(rows) != 1 || len(rows[0].Operations) != 3 {
		t.Errorf("findings %+v", rows)
	}
	if diff := cmp.Diff(shares, s.allocations()); diff != "" {
		t.Errorf("the shares that were given changed (-before +after):\n%s", diff)
	}
}
