package matchers_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/matchers"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// world draws operations and effects from few names, so that identities collide and
// disagree often.
func world(t *rapid.T) ([]recon.Operation, []recon.Effect) {
	pick := func(label string, options ...string) string { return rapid.SampledFrom(options).Draw(t, label) }
	var ops []recon.Operation
	for i := range rapid.IntRange(0, 6).Draw(t, "operations") {
		ops = append(ops, operation(fmt.Sprintf("op_%d", i), func(o *recon.Operation) {
			o.Key = pick("key", "", "k1", "k2", "k3")
			o.EffectID = pick("effect id", "", "", "re_0", "re_1", "re_2")
			o.Reference = pick("natural", "", "R1", "R2")
			o.Group = pick("group", "", "", "g1")
			o.Account = pick("account", "acct_1", "acct_2", "")
			o.Mode = pick("mode", "live", "live", "test")
			o.Parent = pick("parent", "ch_1", "ch_2", "")
			o.Money.Minor = rapid.Int64Range(1, 3).Draw(t, "amount")
			o.State = rapid.SampledFrom(recon.States).Draw(t, "state")
			o.CreatedAt = noon.AddDate(0, 0, rapid.IntRange(0, 1).Draw(t, "day"))
		}))
	}
	var seen []recon.Effect
	for i := range rapid.IntRange(0, 7).Draw(t, "effects") {
		seen = append(seen, effect(fmt.Sprintf("re_%d", i), func(e *recon.Effect) {
			e.Reference = pick("reference", "", "op_0", "op_1", " op_2", "OP_3", "g1", "op_99")
			e.Key = pick("key", "", "k1", "k2", "k9")
			e.NaturalReference = pick("natural", "", "R1", "R2")
			e.Account = pick("account", "acct_1", "acct_2")
			e.Mode = pick("mode", "live", "live", "test")
			e.Kind = pick("kind", "refund", "refund", "charge")
			e.Parent = pick("parent", "ch_1", "ch_2", "")
			e.Owner = pick("owner", "", "", "", "op_1", "op_99")
			e.Money.Minor = rapid.Int64Range(1, 3).Draw(t, "amount")
			e.Status = rapid.SampledFrom([]recon.EffectStatus{recon.InFlight, recon.Completed, recon.EffectFailed, recon.Reversed}).Draw(t, "status")
		}))
	}
	return ops, seen
}

func TestLawOrderOfInputDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ops, seen := world(t)
		want := matchers.Pair(ops, seen, refundTerms)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		r.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
		r.Shuffle(len(seen), func(i, j int) { seen[i], seen[j] = seen[j], seen[i] })
		if diff := cmp.Diff(want, matchers.Pair(ops, seen, refundTerms), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("another order, another result:\n%s", diff)
		}
	})
}

func TestLawAnEffectHasAtMostOneOwnerAndNothingIsToldTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ops, seen := world(t)
		owners := map[recon.EffectIdentity]string{}
		told := map[string]bool{}
		for _, m := range matchers.Pair(ops, seen, refundTerms) {
			pair := fmt.Sprint(m.Operation, m.Effect)
			if told[pair] {
				t.Fatalf("%s is told twice", pair)
			}
			told[pair] = true
			if m.Certainty == recon.Suggestion {
				continue
			}
			if was, ok := owners[m.Effect]; ok && (was != m.Owner() || m.Group == nil) {
				t.Fatalf("%v belongs to %s and %s", m.Effect, was, m.Owner())
			}
			owners[m.Effect] = m.Owner()
		}
	})
}

func TestLawModeSystemAndKindStandBeforeAllEvidence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ops, seen := world(t)
		byID := map[recon.OperationID]recon.Operation{}
		for _, o := range ops {
			byID[o.ID] = o
		}
		kinds := map[recon.EffectIdentity]recon.Effect{}
		for _, e := range seen {
			kinds[e.Identity()] = e
		}
		for _, m := range matchers.Pair(ops, seen, refundTerms) {
			e := kinds[m.Effect]
			if m.Effect.Mode != byID[m.Operation].Mode || m.Effect.System != "stripe" || e.Kind != "refund" && e.Owner == "" {
				t.Fatalf("paired across: %+v with %+v", m, e)
			}
		}
	})
}

func TestLawAReferenceThatNamesAnOperationIsNeverLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ops, seen := world(t)
		owners := map[recon.EffectIdentity]recon.OperationID{}
		for _, m := range matchers.Pair(ops, seen, refundTerms) {
			if m.Certainty != recon.Suggestion {
				owners[m.Effect] = m.Operation
			}
		}
		for _, e := range seen {
			for _, o := range ops {
				named := e.Reference == string(o.ID) && e.Mode == o.Mode && e.Kind == "refund" && e.Owner == ""
				if named && owners[e.Identity()] != o.ID {
					t.Fatalf("%s names %s and belongs to %q", e.ID, o.ID, owners[e.Identity()])
				}
			}
		}
	})
}

func TestLawAnotherOperationNeverTakesWhatAReferenceGave(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ops, seen := world(t)
		before := map[recon.EffectIdentity]string{}
		for _, m := range matchers.Pair(ops, seen, refundTerms) {
			if m.Basis == recon.OnReference && m.Certainty == recon.Proof {
				before[m.Effect] = m.Owner()
			}
		}
		ops = append(ops, operation("op_new", func(o *recon.Operation) { o.Key = "k1"; o.EffectID = "re_1"; o.Reference = "R1" }))
		for _, m := range matchers.Pair(ops, seen, refundTerms) {
			if was, ok := before[m.Effect]; ok && m.Certainty != recon.Suggestion && m.Owner() != was {
				t.Fatalf("%v moved from %s to %s", m.Effect, was, m.Owner())
			}
		}
	})
}

func BenchmarkIndex(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		ops := make([]*recon.Operation, n)
		seen := make([]*recon.Effect, n)
		for i := range n {
			id := fmt.Sprintf("op_%08d", i)
			o := operation(id, func(o *recon.Operation) { o.Parent = "ch_" + id })
			e := effect("re_"+id, reference(id), func(e *recon.Effect) { e.Parent = "ch_" + id })
			ops[i], seen[i] = &o, &e
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				if p := matchers.Index(ops, seen, refundTerms); len(p.Links) != n {
					b.Fatalf("%d links", len(p.Links))
				}
			}
		})
	}
}

func TestLawWhatIsPairedSharesAWord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ops, seen := world(t)
		words := map[recon.EffectIdentity]map[string]bool{}
		for _, e := range seen {
			of := map[string]bool{}
			for _, w := range matchers.EffectWords(&e) {
				of[w] = true
			}
			words[e.Identity()] = of
		}
		byID := map[recon.OperationID]recon.Operation{}
		for _, o := range ops {
			byID[o.ID] = o
		}
		for _, m := range matchers.Pair(ops, seen, refundTerms) {
			o := byID[m.Operation]
			shared := false
			for _, w := range matchers.OperationWords(&o) {
				shared = shared || words[m.Effect][w]
			}
			if !shared {
				t.Fatalf("%s and %v are paired (%s) without a common word", m.Operation, m.Effect, m.Basis)
			}
		}
	})
}

func TestTheFoldOfAnIDIsTheFirstReadingOfIt(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"op_1", "OP-0001", "Op.1/a", "Müller_7", "ÄÖ", "a\u200bb", "1", "発注-12"} {
		if got, want := string(matchers.AppendFold([]byte("kept "), id)), "kept "+matchers.Readings(id)[0]; got != want {
			t.Errorf("%q folds to %q, want %q", id, got, want)
		}
	}
}
