package sweep_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// in gives the fields of an operation in a group, and of an effect with an amount.
func in(group string, minor int) string {
	return fmt.Sprintf(`,"group":%q,"amount":%d,"currency":"EUR"`, group, minor)
}

func names(reference string, minor int) string {
	return fmt.Sprintf(`,"reference":%q,"amount":%d,"currency":"EUR"`, reference, minor)
}

func TestB40_OneBankLinePaysManyOperationsAndIsUsedOnce(t *testing.T) {
	t.Parallel()
	three := []string{op("op_1", "succeeded", in("bank-7", 1000)), op("op_2", "unknown", in("bank-7", 2010)), op("op_3", "succeeded", in("bank-7", 2990))}
	line := eff("bank_1", "completed", names("bank-7", 6000))
	r := mustCompare(t, lines(three...), lines(line))
	wantClasses(t, r, classes{"matched": 3}, classes{"matched": 1})
	wantFindings(t, r)

	r = mustCompare(t, lines(append(three, op("op_4", "succeeded", `,"amount":6000,"currency":"EUR","effect_id":"bank_1"`))...), lines(line))
	wantClasses(t, r, classes{"matched": 3, "missing": 1}, classes{"matched": 1})
	wantFindings(t, r, "missing proof [op_4] []")
	if why := r.Findings[0].Reason; !strings.Contains(why, "it is that of group bank-7, which uses it up, and a further link would leave -60.00 EUR") {
		t.Errorf("reason: %s", why)
	}
}

func TestB62_OneRefundCoversSeveralOperationsAndCountsOnce(t *testing.T) {
	t.Parallel()
	tickets := []string{op("op_1", "succeeded", in("batch", 2750)), op("op_2", "succeeded", in("batch", 2750)), op("op_3", "succeeded", in("batch", 2750))}
	r := mustCompare(t, lines(tickets...), lines(eff("re_1", "completed", names("batch", 8250))))
	wantClasses(t, r, classes{"matched": 3}, classes{"matched": 1})
	wantFindings(t, r)

	r = mustCompare(t, lines(tickets...), lines(eff("re_1", "completed", names("batch", 8251))))
	wantClasses(t, r, classes{"mismatch": 3}, classes{"mismatch": 1})
	wantFindings(t, r, "mismatch proof [op_1 op_2 op_3] [re_1]")
	f := r.Findings[0]
	if f.Money.Minor != 8250 || f.Observed[0].Ours != "82.50 EUR in 3 operations" || f.Observed[0].Theirs != "82.51 EUR in 1 effect" {
		t.Errorf("money %+v, observed %+v", f.Money, f.Observed)
	}
	if want := "The refund of 82.50 EUR for the 3 operations of group batch was found by the reference of group batch as re_1 (completed, 82.51 EUR), and differs: " +
		"the sum is 82.50 EUR in 3 operations in the record and 82.51 EUR in 1 effect at the provider."; f.Reason != want {
		t.Errorf("reason %q\nwant   %q", f.Reason, want)
	}
}

func TestGroupsInAFile(t *testing.T) {
	t.Parallel()
	capture := op("op_1", "succeeded", in("auth-1", 6000))
	pair := []string{op("op_1", "succeeded", in("g", 1000)), op("op_2", "succeeded", in("g", 2000))}
	tests := []struct {
		name              string
		operations        []string
		effects           []string
		wantOps, wantEffs classes
		findings          []string
	}{
		{"a charge captured in two parts", []string{capture}, []string{eff("ch_1", "completed", names("auth-1", 2500)), eff("ch_2", "completed", names("auth-1", 3500))},
			classes{"matched": 1}, classes{"matched": 2}, nil},
		{"one part of it still under way", []string{capture}, []string{eff("ch_1", "completed", names("auth-1", 2500)), eff("ch_2", "in_flight", names("auth-1", 3500))},
			classes{"in_flight": 1}, classes{"in_flight": 2}, []string{"unresolved proof [op_1] [ch_1 ch_2]"}},
		{"one part of it reversed", []string{capture}, []string{eff("ch_1", "completed", names("auth-1", 2500)), eff("ch_2", "reversed", names("auth-1", 3500))},
			classes{"mismatch": 1}, classes{"mismatch": 2}, []string{"mismatch proof [op_1] [ch_1]"}},
		{"a group paid twice", pair, []string{eff("tr_1", "completed", names("g", 3000)), eff("tr_2", "completed", names("g", 3000))},
			classes{"duplicate": 2}, classes{"matched": 1, "duplicate": 1}, []string{"duplicate proof [op_1 op_2] [tr_1 tr_2]"}},
		{"a group that did not last", pair, []string{eff("tr_1", "reversed", names("g", 3000))},
			classes{"reversed": 2}, classes{"reversed": 1}, []string{"reversed proof [op_1 op_2] [tr_1]"}},
		{"a failed one that was paid all the same", []string{pair[0], op("op_2", "failed", in("g", 2000))}, []string{eff("tr_1", "completed", names("g", 3000))},
			classes{"matched": 1, "conflict": 1}, classes{"conflict": 1}, []string{"conflict proof [op_2] [tr_1]"}},
		{"a failed one that was not", []string{pair[0], op("op_2", "failed", in("g", 2000))}, []string{eff("tr_1", "completed", names("g", 1000))},
			classes{"matched": 1, "failed": 1}, classes{"matched": 1}, nil},
		{"one that was paid by itself as well", pair, []string{eff("tr_1", "completed", names("g", 3000)), eff("re_1", "completed", names("op_1", 1000))},
			classes{"matched": 1, "duplicate": 1}, classes{"matched": 1, "duplicate": 1}, []string{"duplicate proof [op_1] [re_1 tr_1]"}},
		{"a group that nobody paid", pair, []string{eff("tr_9", "completed", names("op_9", 3000))},
			classes{"missing": 2}, classes{"orphan": 1}, []string{"missing proof [op_1] []", "missing proof [op_2] []", "orphan proof [] [tr_9]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := mustCompare(t, lines(tt.operations...), lines(tt.effects...))
			wantClasses(t, r, tt.wantOps, tt.wantEffs)
			wantFindings(t, r, tt.findings...)
		})
	}
}

// Whatever the groups, every operation and effect is in one class, the order of the
// lines does not matter, and no finding is told twice.
func TestLawGroupsCountEverythingOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var ops, effs []string
		for i := range rapid.IntRange(1, 6).Draw(t, "operations") {
			group := rapid.SampledFrom([]string{"g", "h", "op_0"}).Draw(t, "group")
			state := rapid.SampledFrom([]string{"succeeded", "failed", "unknown"}).Draw(t, "state")
			ops = append(ops, op(fmt.Sprintf("op_%d", i), state, in(group, rapid.IntRange(1, 3).Draw(t, "amount"))))
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "effects") {
			named := rapid.SampledFrom([]string{"g", "h", "op_0", "op_1", "x"}).Draw(t, "reference")
			status := rapid.SampledFrom([]string{"completed", "completed", "failed", "in_flight", "reversed"}).Draw(t, "status")
			effs = append(effs, eff(fmt.Sprintf("tr_%d", i), status, names(named, rapid.IntRange(1, 6).Draw(t, "amount"))))
		}
		want, err := tryCompare(lines(ops...), lines(effs...))
		if err != nil {
			t.Fatal(err)
		}
		told, n := map[string]bool{}, [2]int{}
		for _, f := range want.Findings {
			print := fmt.Sprint(f.Kind, f.Operations, f.EffectIDs)
			if told[print] {
				t.Fatalf("told twice: %s", print)
			}
			told[print] = true
		}
		for class := range want.Classes.Operations {
			n[0] += want.Classes.Operations[class]
		}
		for class := range want.Classes.Effects {
			n[1] += want.Classes.Effects[class]
		}
		if n[0] != len(ops) || n[1] != len(effs) {
			t.Fatalf("%v counted of %d and %d", n, len(ops), len(effs))
		}
		shuffle := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for _, list := range [][]string{ops, effs} {
			shuffle.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		}
		got, err := tryCompare(lines(ops...), lines(effs...))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Findings, got.Findings); diff != "" || !cmp.Equal(want.Classes, got.Classes) {
			t.Fatalf("another order, another result:\n%s", diff)
		}
	})
}

func TestTheOperationsOfAGroupAreNoSuspectedDuplicates(t *testing.T) {
	t.Parallel()
	same := func(id string) string {
		return strings.Replace(op(id, "succeeded", in("g", 1000)), "order:"+id, "order:7", 1)
	}
	r := mustCompare(t, lines(same("op_1"), same("op_2")), lines(eff("tr_1", "completed", names("g", 2000))))
	wantFindings(t, r)
}
