package sweep

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/matchers"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// What the matchers see differ, the database sees differ too: a person alone never takes
// what a sweep would have put before people.
func TestTheDatabaseSeesEveryDifferenceThatMatchersSee(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	policy := recon.DefaultPolicy()
	policy.Action, policy.Source, policy.Effect, policy.System, policy.Tolerance = "refund.create", testSource, "refund", "stripe", 5
	body, err := json.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	check := func(t interface{ Errorf(string, ...any) }, pick picker) {
		o, e := sides(policy, pick)
		differs := true // an effect of another account or kind is no match at all
		for _, m := range matchers.Pair([]recon.Operation{o}, []recon.Effect{e}, func(op *recon.Operation) matchers.Terms { return matchers.TermsOf(policy, op.Source) }) {
			if m.Certainty == recon.Proof {
				differs = !m.Equal()
			}
		}
		if sees := s.differences(o, e, body); differs && len(sees) == 0 {
			t.Errorf("matchers see a difference and the database none: %+v, %+v", o, e)
		}
	}
	fields := map[string]int{}
	check(t, func(field string, values int) int { fields[field] = values; return 0 })
	for field, values := range fields { // each alone: a mixture seldom differs in one only
		for value := range values {
			check(t, func(name string, _ int) int {
				if name == field {
					return value
				}
				return 0
			})
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		check(rt, func(field string, values int) int { return rapid.IntRange(0, values-1).Draw(rt, field) })
	})
}

// picker chooses one of a field's values, by its number.
type picker func(field string, values int) int

// sides are an operation and an effect that are equal where the picker takes every first
// value. The tolerance is 5.
func sides(p recon.Policy, pick picker) (recon.Operation, recon.Effect) {
	text := func(name string, of ...string) string { return of[pick(name, len(of))] }
	amount := func(name string) int64 { of := []int64{100, 106, 105, 94, 0}; return of[pick(name, len(of))] }
	o := recon.Operation{ID: "op", Source: testSource, Action: p.Action, Mode: "live", EffectID: "re_1",
		Account: text("account", "acct_1", "", "acct_2"), Target: text("target", "order:é", "order:e\u0301", "order:2"),
		Parent: text("parent", "ch_1", "", "ch_2"), Key: text("key", "k1", "", "k2"), Group: text("group", "", "g1"),
		Money: recon.Money{Minor: amount("amount"), Currency: text("currency", "EUR", "USD")}}
	e := recon.Effect{ID: "re_1", Source: testSource, System: p.System, Kind: text("kind", "refund", "charge"), Status: recon.Completed, Mode: "live",
		Account: "acct_1", Target: text("its target", "order:é", "", "order:2"), Parent: text("its parent", "ch_1", "", "pi_1"),
		Key: text("its key", "k1", ""), Reference: text("its reference", "op", "", " op ", "g1", "other"),
		Money: recon.Money{Minor: amount("its amount"), Currency: text("its currency", "EUR", "USD")}}
	if e.Parent == "pi_1" {
		e.OtherParents = []string{"ch_1"}
	}
	return o, e
}

// differences are the fields that the database says differ.
func (s *stand) differences(o recon.Operation, e recon.Effect, policy []byte) []string {
	s.Helper()
	operation := row(s.T, map[string]any{
		"operation_id": o.ID, "mode": o.Mode, "account": o.Account, "target": o.Target, "parent": o.Parent, "key": o.Key, "group": o.Group,
		"amount": o.Money.Minor, "currency": o.Money.Currency})
	effect := row(s.T, map[string]any{"id": e.ID, "kind": e.Kind, "mode": e.Mode, "account": e.Account, "target": e.Target, "parent": e.Parent,
		"other_parents": append([]string{}, e.OtherParents...), "key": e.Key, "reference": e.Reference, "amount": e.Money.Minor, "currency": e.Money.Currency})
	return s.rows(fmt.Sprintf(`SELECT unnest(reconciler.effect_differs(jsonb_populate_record(NULL::reconciler.operations, '%s'),
		jsonb_populate_record(NULL::reconciler.effects, '%s'), '%s'))`, operation, effect, policy))
}

// row writes a row as the tables hold it: what is not known is NULL.
func row(t *testing.T, columns map[string]any) []byte {
	t.Helper()
	for name, v := range columns {
		if v == "" || v == int64(0) || v == recon.OperationID("") {
			delete(columns, name)
		}
	}
	b, err := json.Marshal(columns)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
