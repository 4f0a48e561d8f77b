package sweep

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// result counts a finding if anything in it counts.
func (c *comparison) result() CompareResult {
	r := CompareResult{
		Window:     CompareWindow{From: c.window.From.In(c.o.Zone), To: c.window.To.In(c.o.Zone), Zone: c.o.Zone.String()},
		Operations: c.counted[0], Effects: c.counted[1], Repeated: c.in.repeated, Classes: c.classes,
		Findings: []CompareFinding{}, Unseen: c.unseen(),
	}
	inside := c.insideWindow()
	for _, f := range c.findings {
		if inside(f) {
			r.Findings = append(r.Findings, tellFinding(f))
		}
	}
	slices.SortFunc(r.Findings, func(a, b CompareFinding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), slices.Compare(a.Operations, b.Operations), slices.Compare(a.EffectIDs, b.EffectIDs),
			slices.CompareFunc(a.Effects, b.Effects, compareRefs), cmp.Compare(a.Reason, b.Reason))
	})
	return r
}

func compareRefs(a, b recon.EffectRef) int {
	return cmp.Or(strings.Compare(string(a.Source), string(b.Source)), strings.Compare(a.Account, b.Account),
		strings.Compare(a.Mode, b.Mode), strings.Compare(a.Kind, b.Kind), strings.Compare(a.ID, b.ID))
}

// insideWindow answers whether anything that a finding names counts.
func (c *comparison) insideWindow() func(recon.Finding) bool {
	operations, effects := map[recon.OperationID]bool{}, map[recon.EffectRef]bool{}
	for _, f := range c.findings {
		for _, id := range f.Operations {
			operations[id] = false
		}
		for _, e := range f.Effects {
			effects[e] = false
		}
	}
	for i := range c.in.operations {
		if op := c.in.operations[i]; c.window.Contains(op.CreatedAt) {
			if _, asked := operations[op.ID]; asked {
				operations[op.ID] = true
			}
		}
	}
	for i := range c.in.effects {
		if e := c.in.effects[i]; len(effects) > 0 && c.window.Contains(e.CreatedAt) {
			if _, asked := effects[e.Ref()]; asked {
				effects[e.Ref()] = true
			}
		}
	}
	return func(f recon.Finding) bool {
		return slices.ContainsFunc(f.Operations, func(id recon.OperationID) bool { return operations[id] }) ||
			slices.ContainsFunc(f.Effects, func(e recon.EffectRef) bool { return effects[e] })
	}
}

func tellFinding(f recon.Finding) CompareFinding {
	t := CompareFinding{
		Kind: f.Kind, Certainty: f.Certainty, Operations: f.Operations, Reason: f.Reason, Money: f.Money,
		EffectIDs: []string{}, Effects: []recon.EffectRef{}, Observed: []recon.Difference{},
	}
	if t.Operations == nil {
		t.Operations = []recon.OperationID{}
	}
	t.Effects = append(t.Effects, f.Effects...)
	t.Observed = append(t.Observed, f.Observed...)
	slices.SortFunc(t.Effects, func(a, b recon.EffectRef) int { return cmp.Or(strings.Compare(a.ID, b.ID), compareRefs(a, b)) })
	for _, e := range t.Effects {
		t.EffectIDs = append(t.EffectIDs, e.ID)
	}
	return t
}

// unseen tells of sources that operations name and of which nothing was read. An
// empty place and a file that was not exported look the same.
func (c *comparison) unseen() []CompareUnseen {
	silent := map[recon.SourceName]bool{}
	for b, p := range c.policies {
		if !c.heard[systemOf(p, b.source)] {
			silent[b.source] = true
		}
	}
	unseen := []CompareUnseen{}
	for s := range silent {
		unseen = append(unseen, CompareUnseen{Source: s, From: c.window.From.In(c.o.Zone), To: c.window.To.In(c.o.Zone), Why: "empty"})
	}
	slices.SortFunc(unseen, func(a, b CompareUnseen) int { return cmp.Compare(a.Source, b.Source) })
	return unseen
}
