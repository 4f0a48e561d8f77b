package escalation

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

var now = time.Date(2026, 3, 1, 2, 13, 32, 0, time.UTC)

func find(k recon.FindingKind, ops ...recon.OperationID) recon.Finding {
	return recon.Finding{Kind: k, Source: "stripe-main", Operations: ops, OpenedAt: now}
}

// pass is one operation with what was open, what is raised and what ends.
func pass(id recon.OperationID, open, raise, end []recon.Finding) Concluded {
	c := Concluded{Case: recon.Case{Operation: recon.Operation{ID: id}, Findings: open}, Decision: recon.Decision{Operation: id, Findings: raise}}
	for _, f := range end {
		c.Decision.Ends = append(c.Decision.Ends, f.Fingerprint())
	}
	return c
}

func TestEachFindingIsJudgedWithAReason(t *testing.T) {
	t.Parallel()
	type told struct {
		Kind   recon.FindingKind
		On     recon.OperationID
		Step   string
		Reason Reason
	}
	unresolved, mismatch, duplicate, missing := find(recon.FindUnresolved, "a"), find(recon.FindMismatch, "a"), find(recon.FindDuplicate, "a"), find(recon.FindMissing, "a")
	both := find(recon.FindDuplicate, "b", "a")
	list := func(f ...recon.Finding) []recon.Finding { return f }
	tests := []struct {
		name string
		pass []Concluded
		want []told
	}{
		{"nothing happened", []Concluded{pass("a", nil, nil, nil)}, nil},
		{"a first finding is told", []Concluded{pass("a", nil, list(unresolved), nil)}, []told{{recon.FindUnresolved, "a", StepFirst, NeedsPerson}}},
		{"one that was open is not told again", []Concluded{pass("a", list(unresolved), list(unresolved), nil)}, []told{{recon.FindUnresolved, "a", StepFirst, AlreadyTold}}},
		{"the gravest of a pass is told and the others are named", []Concluded{pass("a", nil, list(unresolved, mismatch, duplicate), nil)}, []told{
			{recon.FindUnresolved, "a", StepFirst, NamedByOther}, {recon.FindMismatch, "a", StepFirst, NamedByOther}, {recon.FindDuplicate, "a", StepFirst, NeedsPerson}}},
		{"a graver one that was told before names nothing new", []Concluded{pass("a", list(duplicate), list(duplicate, mismatch), nil)}, []told{
			{recon.FindDuplicate, "a", StepFirst, AlreadyTold}, {recon.FindMismatch, "a", StepFirst, NeedsPerson}}},
		{"one ends and another begins", []Concluded{pass("a", list(unresolved), list(missing), list(unresolved))}, []told{
			{recon.FindMissing, "a", StepFirst, NeedsPerson}, {recon.FindUnresolved, "a", StepEnded, HasEnded}}},
		{"raised and ended at once", []Concluded{pass("a", nil, list(missing), list(missing))}, []told{{recon.FindMissing, "a", StepFirst, EndedAtOnce}}},
		{"kinds that reports tell", []Concluded{pass("a", list(find(recon.FindBlind)), list(find(recon.FindNeverSent, "a"), find(recon.FindOrphan)), list(find(recon.FindBlind)))}, []told{
			{recon.FindNeverSent, "a", StepFirst, KindNotTold}, {recon.FindOrphan, "a", StepFirst, KindNotTold}, {recon.FindBlind, "a", StepEnded, KindNotTold}}},
		{"a finding about two operations is told once, under the smaller id", []Concluded{pass("b", nil, list(both), nil), pass("a", nil, list(both), nil)}, []told{
			{recon.FindDuplicate, "a", StepFirst, NeedsPerson}}},
		{"a lesser one about an operation without a graver one has its own message", []Concluded{pass("a", nil, list(duplicate, find(recon.FindMismatch, "a", "c")), nil)}, []told{
			{recon.FindDuplicate, "a", StepFirst, NeedsPerson}, {recon.FindMismatch, "a", StepFirst, NeedsPerson}}},
		{"an unknown end is no message", []Concluded{pass("a", nil, nil, list(unresolved))}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []told
			for _, c := range choose(tt.pass) {
				got = append(got, told{c.finding.Kind, c.operation, c.step, c.reason})
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestEveryDestinationIsTold(t *testing.T) {
	t.Parallel()
	f := find(recon.FindMissing, "a")
	got := Plan([]Concluded{pass("a", nil, []recon.Finding{f}, nil)}, Policy{Destinations: []string{"recon", "leads"}}, now)
	want := []recon.Notice{
		{Finding: f.Fingerprint(), Operation: "a", Step: "first", Destination: "recon", Reason: "needs_person", DueAt: now},
		{Finding: f.Fingerprint(), Operation: "a", Step: "first", Destination: "leads", Reason: "needs_person", DueAt: now},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := Plan([]Concluded{pass("a", nil, []recon.Finding{f}, nil)}, Policy{}, now); len(got) != 0 {
		t.Errorf("without a destination %d notices are planned", len(got))
	}
}

// Laws of planning: a new finding is told to somebody or named by a graver one that
// is; nothing is told twice; the order of the pass changes nothing but the order.
func TestPlanningLosesNothingAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	ids := []recon.OperationID{"a", "b", "c"}
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(label string) []recon.Finding {
			return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) recon.Finding {
				ops := rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 1, 2, rapid.ID[recon.OperationID]).Draw(rt, "ops")
				return find(rapid.SampledFrom(recon.FindingKinds).Draw(rt, "kind"), ops...)
			}), 0, 4).Draw(rt, label)
		}
		var all []Concluded
		for _, id := range ids {
			open := draw("open")
			all = append(all, pass(id, open, draw("raise"), open[:rapid.IntRange(0, len(open)).Draw(rt, "ended")]))
		}
		notices := Plan(all, Policy{Destinations: []string{"recon"}}, now)
		seen := map[string]bool{}
		first := map[string]bool{}
		for _, n := range notices {
			if key := n.Finding + n.Step; seen[key] {
				rt.Fatalf("told twice: %+v", n)
			} else {
				seen[key] = true
			}
			if n.Step == StepFirst {
				first[n.Finding] = true
			}
		}
		checkNothingLost(rt, all, first)
		back := slices.Clone(all)
		slices.Reverse(back)
		order := func(a, b recon.Notice) int { return cmpText(a.Finding+a.Step, b.Finding+b.Step) }
		again := Plan(back, Policy{Destinations: []string{"recon"}}, now)
		slices.SortFunc(notices, order)
		slices.SortFunc(again, order)
		if d := cmp.Diff(notices, again); d != "" {
			rt.Fatalf("the order of the pass changes what is told:\n%s", d)
		}
	})
}

func cmpText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// checkNothingLost fails when a new finding of a told kind has neither a message nor,
// on each of its operations, a graver one that has.
func checkNothingLost(rt *rapid.T, all []Concluded, first map[string]bool) {
	s := stand(all)
	for _, c := range all {
		for _, f := range c.Decision.Findings {
			if s.judge(f) != NeedsPerson || first[f.Fingerprint()] {
				continue
			}
			for _, op := range operations(f, c) {
				if !slices.ContainsFunc(all, func(o Concluded) bool {
					return slices.ContainsFunc(o.Decision.Findings, func(g recon.Finding) bool {
						return first[g.Fingerprint()] && Graver(g, f) && slices.Contains(operations(g, o), op)
					})
				}) {
					rt.Fatalf("%s on %s is neither told nor named", f.Kind, op)
				}
			}
		}
	}
}
