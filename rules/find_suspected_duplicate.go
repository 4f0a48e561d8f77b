package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	// A retry of what was in doubt comes within a day; later ones are new intents.
	retryWithin = 24 * time.Hour
	// lookBack bounds how many earlier operations of the same target and amount one is
	// compared with, so that a target used a million times does not take the square.
	lookBack = 32
)

// Done is an operation with its completed effects.
type Done struct {
	Operation recon.Operation // as it was before it was judged
	Effects   []recon.Effect  // completed ones that belong to it
	// Within is the policy's duplicate_within.
	Within time.Duration
}

// SuspectedDuplicates tells of operations with different ids and keys that look like
// one intent, each with a completed effect: same action, target, amount and currency in
// the same mode, and
//
//	(a) the earlier one was open, in doubt or wrongly failed when the later one was
//	    opened, within 24 hours;
//	(b) they were opened within the policy's duplicate_within;
//	(c) they come from the same run and tool call; or
//	(d) they have the same natural reference, at any distance and however it is written.
//
// (a) and (b) do not hold for two steps of one case, nor for two cases. Those that
// belong together by any of these are one finding. Suspicion changes no state and no
// class: two equal partial refunds are honest until a person says otherwise.
func SuspectedDuplicates(all []Done) []recon.Finding {
	type intent struct {
		action, target, mode string
		money                recon.Money
	}
	by := map[intent][]Done{}
	for _, d := range all {
		if len(d.Effects) > 0 {
			i := intent{d.Operation.Action, d.Operation.Target, d.Operation.Mode, d.Operation.Money}
			if i.money.IsZero() {
				i.money = recon.Money{} // an absent amount equals an absent one
			}
			by[i] = append(by[i], d)
		}
	}
	var findings []recon.Finding
	for _, group := range by {
		if len(group) > 1 {
			findings = append(findings, suspectsAmong(group)...)
		}
	}
	slices.SortFunc(findings, func(a, b recon.Finding) int {
		return cmp.Or(cmp.Compare(a.Operations[0], b.Operations[0]), cmp.Compare(a.Fingerprint(), b.Fingerprint()))
	})
	return findings
}

// suspectsAmong joins the operations of one intent.
func suspectsAmong(group []Done) []recon.Finding {
	slices.SortFunc(group, func(a, b Done) int {
		return cmp.Or(a.Operation.CreatedAt.Compare(b.Operation.CreatedAt), cmp.Compare(a.Operation.ID, b.Operation.ID))
	})
	joined := newSets(len(group))
	reasons := make([][]string, len(group))
	call, natural := map[[2]string]int{}, map[string]int{}
	join := func(i, j int, why string) {
		if otherKey(&group[i].Operation, &group[j].Operation) {
			joined.join(i, j)
			reasons[j] = append(reasons[j], why)
		}
	}
	for j := range group {
		later := &group[j]
		for i := max(0, j-lookBack); i < j; i++ {
			if why := suspicious(&group[i], later); why != "" {
				join(i, j, why)
			}
		}
		op := &later.Operation
		if op.Run != "" && op.ToolCall != "" {
			if i, ok := call[[2]string{op.Run, op.ToolCall}]; ok {
				join(i, j, fmt.Sprintf("both come from tool call %s of run %s", op.ToolCall, op.Run))
			}
			call[[2]string{op.Run, op.ToolCall}] = j
		}
		if r := foldReference(op.Reference); r != "" {
			if i, ok := natural[r]; ok {
				join(i, j, alike(group[i].Operation.Reference, op.Reference))
			}
			natural[r] = j
		}
	}
	var findings []recon.Finding
	for _, members := range joined.groups() {
		findings = append(findings, suspectFinding(group, members, reasons))
	}
	return findings
}

// alike says that two natural references may be one.
func alike(a, b string) string {
	if norm.NFC.String(a) == norm.NFC.String(b) {
		return "both have the natural reference " + a
	}
	return fmt.Sprintf("their natural references %q and %q differ in writing only", a, b)
}

// suspicious holds (a) and (b), which depend on time.
func suspicious(earlier, later *Done) string {
	a, b := &earlier.Operation, &later.Operation
	apart := b.CreatedAt.Sub(a.CreatedAt)
	switch {
	case a.Group != "" && a.Group == b.Group:
		return "" // one effect stands for both, and its sum says whether it is right
	case a.Case != "" && b.Case != "" && a.Case != b.Case:
		return ""
	case a.Case != "" && a.Case == b.Case && a.Step != nil && b.Step != nil && *a.Step != *b.Step:
		return ""
	case apart <= earlier.Within:
		return fmt.Sprintf("they were opened within %s", recon.Duration(apart).Text())
	case apart <= retryWithin && inDoubt(a, b.CreatedAt):
		return fmt.Sprintf("%s was not settled when %s was opened %s later", a.ID, b.ID, recon.Duration(apart).Text())
	}
	return ""
}

// inDoubt reports whether the operation was open, or wrongly failed, at a moment. One
// that was closed at a time not known counts as closed at once when it succeeded, and
// as open all the time otherwise.
func inDoubt(o *recon.Operation, at time.Time) bool {
	switch {
	case o.State == recon.Failed: // it has a completed effect, so it was wrong
		return true
	case o.ClosedAt.IsZero():
		return o.State != recon.Succeeded
	}
	return o.ClosedAt.After(at)
}

// otherKey leaves out what is one operation told twice: the same key.
func otherKey(a, b *recon.Operation) bool { return a.Key == "" || a.Key != b.Key }

func suspectFinding(group []Done, members []int, reasons [][]string) recon.Finding {
	first := &group[members[0]].Operation
	f := recon.Finding{Kind: recon.FindDuplicate, Certainty: recon.Suspected, Source: first.Source, Money: first.Money}
	var why []string
	for _, m := range members {
		f.Operations = append(f.Operations, group[m].Operation.ID)
		for _, e := range group[m].Effects {
			f.Effects = append(f.Effects, e.Ref())
		}
		for _, r := range reasons[m] {
			if !slices.Contains(why, r) {
				why = append(why, r)
			}
		}
	}
	slices.Sort(f.Operations)
	slices.SortFunc(f.Effects, func(a, b recon.EffectRef) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Mode, b.Mode))
	})
	what := first.Action
	if !first.Money.IsZero() {
		what += " of " + first.Money.Text(nil)
	}
	f.Reason = fmt.Sprintf("The same %s for %s was done by %d operations: %s.", what, first.Target, len(members), strings.Join(why, "; "))
	return f
}

// sets joins places into groups (union-find).
type sets struct{ parent []int }

func newSets(n int) *sets {
	s := &sets{parent: make([]int, n)}
	for i := range s.parent {
		s.parent[i] = i
	}
	return s
}

func (s *sets) root(i int) int {
	for s.parent[i] != i {
		s.parent[i] = s.parent[s.parent[i]]
		i = s.parent[i]
	}
	return i
}

// join keeps the smaller place as root, so that groups come out in order.
func (s *sets) join(i, j int) {
	a, b := s.root(i), s.root(j)
	s.parent[max(a, b)] = min(a, b)
}

// groups gives the groups of two and more.
func (s *sets) groups() [][]int {
	by := map[int][]int{}
	for i := range s.parent {
		by[s.root(i)] = append(by[s.root(i)], i)
	}
	var groups [][]int
	for i := range s.parent {
		if g := by[i]; len(g) > 1 {
			groups = append(groups, g)
		}
	}
	return groups
}
