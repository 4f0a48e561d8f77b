package rules

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// finding makes a finding on the operation. Observed holds what would make it news
// again after a person settled it.
func (v *view) finding(kind recon.FindingKind, reason string, about []pair) recon.Finding {
	op := &v.c.Operation
	f := recon.Finding{
		Kind: kind, Certainty: recon.Proof, Source: op.Source, Operations: []recon.OperationID{op.ID},
		Reason: reason, Money: op.Money, Effects: make([]recon.EffectRef, 0, len(about)),
	}
	for _, p := range about {
		f.Effects = append(f.Effects, p.effect.Ref())
		if p.match.Certainty == recon.StrongSign {
			f.Certainty = recon.StrongSign
		}
	}
	return f
}

// groupOf gives the declared group that effects stand for; nil where one of them is the
// operation's own.
func groupOf(about []pair) *recon.Group {
	var g *recon.Group
	for _, p := range about {
		if p.match.Group == nil {
			return nil
		}
		g = p.match.Group
	}
	return g
}

// ofGroup makes the finding one of the whole group where its effects are a group's: what
// is wrong with a transfer that pays forty operations is told once and not forty times.
// Its reason must name the group and not the operation; see [view.subject].
func ofGroup(f recon.Finding, about []pair) recon.Finding {
	g := groupOf(about)
	if g == nil {
		return f
	}
	f.Operations = slices.Clone(g.Operations)
	if !g.Money.IsZero() {
		f.Money = g.Money
	}
	return f
}

// subject names what a finding of ofGroup is about, for a sentence.
func (v *view) subject(about []pair) string {
	g := groupOf(about)
	if g == nil || len(g.Operations) == 1 {
		return v.what()
	}
	s := v.noun()
	if !g.Money.IsZero() {
		s += " of " + g.Money.Text(v.c.Policy.Exponents)
	}
	return fmt.Sprintf("%s for the %d operations of group %s", s, len(g.Operations), g.Name)
}

// accepted reports whether a person settled this very finding and nothing that they
// looked at has changed since. What is accepted changes no state again.
func (v *view) accepted(f recon.Finding) bool {
	return slices.ContainsFunc(v.c.Settled, func(s recon.Finding) bool { return same(s, f) })
}

// newOnes leaves out findings that are open, or settled, and have not changed.
func (v *view) newOnes(holding []recon.Finding) []recon.Finding {
	var news []recon.Finding
	for _, f := range holding {
		open := slices.ContainsFunc(v.c.Findings, func(o recon.Finding) bool { return o.Open() && same(o, f) })
		if !open && !v.accepted(f) {
			news = append(news, f)
		}
	}
	return news
}

// same reports whether two findings say the same, whatever the order in which what
// differs was observed and is stored.
func same(a, b recon.Finding) bool {
	return a.Fingerprint() == b.Fingerprint() && slices.Equal(inOrder(a.Observed), inOrder(b.Observed))
}

func inOrder(list []recon.Difference) []recon.Difference {
	return slices.SortedFunc(slices.Values(list), func(a, b recon.Difference) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Ours, b.Ours), cmp.Compare(a.Theirs, b.Theirs))
	})
}

// concerns reports whether a finding is on this operation alone or on its group, so that
// the operation's decisions speak for it.
func (v *view) concerns(f recon.Finding) bool {
	switch {
	case len(f.Operations) == 1:
		return f.Operations[0] == v.c.Operation.ID
	case f.Certainty == recon.Suspected || f.Kind == recon.FindFailing:
		return false
	}
	return slices.Contains(f.Operations, v.c.Operation.ID)
}

// ends gives the open findings on this operation or its group that no longer hold, by
// fingerprint.
func (v *view) ends(said conclusion) []string {
	var ended []string
	for _, f := range v.c.Findings {
		if !f.Open() || !v.concerns(f) {
			continue
		}
		print := f.Fingerprint()
		holds := slices.ContainsFunc(said.findings, func(h recon.Finding) bool { return h.Fingerprint() == print })
		if !holds && v.past(f, said) {
			ended = append(ended, print)
		}
	}
	slices.Sort(ended)
	return slices.Compact(ended)
}

// past reports whether a finding that the rule did not raise again is over. Not
// raised is not over: a pass that saw nothing new ends nothing.
func (v *view) past(f recon.Finding, said conclusion) bool {
	if isContradiction(f) {
		return v.c.Witness.Heard() || v.c.Policy.Witness == ""
	}
	replaced := slices.ContainsFunc(said.findings, func(h recon.Finding) bool { return h.Kind == f.Kind && !isContradiction(h) })
	switch f.Kind {
	case recon.FindConflict:
		// That the record was wrong stays true until a person has seen it. A sender's word
		// gives way to the effect itself.
		return replaced && len(f.Effects) == 0
	case recon.FindDuplicate:
		return replaced || v.liveOf(f) < 2
	case recon.FindNeverSent:
		return said.to != recon.Pending || !v.c.Operation.SentAt.IsZero()
	case recon.FindUnresolved:
		explained := said.to == recon.Unknown && said.main != nil || len(said.findings) > 0
		return !said.to.Open() || said.to == recon.Pending || explained
	case recon.FindMissing:
		// An audit may find a succeeded operation missing that is left as it is: that it stays
		// succeeded says nothing new.
		return replaced || !said.to.Open() && (said.to != v.state() || len(v.linked) > 0)
	case recon.FindMismatch, recon.FindReversed:
		return replaced || !said.to.Open()
	}
	return false
}

// liveOf counts the effects of a finding that exist or may yet, as far as is known:
// one that is not in the case counts.
func (v *view) liveOf(f recon.Finding) int {
	n := 0
	for _, ref := range f.Effects {
		is := func(p pair) bool { return p.effect.Ref() == ref }
		if !slices.ContainsFunc(v.linked, is) || slices.ContainsFunc(v.live, is) {
			n++
		}
	}
	return n
}
