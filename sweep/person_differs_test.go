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
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(rt, name) }
		amount := func(name string) int64 { return rapid.SampledFrom([]int64{0, 100, 105, 106}).Draw(rt, name) }
		o := recon.Operation{ID: "op", Source: testSource, Action: policy.Action, Mode: "live", EffectID: "re_1",
			Account: draw("account", "", "acct_1", "acct_2"), Target: draw("target", "order:é", "order:e\u0301", "order:2"),
			Parent: draw("parent", "", "ch_1", "ch_2"), Key: draw("key", "", "k1", "k2"), Group: draw("group", "", "g1"),
			Money: recon.Money{Minor: amount("amount"), Currency: draw("currency", "EUR", "USD")}}
		e := recon.Effect{ID: "re_1", Source: testSource, System: "stripe", Kind: draw("kind", "refund", "charge"), Status: recon.Completed, Mode: "live",
			Account: "acct_1", Target: draw("its target", "", "order:é", "order:2"), Parent: draw("its parent", "", "ch_1", "pi_1"),
			Key: draw("its key", "", "k1"), Reference: draw("its reference", "", "op", " op ", "g1", "other"),
			Money: recon.Money{Minor: amount("its amount"), Currency: draw("its currency", "EUR", "USD")}}
		if e.Parent == "pi_1" {
			e.OtherParents = []string{"ch_1"}
		}
		differs := true // an effect of another account or kind is no match at all
		for _, m := range matchers.Pair([]recon.Operation{o}, []recon.Effect{e}, func(op *recon.Operation) matchers.Terms { return matchers.TermsOf(policy, op.Source) }) {
			if m.Certainty == recon.Proof {
				differs = !m.Equal()
			}
		}
		sees := s.rows(fmt.Sprintf(`SELECT unnest(reconciler.effect_differs(jsonb_populate_record(NULL::reconciler.operations, '%s'),
			jsonb_populate_record(NULL::reconciler.effects, '%s'), '%s'))`, row(t, map[string]any{
			"operation_id": o.ID, "mode": o.Mode, "account": o.Account, "target": o.Target, "parent": o.Parent, "key": o.Key, "group": o.Group,
			"amount": o.Money.Minor, "currency": o.Money.Currency}),
			row(t, map[string]any{"id": e.ID, "kind": e.Kind, "mode": e.Mode, "account": e.Account, "target": e.Target, "parent": e.Parent,
				"other_parents": append([]string{}, e.OtherParents...), "key": e.Key, "reference": e.Reference, "amount": e.Money.Minor, "currency": e.Money.Currency}), body))
		if differs && len(sees) == 0 {
			rt.Errorf("matchers see a difference and the database none: %+v, %+v", o, e)
		}
	})
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
