package rules

import (
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// A rule judges one operation. It answers false where it does not apply.
type rule struct {
	name  string // of its file (decide_<name>.go) and its page (docs/rules/<name>.md)
	judge func(*view) (conclusion, bool)
}

// conclusion is what a rule says; Decide makes a decision of it.
type conclusion struct {
	to       recon.State
	main     *pair  // the effect that stands for the operation
	effectID string // what to look for by id, where no effect was seen yet
	code     string
	release  bool
	reason   string
	findings []recon.Finding
	looks    []string
}

// deciding lists the rules of one operation. The order is the law: evidence of an
// effect comes before its absence, and absence before age.
var deciding = []rule{
	conflict, mismatch, duplicate, found, inFlight, reversed, failedEffects,
	lateAnswer, release, missing, neverSent, staleRelease, leaseOver,
	unverifiable, giveUp, unresolved, refused, wait,
}

// finding lists the rules that look across operations, or at what is no effect
// (find_<name>.go).
var finding = []string{"failing", "orphan", "parent_total", "suspected_duplicate", "witness"}

// Names gives the names of all rules, each with its page in docs/rules.
func Names() []string {
	names := slices.Clone(finding)
	for _, r := range deciding {
		names = append(names, r.name)
	}
	slices.Sort(names)
	return names
}

// Decide judges one operation at a time. It never fails: where nothing can be
// concluded the operation stays, and the decision says when it is looked at again.
//
// Findings of the decision are those that hold now and say something that the open
// ones of the case do not; Ends names the open ones that no longer hold. Links are
// the pairs that the ledger does not have yet, or whose part changed.
func Decide(c recon.Case, now time.Time) recon.Decision {
	v := newView(c, now)
	for _, r := range deciding {
		said, ok := r.judge(v)
		if !ok {
			continue
		}
		return v.decision(r.name, said)
	}
	panic("rules: the rule wait always applies") // unreachable unless a bug in this package
}

// decision completes what a rule said with evidence, links, findings and the plan.
func (v *view) decision(name string, said conclusion) recon.Decision {
	op := &v.c.Operation
	d := recon.Decision{
		Operation: op.ID, Rule: name, Reason: said.reason, From: op.State, To: said.to, EffectID: said.effectID,
		ErrorCode: said.code, Release: said.release, LookIDs: said.looks,
	}
	said.findings = append(append(said.findings, v.disagreements()...), v.contradiction(said.to)...)
	if said.main != nil && said.main.effect.ID != op.EffectID {
		d.EffectID = said.main.effect.ID
	}
	d.Links = v.links(said.main, d)
	if len(d.LookIDs) == 0 {
		d.LookIDs = v.lookIDs(d)
	}
	d.Blind = v.blind && d.From == d.To
	d.Findings = v.newOnes(said.findings)
	d.Ends = v.ends(said)
	d.Check = v.plan(said)
	v.bearWitness(&d)
	return d
}

// links gives the pairs that the ledger does not have yet. Where one is new or the
// decision changes something, the operation's other pairs are given again, since
// their parts (main, surplus) may have changed.
func (v *view) links(main *pair, d recon.Decision) []recon.Match {
	var links []recon.Match
	news := d.From != d.To || d.EffectID != ""
	for _, p := range v.linked {
		news = news || p.effect.Owner == ""
	}
	if !news {
		return nil
	}
	for _, p := range v.linked {
		m := p.match
		m.Role = recon.Main
		if main != nil && p.effect.Identity() != main.effect.Identity() && !(main.match.Part && p.match.Part) {
			m.Role = recon.Surplus
		}
		links = append(links, m)
	}
	return links
}
