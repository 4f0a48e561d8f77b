package matchers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/matchers"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// of is an operation of group g-1 with an amount.
func of(id string, minor int64, change ...func(*recon.Operation)) recon.Operation {
	return operation(id, append([]func(*recon.Operation){func(o *recon.Operation) {
		o.Group, o.Money = "g-1", recon.Money{Minor: minor, Currency: "EUR"}
	}}, change...)...)
}

// paid is an effect that names group g-1.
func paid(id string, minor int64, change ...func(*recon.Effect)) recon.Effect {
	return effect(id, append([]func(*recon.Effect){reference("g-1"), func(e *recon.Effect) { e.Money.Minor = minor }}, change...)...)
}

// shares writes the pairs of groups with the shares of their operations.
func shares(matches []recon.Match) []string {
	var lines []string
	for _, m := range matches {
		line := fmt.Sprintf("%s %s", m.Operation, m.Effect.ID)
		if m.Certainty == recon.Suggestion {
			line += " suggestion"
		} else if m.Group != nil {
			line += fmt.Sprintf(" %v", m.Group.Shares)
		}
		if m.Part {
			line += " part"
		}
		for _, d := range m.Differences {
			line += fmt.Sprintf(" %s: %s / %s", d.Field, d.Ours, d.Theirs)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestGroupsAddUpExactly(t *testing.T) {
	t.Parallel()
	failed := func(o *recon.Operation) { o.State = recon.Failed }
	noAmount := func(o *recon.Operation) { o.Money = recon.Money{} }
	off := "group: 60.00 EUR in 3 operations / 59.99 EUR in 1 effect"
	three := list(of("op_1", 1000), of("op_2", 2010), of("op_3", 2990))
	tests := []struct {
		name    string
		ops     []recon.Operation
		effects []recon.Effect
		want    []string
	}{
		{"one effect for several operations", three, effects(paid("tr_1", 6000)),
			[]string{"op_1 tr_1 [1000 2010 2990]", "op_2 tr_1 [1000 2010 2990]", "op_3 tr_1 [1000 2010 2990]"}},
		{"one cent less", three, effects(paid("tr_1", 5999)), []string{"op_1 tr_1 [] " + off, "op_2 tr_1 [] " + off, "op_3 tr_1 [] " + off}},
		{"several effects for one operation", list(of("op_1", 6000)), effects(paid("tr_1", 2500), paid("tr_2", 3500)),
			[]string{"op_1 tr_1 [2500] part", "op_1 tr_2 [3500] part"}},
		{"several effects for several operations, each used up", list(of("op_1", 3000), of("op_2", 3000)), effects(paid("tr_1", 2500), paid("tr_2", 3500)),
			[]string{"op_1 tr_1 [2500 0] part", "op_1 tr_2 [500 3000] part", "op_2 tr_2 [500 3000] part"}},
		{"paid twice", list(of("op_1", 1000), of("op_2", 2000)), effects(paid("tr_1", 3000), paid("tr_2", 3000)),
			[]string{"op_1 tr_1 [1000 2000]", "op_1 tr_2 [1000 2000]", "op_2 tr_1 [1000 2000]", "op_2 tr_2 [1000 2000]"}},
		{"a failed operation is left out where the sum is right without it", list(of("op_1", 1000), of("op_2", 2000), of("op_3", 500, failed)), effects(paid("tr_1", 3000)),
			[]string{"op_1 tr_1 [1000 2000]", "op_2 tr_1 [1000 2000]"}},
		{"and counted where the sum needs it", list(of("op_1", 1000), of("op_2", 2000, failed)), effects(paid("tr_1", 3000)),
			[]string{"op_1 tr_1 [1000 2000]", "op_2 tr_1 [1000 2000]"}},
		{"a failed effect stands for nothing", list(of("op_1", 1000), of("op_2", 2000)),
			effects(paid("tr_1", 3000, func(e *recon.Effect) { e.Status = recon.EffectFailed }), paid("tr_2", 3000)),
			[]string{"op_1 tr_1 []", "op_1 tr_2 [1000 2000]", "op_2 tr_1 []", "op_2 tr_2 [1000 2000]"}},
		{"amounts that nobody gave are not compared", list(of("op_1", 1, noAmount), of("op_2", 1, noAmount)), effects(paid("tr_1", 3000)),
			[]string{"op_1 tr_1 []", "op_2 tr_1 []"}},
		{"an amount that is missing among others leaves no sum", list(of("op_1", 1000), of("op_2", 1, noAmount)), effects(paid("tr_1", 3000)),
			[]string{"op_1 tr_1 [] group: not known, since op_2 has no amount (2 operations) / 30.00 EUR in 1 effect",
				"op_2 tr_1 [] group: not known, since op_2 has no amount (2 operations) / 30.00 EUR in 1 effect"}},
		{"currencies do not add up", list(of("op_1", 1000), of("op_2", 2000, func(o *recon.Operation) { o.Money.Currency = "USD" })), effects(paid("tr_1", 3000)),
			[]string{"op_1 tr_1 [] group: not one amount: EUR and USD (2 operations) / 30.00 EUR in 1 effect",
				"op_2 tr_1 [] group: not one amount: EUR and USD (2 operations) / 30.00 EUR in 1 effect"}},
		{"another account is another group", list(of("op_1", 3000), of("op_2", 4000, func(o *recon.Operation) { o.Account = "acct_2" })), effects(paid("tr_1", 3000)),
			[]string{"op_1 tr_1 [3000]"}},
		{"an operation's own id is the operation", list(operation("g-1"), of("op_1", 4200)), effects(paid("tr_1", 4200)),
			[]string{"g-1 tr_1"}},
		{"unless it gave its id to the group", list(operation("g-1", func(o *recon.Operation) { o.Group = "g-1" }), of("op_1", 1800)), effects(paid("tr_1", 6000)),
			[]string{"g-1 tr_1 [4200 1800]", "op_1 tr_1 [4200 1800]"}},
		{"what the ledger gave the group stays the group's", three, effects(paid("tr_1", 6000, func(e *recon.Effect) { e.Owner = "g-1" })),
			[]string{"op_1 tr_1 [1000 2010 2990]", "op_2 tr_1 [1000 2010 2990]", "op_3 tr_1 [1000 2010 2990]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, shares(matchers.Pair(tt.ops, tt.effects, refundTerms))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestB40_AFurtherLinkToWhatAGroupUsesUpIsRefused(t *testing.T) {
	t.Parallel()
	ops := list(of("op_1", 1000), of("op_2", 2010), of("op_3", 2990),
		operation("op_4", func(o *recon.Operation) { o.EffectID = "bank_1"; o.Money.Minor = 6000 }))
	got := shares(matchers.Pair(ops, effects(paid("bank_1", 6000)), refundTerms))
	want := []string{"op_1 bank_1 [1000 2010 2990]", "op_2 bank_1 [1000 2010 2990]", "op_3 bank_1 [1000 2010 2990]"}
	if diff := cmp.Diff(want, got[:3]); diff != "" {
		t.Errorf("the group (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(got[3], "op_4 bank_1 suggestion") || !strings.HasSuffix(got[3], "rest: -60.00 EUR / used up by group g-1") {
		t.Errorf("the further link: %s", got[3])
	}
}

func TestB62_EachOperationOfOneRefundGetsItsShare(t *testing.T) {
	t.Parallel()
	m := matchers.Pair(list(of("op_1", 2750), of("op_2", 2750), of("op_3", 2750)), effects(paid("re_1", 8250)), refundTerms)
	if diff := cmp.Diff([]int64{2750, 2750, 2750}, m[0].Group.Shares); diff != "" {
		t.Error(diff)
	}
	if m[0].Group.Money != (recon.Money{Minor: 8250, Currency: "EUR"}) {
		t.Errorf("the group is worth %+v", m[0].Group.Money)
	}
}

// What groups share out is all of every effect and all of every operation, once.
func TestLawSharesAddUpToBothSides(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var ops []recon.Operation
		var seen []recon.Effect
		for i := range rapid.IntRange(1, 5).Draw(t, "operations") {
			ops = append(ops, of(fmt.Sprintf("op_%d", i), rapid.Int64Range(1, 9).Draw(t, "amount")))
		}
		for i := range rapid.IntRange(1, 5).Draw(t, "effects") {
			seen = append(seen, paid(fmt.Sprintf("tr_%d", i), rapid.Int64Range(1, 9).Draw(t, "amount")))
		}
		amount := map[string]int64{}
		for _, o := range ops {
			amount[string(o.ID)] = o.Money.Minor
		}
		given, used, whole := map[string]int64{}, map[string]int64{}, 0
		told := map[string]bool{}
		for _, m := range matchers.Pair(ops, seen, refundTerms) {
			if m.Group.Shares == nil || told[m.Effect.ID] {
				continue
			}
			told[m.Effect.ID] = true
			if !m.Part {
				whole++
			}
			for i, share := range m.Group.Shares {
				given[string(m.Group.Operations[i])] += share
				used[m.Effect.ID] += share
			}
		}
		for _, e := range seen {
			if told[e.ID] && used[e.ID] != e.Money.Minor {
				t.Fatalf("%s has %d and gives %d", e.ID, e.Money.Minor, used[e.ID])
			}
		}
		for id, minor := range given {
			if minor != amount[id]*int64(max(whole, 1)) {
				t.Fatalf("%s is for %d and gets %d, %d effects stand for it", id, amount[id], minor, max(whole, 1))
			}
		}
	})
}
