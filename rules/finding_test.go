package rules_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

// settledOp is an operation that succeeded at once, opened some time after sent, with
// one completed effect.
func settledOp(id string, opened time.Duration, change ...func(*recon.Operation)) rules.Done {
	o := lost().c.Operation
	o.ID, o.Key, o.State, o.CreatedAt, o.ClosedAt = recon.OperationID(id), "key-"+id, recon.Succeeded, sent.Add(opened), time.Time{}
	for _, c := range change {
		c(&o)
	}
	e := refund("re_"+id, func(e *recon.Effect) { e.Reference = id })
	return rules.Done{Operation: o, Effects: []recon.Effect{e}, Within: time.Minute}
}

func step(n int64) func(*recon.Operation) {
	return func(o *recon.Operation) { o.Case, o.Step = "case-1", &n }
}

func TestSuspectedDuplicates(t *testing.T) {
	t.Parallel()
	const m, h = time.Minute, time.Hour
	is := func(s recon.State) func(*recon.Operation) { return func(o *recon.Operation) { o.State = s } }
	closed := func(after time.Duration) func(*recon.Operation) {
		return func(o *recon.Operation) { o.ClosedAt = sent.Add(after) }
	}
	in := func(name string) func(*recon.Operation) { return func(o *recon.Operation) { o.Case = name } }
	natural := func(r string) func(*recon.Operation) { return func(o *recon.Operation) { o.Reference = r } }
	call := func(run, call string) func(*recon.Operation) {
		return func(o *recon.Operation) { o.Run, o.ToolCall = run, call }
	}
	tests := []struct {
		name string
		all  []rules.Done
		want []string
	}{
		{"opened within a minute", []rules.Done{settledOp("a", 0), settledOp("b", m)}, []string{"[a b]"}},
		{"opened after a minute, the first confirmed", []rules.Done{settledOp("a", 0), settledOp("b", m+time.Second)}, nil},
		{"the first in doubt when the second was opened", []rules.Done{settledOp("a", 0, is(recon.Unknown)), settledOp("b", 5*h)}, []string{"[a b]"}},
		{"the first in doubt, a day later", []rules.Done{settledOp("a", 0, is(recon.Unknown)), settledOp("b", 24*h)}, []string{"[a b]"}},
		{"the first in doubt, more than a day later", []rules.Done{settledOp("a", 0, is(recon.Unknown)), settledOp("b", 24*h+time.Second)}, nil},
		{"the first wrongly failed", []rules.Done{settledOp("a", 0, is(recon.Failed), closed(m)), settledOp("b", 2*h)}, []string{"[a b]"}},
		{"the first closed after the second was opened", []rules.Done{settledOp("a", 0, closed(3*h)), settledOp("b", 2*h)}, []string{"[a b]"}},
		{"the first closed before the second was opened", []rules.Done{settledOp("a", 0, closed(h)), settledOp("b", 2*h)}, nil},
		{"the later one in doubt does not matter", []rules.Done{settledOp("a", 0), settledOp("b", 2*h, is(recon.Unknown))}, nil},
		{"two steps of one case", []rules.Done{settledOp("a", 0, step(1)), settledOp("b", 1, step(2))}, nil},
		{"one step of one case", []rules.Done{settledOp("a", 0, step(1)), settledOp("b", 1, step(1))}, []string{"[a b]"}},
		{"two cases", []rules.Done{settledOp("a", 0, in("x")), settledOp("b", 1, in("y"))}, nil},
		{"a case and none", []rules.Done{settledOp("a", 0, in("x")), settledOp("b", 1)}, []string{"[a b]"}},
		{"one natural reference, at any distance and over cases", []rules.Done{settledOp("a", 0, in("x"), natural("Müller-7")), settledOp("b", 1000*h, in("y"), natural("Mu\u0308ller-7"))}, []string{"[a b]"}},
		{"an invoice by mail and by portal", []rules.Done{settledOp("a", 0, natural("ACME / RE-0042")), settledOp("b", 1000*h, natural("acme re 42"))}, []string{"[a b]"}},
		{"two invoices whose numbers run together", []rules.Done{settledOp("a", 0, natural("ACME 1-23")), settledOp("b", 1000*h, natural("ACME 12-3"))}, nil},
		{"no reference that anything is left of", []rules.Done{settledOp("a", 0, natural("--")), settledOp("b", 1000*h, natural("//"))}, nil},
		{"one tool call, over steps", []rules.Done{settledOp("a", 0, step(1), call("r", "c")), settledOp("b", 30*h, step(2), call("r", "c"))}, []string{"[a b]"}},
		{"one tool call's number in two runs", []rules.Done{settledOp("a", 0, call("r1", "c")), settledOp("b", 30*h, call("r2", "c"))}, nil},
		{"the same key is one operation told twice", []rules.Done{settledOp("a", 0), settledOp("b", 1, func(o *recon.Operation) { o.Key = "key-a" })}, nil},
		{"keys that are not known are other ones", []rules.Done{settledOp("a", 0, func(o *recon.Operation) { o.Key = "" }), settledOp("b", 1, func(o *recon.Operation) { o.Key = "" })}, []string{"[a b]"}},
		{"another amount", []rules.Done{settledOp("a", 0), settledOp("b", 1, func(o *recon.Operation) { o.Money.Minor++ })}, nil},
		{"another currency", []rules.Done{settledOp("a", 0), settledOp("b", 1, func(o *recon.Operation) { o.Money.Currency = "USD" })}, nil},
		{"B27: another mode", []rules.Done{settledOp("a", 0, call("r", "c")), settledOp("b", 1, call("r", "c"), func(o *recon.Operation) { o.Mode = "test" })}, nil},
		{"another target", []rules.Done{settledOp("a", 0), settledOp("b", 1, func(o *recon.Operation) { o.Target = "order:2" })}, nil},
		{"another action", []rules.Done{settledOp("a", 0), settledOp("b", 1, func(o *recon.Operation) { o.Action = "refund.other" })}, nil},
		{"absent amounts are equal", []rules.Done{settledOp("a", 0, func(o *recon.Operation) { o.Money = recon.Money{} }), settledOp("b", 1, func(o *recon.Operation) { o.Money = recon.Money{Currency: "EUR"} })}, []string{"[a b]"}},
		{"without a completed effect nothing was done", []rules.Done{settledOp("a", 0), {Operation: settledOp("b", 1).Operation, Within: m}}, nil},
		{"neighbours join one finding", []rules.Done{settledOp("a", 0), settledOp("b", 50*time.Second), settledOp("c", 100*time.Second), settledOp("d", 10*m)}, []string{"[a b c]"}},
		{"one in doubt joins what came after it", []rules.Done{settledOp("a", 0, is(recon.Unknown)), settledOp("b", h), settledOp("c", 2*h)}, []string{"[a b c]"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(3) {
				rand.New(rand.NewPCG(seed, 0)).Shuffle(len(tt.all), func(i, j int) { tt.all[i], tt.all[j] = tt.all[j], tt.all[i] })
				var got []string
				for _, f := range rules.SuspectedDuplicates(tt.all) {
					got = append(got, fmt.Sprint(f.Operations))
					if f.Kind != recon.FindDuplicate || f.Certainty != recon.Suspected || len(f.Effects) != len(f.Operations) || f.Reason == "" {
						t.Errorf("finding %+v", f)
					}
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("findings (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestB15_AReplayedToolCallUnderAnotherKeyIsSuspected(t *testing.T) {
	t.Parallel()
	replay := func(id, key string, opened time.Duration) rules.Done {
		return settledOp(id, opened, func(o *recon.Operation) { o.Key, o.Run, o.ToolCall = key, "run_7", "call_3" })
	}
	got := rules.SuspectedDuplicates([]rules.Done{replay("op_1090", "run_7/call_3", 0), replay("op_1091", "run_7/call_3#2", 181*time.Second)})
	if len(got) != 1 || got[0].Reason != "The same refund.create of 42.00 EUR for order:1 was done by 2 operations: both come from tool call call_3 of run run_7." {
		t.Errorf("findings %+v", got)
	}
	if same := rules.SuspectedDuplicates([]rules.Done{replay("op_1090", "run_7/call_3", 0), replay("op_1091", "run_7/call_3", 181*time.Second)}); len(same) != 0 {
		t.Errorf("a stable key is one operation: %+v", same)
	}
}

func TestManyOfOneIntentDoNotTakeTheSquare(t *testing.T) {
	t.Parallel()
	all := make([]rules.Done, 20_000)
	for i := range all {
		all[i] = settledOp(fmt.Sprintf("op_%05d", i), time.Duration(i)*time.Second)
	}
	if got := rules.SuspectedDuplicates(all); len(got) != 1 || len(got[0].Operations) != len(all) {
		t.Errorf("%d findings", len(got))
	}
}

func TestB58_TheSameFailureIsOneFindingThatCounts(t *testing.T) {
	t.Parallel()
	fail := func(n int, target string) []rules.Failure {
		var list []rules.Failure
		for i := range n {
			e := refund(fmt.Sprintf("ch_%02d", i), status(recon.EffectFailed), after(time.Duration(i)*24*time.Hour))
			list = append(list, rules.Failure{Effect: e, Target: target})
		}
		return list
	}
	soon := refund("re_1", after(27*24*time.Hour)).CreatedAt
	if got := rules.Failing(fail(2, "sub:1"), soon); len(got) != 0 {
		t.Errorf("two failures: %+v", got)
	}
	third, last := rules.Failing(fail(3, "sub:1"), soon), rules.Failing(fail(28, "sub:1"), soon)
	if len(third) != 1 || len(last) != 1 || third[0].Fingerprint() != last[0].Fingerprint() {
		t.Fatalf("the 28th makes another finding: %+v, %+v", third, last)
	}
	if o := last[0].Observed; len(o) != 1 || o[0].Theirs != "28" {
		t.Errorf("observed %+v", o)
	}
	if got := rules.Failing(append(fail(2, "sub:1"), fail(2, "sub:2")...), soon); len(got) != 0 {
		t.Errorf("two targets: %+v", got)
	}
	apart := fail(3, "sub:1")
	apart[2].Effect.CreatedAt = apart[0].Effect.CreatedAt.AddDate(0, 0, 30)
	if got := rules.Failing(apart, soon); len(got) != 0 {
		t.Errorf("over more than a month: %+v", got)
	}
	last3 := fail(3, "sub:1")[2].Effect.CreatedAt
	for days, want := range map[int]int{0: 1, 29: 1, 30: 0, 400: 0} {
		if got := rules.Failing(fail(3, "sub:1"), last3.AddDate(0, 0, days)); len(got) != want {
			t.Errorf("%d days after the last time: %+v", days, got)
		}
	}
}

func TestB02_AnOrphanSaysWhatAPersonNeeds(t *testing.T) {
	t.Parallel()
	e := refund("re_B1", unmarked, amount(1500), func(e *recon.Effect) { e.Parent, e.CreatedBy = "ch_B", "ana" })
	f := rules.Orphan(e, nil)
	want := "A refund of 15.00 EUR under ch_B (completed) was made at 2026-03-10 10:00:05 UTC by ana and no operation explains it."
	if f.Reason != want || f.Kind != recon.FindOrphan || f.Certainty != recon.Proof || f.Money.Minor != 1500 || len(f.Operations) != 0 {
		t.Errorf("finding %+v", f)
	}
}

func TestAnOrphanShowsWhatNobodySees(t *testing.T) {
	t.Parallel()
	f := rules.Orphan(refund("re_1", func(e *recon.Effect) { e.Reference = "op_1\u200b" }), nil)
	if want := `names "op_1\u200b" (with characters that are not seen), which is no operation of ours,`; !contains(f.Reason, want) {
		t.Errorf("reason %q, want it to say %q", f.Reason, want)
	}
}
