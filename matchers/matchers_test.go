package matchers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-1c4f4dc2/reconciler/matchers"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func refundTerms(*recon.Operation) matchers.Terms {
	return matchers.Terms{System: "stripe", Kind: "refund"}
}

func operation(id string, change ...func(*recon.Operation)) recon.Operation {
	o := recon.Operation{
		ID: recon.OperationID(id), Source: "stripe-main", Action: "refund.create", Target: "order:1", Parent: "ch_1",
		Key: "k-" + id, Money: recon.Money{Minor: 4200, Currency: "EUR"}, State: recon.Unknown,
		CreatedAt: noon, SentAt: noon, Account: "acct_1", Mode: "live",
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func effect(id string, change ...func(*recon.Effect)) recon.Effect {
	e := recon.Effect{
		ID: id, Source: "stripe-main", System: "stripe", Kind: "refund", Status: recon.Completed, Parent: "ch_1",
		Money: recon.Money{Minor: 4200, Currency: "EUR"}, CreatedAt: noon.Add(time.Second), Account: "acct_1", Mode: "live",
	}
	for _, c := range change {
		c(&e)
	}
	return e
}

func reference(s string) func(*recon.Effect) { return func(e *recon.Effect) { e.Reference = s } }
func key(s string) func(*recon.Effect)       { return func(e *recon.Effect) { e.Key = s } }

// tell writes matches as short lines: operation, effect, basis, certainty, fields.
func tell(matches []recon.Match) []string {
	var lines []string
	for _, m := range matches {
		var fields []string
		for _, d := range m.Differences {
			fields = append(fields, d.Field)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", m.Operation, m.Effect.ID, m.Basis, m.Certainty, strings.Join(fields, ","))))
	}
	return lines
}

func check(t *testing.T, ops []recon.Operation, effects []recon.Effect, want ...string) {
	t.Helper()
	got := tell(matchers.Pair(ops, effects, refundTerms))
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("matches (-want +got):\n%s", diff)
	}
}

func TestPairFindsTheOwner(t *testing.T) {
	t.Parallel()
	knows := func(id string) func(*recon.Operation) { return func(o *recon.Operation) { o.EffectID = id } }
	natural := func(s string) func(*recon.Operation) { return func(o *recon.Operation) { o.Reference = s } }
	bill := func(s string) func(*recon.Effect) {
		return func(e *recon.Effect) { e.NaturalReference = s; e.Parent = "" }
	}
	elsewhere := func(e *recon.Effect) { e.Parent = "ch_9" }
	tests := []struct {
		name    string
		ops     []recon.Operation
		effects []recon.Effect
		want    []string
	}{
		{"by our reference", list(operation("op_1")), effects(effect("re_1", reference("op_1"))),
			[]string{"op_1 re_1 reference proof"}},
		{"by our reference with outer white space", list(operation("op_1")), effects(effect("re_1", reference(" op_1\n"))),
			[]string{"op_1 re_1 reference proof"}},
		{"by the effect's id", list(operation("op_1", knows("re_1"))), effects(effect("re_1")),
			[]string{"op_1 re_1 effect_id proof"}},
		{"by the key", list(operation("op_1")), effects(effect("re_1", key("k-op_1"))),
			[]string{"op_1 re_1 key proof"}},
		{"by a natural reference in another Unicode form", list(operation("op_1", natural("Müller-7"))),
			effects(effect("re_1", bill("Mu\u0308ller-7"))), []string{"op_1 re_1 natural_reference strong"}},
		{"a natural reference of two operations names neither",
			list(operation("op_1", natural("R-7")), operation("op_2", natural("R-7"))), effects(effect("re_1", bill("R-7"))),
			[]string{"op_1 re_1 natural_reference suggestion", "op_2 re_1 natural_reference suggestion"}},
		{"a natural reference of a failed operation is a hint",
			list(operation("op_1", natural("R-7"), func(o *recon.Operation) { o.State = recon.Failed })), effects(effect("re_1", bill("R-7"))),
			[]string{"op_1 re_1 natural_reference suggestion"}},
		{"the reference is stronger than the key, and the disagreement is told",
			list(operation("op_1"), operation("op_2")), effects(effect("re_1", reference("op_1"), key("k-op_2"), elsewhere)),
			[]string{"op_1 re_1 reference proof parent,key", "op_2 re_1 key suggestion parent,reference"}},
		{"the reference is stronger than the effect's id, and the disagreement is told on both",
			list(operation("op_1"), operation("op_2", knows("re_1"))), effects(effect("re_1", reference("op_1"))),
			[]string{"op_1 re_1 reference proof effect_id", "op_2 re_1 effect_id suggestion reference"}},
		{"the effect's id is stronger than the key",
			list(operation("op_1", knows("re_1")), operation("op_2")), effects(effect("re_1", key("k-op_2"))),
			[]string{"op_1 re_1 effect_id proof key", "op_2 re_1 key suggestion"}},
		{"a key of another account is another key", list(operation("op_1", func(o *recon.Operation) { o.Key = "" }), operation("op_2", func(o *recon.Operation) { o.Account = "acct_2" })),
			effects(effect("re_1", reference("op_1"), key("k-op_2"))), []string{"op_1 re_1 reference proof"}},
		{"another effect than the recorded one is a difference", list(operation("op_1", knows("re_0"))),
			effects(effect("re_1", reference("op_1"))), []string{"op_1 re_1 reference proof effect_id"}},
		{"a second effect beside the recorded one differs in nothing", list(operation("op_1", knows("re_1"))),
			effects(effect("re_1"), effect("re_2", reference("op_1"))),
			[]string{"op_1 re_1 effect_id proof", "op_1 re_2 reference proof"}},
		{"the same id in another account is another effect", list(operation("op_1", knows("re_1"))),
			effects(effect("re_1", elsewhere, func(e *recon.Effect) { e.Account = "acct_2" })), nil},
		{"our reference in another account is a difference", list(operation("op_1")),
			effects(effect("re_1", reference("op_1"), func(e *recon.Effect) { e.Account = "acct_2" })),
			[]string{"op_1 re_1 reference proof account"}},
		{"an unknown account is not compared", list(operation("op_1", knows("re_1"), func(o *recon.Operation) { o.Account = "" })),
			effects(effect("re_1")), []string{"op_1 re_1 effect_id proof"}},
		{"our reference on another kind of effect says nothing", list(operation("op_1")),
			effects(effect("ch_9", reference("op_1"), func(e *recon.Effect) { e.Kind = "charge" })), nil},
		{"our reference in another system says nothing", list(operation("op_1")),
			effects(effect("x", reference("op_1"), func(e *recon.Effect) { e.System = "bank" })), nil},
		{"a known owner stays though nothing names it", list(operation("op_1")),
			effects(effect("re_1", elsewhere, func(e *recon.Effect) { e.Owner = "op_1" })), []string{"op_1 re_1 person proof parent"}},
		{"a known owner stays and the reference to another is told", list(operation("op_1"), operation("op_2")),
			effects(effect("re_1", reference("op_2"), func(e *recon.Effect) { e.Owner = "op_1" })),
			[]string{"op_1 re_1 person proof reference", "op_2 re_1 reference suggestion"}},
		{"an effect that belongs to somebody else is nobody's here, and a hint", list(operation("op_1")),
			effects(effect("re_1", reference("op_1"), func(e *recon.Effect) { e.Owner = "op_7" })), []string{"op_1 re_1 reference suggestion"}},
		{"any of the effect's parents will do", list(operation("op_1")),
			effects(effect("re_1", reference("op_1"), func(e *recon.Effect) { e.Parent = "pi_1"; e.OtherParents = []string{"ch_1"} })),
			[]string{"op_1 re_1 reference proof"}},
		{"an effect without parent or amount is not compared in them", list(operation("op_1")),
			effects(effect("re_1", reference("op_1"), func(e *recon.Effect) { e.Parent = ""; e.Money = recon.Money{} })),
			[]string{"op_1 re_1 reference proof"}},
		{"a recipient that differs is told", list(operation("op_1")),
			effects(effect("re_1", reference("op_1"), func(e *recon.Effect) { e.Target = "order:2" })),
			[]string{"op_1 re_1 reference proof target"}},
		{"currency and amount that differ are both told", list(operation("op_1")),
			effects(effect("re_1", reference("op_1"), func(e *recon.Effect) { e.Money = recon.Money{Minor: 42, Currency: "USD"} })),
			[]string{"op_1 re_1 reference proof currency,amount"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			check(t, tt.ops, tt.effects, tt.want...)
		})
	}
}

func list(ops ...recon.Operation) []recon.Operation  { return ops }
func effects(effects ...recon.Effect) []recon.Effect { return effects }

func TestToleranceIsOfThePolicy(t *testing.T) {
	t.Parallel()
	off := effect("re_1", reference("op_1"), func(e *recon.Effect) { e.Money.Minor = 4205 })
	for tolerance, equal := range map[int64]bool{0: false, 4: false, 5: true} {
		terms := func(*recon.Operation) matchers.Terms {
			return matchers.TermsOf(recon.Policy{System: "stripe", Effect: "refund", Tolerance: tolerance}, "stripe-main")
		}
		m := matchers.Pair(list(operation("op_1")), effects(off), terms)
		if len(m) != 1 || m[0].Equal() != equal {
			t.Errorf("tolerance %d: got %v, want equal %v", tolerance, m, equal)
		}
	}
}

func TestTermsOfASourceWithoutSystemNameTheSource(t *testing.T) {
	t.Parallel()
	if got := matchers.TermsOf(recon.Policy{}, "bank").System; got != "bank" {
		t.Errorf("system is %q", got)
	}
}

func TestDifferencesShowBothSides(t *testing.T) {
	t.Parallel()
	m := matchers.Pair(list(operation("op_1")), effects(effect("re_1", reference("op_1"), func(e *recon.Effect) { e.Money.Minor = 420; e.Parent = "ch_2" })), refundTerms)
	want := []recon.Difference{
		{Field: "amount", Ours: "42.00 EUR", Theirs: "4.20 EUR"},
		{Field: "parent", Ours: "ch_1", Theirs: "ch_2"},
	}
	if len(m) != 1 {
		t.Fatalf("matches: %v", m)
	}
	if diff := cmp.Diff(want, m[0].Differences); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

// A yen has no cents: a hundredth of the amount is a mismatch, not a match.
func TestB25_ZeroDecimalCurrencyDividedByAHundredIsAMismatch(t *testing.T) {
	t.Parallel()
	yen := func(o *recon.Operation) { o.Money = recon.Money{Minor: 6400, Currency: "JPY"} }
	e := effect("re_1", reference("op_1"), func(e *recon.Effect) { e.Money = recon.Money{Minor: 64, Currency: "JPY"} })
	check(t, list(operation("op_1", yen)), effects(e), "op_1 re_1 reference proof amount")
	m := matchers.Pair(list(operation("op_1", yen)), effects(e), refundTerms)
	if d := m[0].Differences[0]; d.Ours != "6,400 JPY" || d.Theirs != "64 JPY" {
		t.Errorf("difference shows %+v", d)
	}
}

// An effect of the other mode carries our reference, key and id, and links with nothing.
func TestB27_TestModeNeverMatchesLive(t *testing.T) {
	t.Parallel()
	e := effect("re_1", reference("op_1"), key("k-op_1"), func(e *recon.Effect) { e.Mode = "test" })
	check(t, list(operation("op_1", func(o *recon.Operation) { o.EffectID = "re_1" })), effects(e))
}

func TestB39_AmountAloneIsASuggestion(t *testing.T) {
	t.Parallel()
	amount := func(n int64) func(*recon.Operation) {
		return func(o *recon.Operation) { o.Money.Minor = n; o.Parent = "pi_1" }
	}
	seen := func(n int64) recon.Effect {
		return effect("re_1", func(e *recon.Effect) { e.Money.Minor = n; e.Parent = "pi_1" })
	}
	t.Run("one candidate fits", func(t *testing.T) {
		t.Parallel()
		check(t, list(operation("op_1", amount(2600)), operation("op_2", amount(4800))), effects(seen(2600)),
			"op_1 re_1 candidate suggestion")
	})
	t.Run("three candidates are all named", func(t *testing.T) {
		t.Parallel()
		check(t, list(operation("op_1", amount(1900)), operation("op_2", amount(1900)), operation("op_3", amount(1900))), effects(seen(1900)),
			"op_1 re_1 candidate suggestion", "op_2 re_1 candidate suggestion", "op_3 re_1 candidate suggestion")
	})
	t.Run("no parent, no candidate", func(t *testing.T) {
		t.Parallel()
		check(t, list(operation("op_1", func(o *recon.Operation) { o.Parent = "" })), effects(effect("re_1")))
	})
	t.Run("an operation with a live effect of its own is no candidate", func(t *testing.T) {
		t.Parallel()
		check(t, list(operation("op_1")), effects(effect("re_1", reference("op_1")), effect("re_2")), "op_1 re_1 reference proof")
	})
}

func TestB41_SameKeyWithAnotherAmountIsAMismatchAndNeverAdopted(t *testing.T) {
	t.Parallel()
	k300 := func(n int64) func(*recon.Operation) {
		return func(o *recon.Operation) { o.Key = "k-300"; o.Money.Minor = n }
	}
	e := effect("re_1", key("k-300"), func(e *recon.Effect) { e.Money.Minor = 1000 })
	t.Run("the operation with the effect's amount gets it", func(t *testing.T) {
		t.Parallel()
		check(t, list(operation("op_1200", k300(1200)), operation("op_1300", k300(1000))), effects(e),
			"op_1300 re_1 key proof", "op_1200 re_1 key suggestion amount")
	})
	t.Run("alone the other one gets a difference", func(t *testing.T) {
		t.Parallel()
		check(t, list(operation("op_1200", k300(1200))), effects(e), "op_1200 re_1 key proof amount")
	})
}

func TestB69_ALookalikeReferenceIsASuggestion(t *testing.T) {
	t.Parallel()
	for _, r := range []string{"OP_1510", "op_ 1510", "Ref. op_1510", `"OP-1510"`, "RF: op_1510", "op_1510\u200b", "op_\u00a01510"} {
		e := effect("re_1", reference(r), func(e *recon.Effect) { e.Parent = "ch_9" })
		check(t, list(operation("op_1510")), effects(e), "op_1510 re_1 lookalike suggestion parent")
	}
	for _, r := range []string{"op_1511", "op_15100", "xop_1510", ""} {
		e := effect("re_1", reference(r), func(e *recon.Effect) { e.Parent = "ch_9" })
		check(t, list(operation("op_1510")), effects(e))
	}
}

func TestAnEffectOfAnotherOwnerIsAHintForWhomItNames(t *testing.T) {
	t.Parallel()
	given := func(e *recon.Effect) { e.Owner = "op_9" }
	check(t, list(operation("op_1")), effects(effect("re_1", reference("op_1"), given)), "op_1 re_1 reference suggestion")
	check(t, list(operation("op_1")), effects(effect("re_1", key("k-op_1"), given)), "op_1 re_1 key suggestion")
	knows := operation("op_1", func(o *recon.Operation) { o.EffectID = "re_1" })
	check(t, list(knows), effects(effect("re_1", given)), "op_1 re_1 effect_id suggestion")
	// What only looks alike and is another's is no hint, nor is a test object.
	check(t, list(operation("op_1")), effects(effect("re_1", given)))
	check(t, list(operation("op_1")), effects(effect("re_1", reference("op_1"), given, func(e *recon.Effect) { e.Mode = "test" })))
}

func TestManyOperationsWithOneIdentityNameNobody(t *testing.T) {
	t.Parallel()
	var ops []recon.Operation
	for i := range 100 {
		ops = append(ops, operation(fmt.Sprintf("op_%03d", i), func(o *recon.Operation) { o.Key = "constant"; o.Parent = "" }))
	}
	check(t, ops, effects(effect("re_1", key("constant"))))
}

func TestSuggestionsAreBoundedAndNoOperationLosesItsOnlyHint(t *testing.T) {
	t.Parallel()
	const n = 200
	var ops []recon.Operation
	var seen []recon.Effect
	for i := range n {
		ops = append(ops, operation(fmt.Sprintf("op_%03d", i)))
		seen = append(seen, effect(fmt.Sprintf("re_%03d", i)))
	}
	hints := map[recon.OperationID]int{}
	matches := matchers.Pair(ops, seen, refundTerms)
	for _, m := range matches {
		hints[m.Operation]++
	}
	if len(hints) != n {
		t.Errorf("%d of %d operations have a hint", len(hints), n)
	}
	if len(matches) > 16*n {
		t.Errorf("%d suggestions for %d operations", len(matches), n)
	}
}

// Operations that share an identity are told apart by what differs, then by age, then by
// id, whichever of them comes first.
func TestAnIdentityOfTwoNamesTheOneThatFits(t *testing.T) {
	t.Parallel()
	shares := func(change ...func(*recon.Operation)) []func(*recon.Operation) {
		return append(change, func(o *recon.Operation) { o.Key = "k" })
	}
	older := func(o *recon.Operation) { o.CreatedAt = noon.Add(-time.Second) }
	other := func(o *recon.Operation) { o.Money.Minor = 100 }
	for name, tt := range map[string]struct {
		ops  []recon.Operation
		want string
	}{
		"without differences": {[]recon.Operation{operation("op_1", shares(other, older)...), operation("op_2", shares()...)}, "op_2"},
		"the older one":       {[]recon.Operation{operation("op_1", shares()...), operation("op_2", shares(older)...)}, "op_2"},
		"the smaller id":      {[]recon.Operation{operation("op_1", shares()...), operation("op_2", shares()...)}, "op_1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 {
				if got := tell(matchers.Pair(tt.ops, []recon.Effect{effect("re_1", key("k"))}, refundTerms)); got[0] != tt.want+" re_1 key proof" {
					t.Errorf("matches %q, want %s to own it", got, tt.want)
				}
				slices.Reverse(tt.ops)
			}
		})
	}
}
