package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

// result counts a finding if anything in it counts.
func (c *comparison) result() CompareResult {
	if c.in.facts.plain != nil {
		operations, effects := c.in.facts.plain(c.window)
		c.classes.Operations[rules.ClassMatched] += operations
		c.classes.Effects[rules.ClassMatched] += effects
		c.counted[0] += operations
		c.counted[1] += effects
	}
	r := CompareResult{
		Window:     CompareWindow{From: c.window.From.In(c.o.Zone), To: c.window.To.In(c.o.Zone), Zone: c.o.Zone.String()},
		Operations: c.counted[0], Effects: c.counted[1], Repeated: c.in.repeated, Classes: c.classes,
		SetAside: c.in.setAside, Findings: []CompareFinding{}, Unseen: c.unseen(), Happened: c.happened(), Notes: c.notes(),
	}
	both := c.parties()
	for _, f := range c.findings {
		if told := both.tell(f); told.within(c.window) {
			r.Findings = append(r.Findings, told)
		}
	}
	slices.SortFunc(r.Findings, func(a, b CompareFinding) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), slices.Compare(a.Operations, b.Operations), slices.Compare(a.EffectIDs, b.EffectIDs),
			slices.CompareFunc(a.Effects, b.Effects, compareRefs), cmp.Compare(a.Reason, b.Reason))
	})
	return r
}

// notes says what a person should know of the files, so that a file that was not exported, a
// file of the wrong ledger and a wrong --now are not taken for what happened.
func (c *comparison) notes() []string {
	notes := c.in.notes
	if last := c.in.facts.span.last; last.After(c.o.Now) {
		notes = append(notes, fmt.Sprintf("the files hold what was made until %s, which is after now (%s): export them again, or give a later --now",
			recon.TimeText(last, c.o.Zone), recon.TimeText(c.o.Now, c.o.Zone)))
	}
	if len(c.ours) == 0 && c.counted[1] > 0 {
		notes = append(notes, fileName(c.o.OperationsName, "operations")+" holds no operation, and nothing else says which effects are ours: all of them count as not_ours")
	}
	var doubtful []string
	known := map[string]bool{}
	for at := range c.ours {
		known[at.System] = true
	}
	for system := range c.heard {
		if len(known) > 0 && !known[system] {
			doubtful = append(doubtful, fmt.Sprintf("%s holds effects of %s, of which there is no operation: all of them count as not_ours", fileName(c.o.EffectsName, "effects"), system))
		}
	}
	slices.Sort(doubtful)
	return append(notes, slices.Compact(doubtful)...)
}

func compareRefs(a, b recon.EffectRef) int {
	return cmp.Or(strings.Compare(string(a.Source), string(b.Source)), strings.Compare(a.Account, b.Account),
		strings.Compare(a.Mode, b.Mode), strings.Compare(a.Kind, b.Kind), strings.Compare(a.ID, b.ID))
}

// parties are the operations and effects that findings name.
type parties struct {
	operations map[recon.OperationID]*recon.Operation
	effects    map[recon.EffectRef]*recon.Effect
}

// parties finds what the findings name, in one pass over what was read.
func (c *comparison) parties() parties {
	p := parties{map[recon.OperationID]*recon.Operation{}, map[recon.EffectRef]*recon.Effect{}}
	for _, f := range c.findings {
		for _, id := range f.Operations {
			p.operations[id] = nil
		}
		for _, e := range f.Effects {
			p.effects[e] = nil
		}
	}
	for _, op := range c.in.operations {
		if _, named := p.operations[op.ID]; named {
			p.operations[op.ID] = op
		}
	}
	for _, e := range c.in.effects {
		if len(p.effects) == 0 {
			break // a million effects need not be named to find none
		}
		if _, named := p.effects[e.Ref()]; named {
			p.effects[e.Ref()] = e
		}
	}
	return p
}

// within reports whether anything in the finding counts in the window.
func (f CompareFinding) within(w recon.Window) bool {
	return slices.ContainsFunc(f.Ours, func(o recon.Operation) bool { return w.Contains(o.CreatedAt) }) ||
		slices.ContainsFunc(f.Theirs, func(e recon.Effect) bool { return w.Contains(e.CreatedAt) })
}

// tell makes a finding of the result, with both sides themselves.
func (p parties) tell(f recon.Finding) CompareFinding {
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
		if seen := p.effects[e]; seen != nil {
			t.Theirs = append(t.Theirs, *seen)
		}
	}
	for _, id := range t.Operations {
		if op := p.operations[id]; op != nil {
			t.Ours = append(t.Ours, *op)
		}
	}
	return t
}

// silence says why the effects of operations in one place cannot be told from what was not
// exported; empty where they can. An empty place and a file that was not exported look the
// same, and so do a kind of which there was none and one that the file does not show.
func (c *comparison) silence(at briefPlace) string {
	p := c.policies[at.brief]
	system := systemOf(p, at.brief.source)
	kind := placeKind{system: system, kind: p.Effect}
	if at.account != "" {
		kind.account, kind.mode = at.account, at.mode
	}
	place := recon.EffectIdentity{System: system, Account: at.account, Mode: at.mode}
	switch why := unshown(c.o.EffectsFormat, p.Effect); {
	case why != "":
		return why
	case !c.heard[system]:
		return "empty"
	case at.account != "" && !c.in.facts.shown[place]:
		return fmt.Sprintf("account %s in %s mode is empty", at.account, at.mode)
	case p.Effect == "":
		return fmt.Sprintf("no effect says what %s makes; name it in a configuration (`effect`)", at.brief.action)
	case c.o.EffectsFormat == nil && !c.in.facts.made[kind]:
		where := "in the file"
		if c.in.facts.made[placeKind{system: system, kind: p.Effect}] {
			where = fmt.Sprintf("of account %s in %s mode in the file", at.account, at.mode)
		}
		return fmt.Sprintf("there is no %s %s, so it may not show them", recon.Noun(p.Effect), where)
	}
	return ""
}

// unseen tells of what operations name and of which nothing was read.
func (c *comparison) unseen() []CompareUnseen {
	unseen := []CompareUnseen{}
	for at := range c.in.facts.places {
		if why := c.silence(at); why != "" {
			unseen = append(unseen, CompareUnseen{Source: at.brief.source, From: c.window.From.In(c.o.Zone), To: c.window.To.In(c.o.Zone), Why: why})
		}
	}
	slices.SortFunc(unseen, func(a, b CompareUnseen) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Why, b.Why))
	})
	return slices.Compact(unseen)
}

// happened gives the operations of the window that are open in the record and were done,
// dearest first within a currency.
func (c *comparison) happened() []CompareHappened {
	list := []CompareHappened{}
	for i, op := range c.in.operations {
		class := c.operationClass(i)
		if !op.State.Open() || !c.window.Contains(op.CreatedAt) || class != rules.ClassMatched && class != rules.ClassDuplicate {
			continue
		}
		kept := c.judged[int32(i)].Kept.ID
		if kept == "" {
			kept = c.in.effects[c.links[i][0].Effect].ID
		}
		list = append(list, CompareHappened{Operation: op.ID, State: op.State, EffectID: kept, Money: op.Money, Target: op.Target})
	}
	slices.SortFunc(list, func(a, b CompareHappened) int {
		return cmp.Or(cmp.Compare(a.Money.Currency, b.Money.Currency), cmp.Compare(b.Money.Minor, a.Money.Minor), cmp.Compare(a.Operation, b.Operation))
	})
	return list
}
