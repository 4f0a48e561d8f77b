package sweep

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/matchers"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

// comparison is one comparison under way.
type comparison struct {
	o        CompareOptions
	in       compareInput
	window   recon.Window
	policies map[brief]*recon.Policy
	heard    map[string]bool               // systems of which an effect was read
	ours     map[recon.EffectIdentity]bool // places (identity without id) that are ours

	pairing   matchers.Pairing
	links     [][]matchers.Link      // by operation
	linkOf    []int32                // by effect: place in pairing.Links, or -1
	groupOf   map[int32][]int32      // by effect of a group: places in pairing.Grouped
	hintsOf   map[int32][]int32      // by effect: places in pairing.Suggestions
	judged    map[int32]rules.Judged // operations that are not plainly matched
	classes   CompareClasses
	counted   [2]int // operations, effects
	findings  []recon.Finding
	told      map[string]bool    // fingerprints of findings on several operations
	repaying  map[string][]int32 // effects that give something back, by parent; nil: not looked for yet
	explained map[recon.EffectIdentity]bool
	owning    []recon.Policy // those of policies, made when first asked for
}

// brief is what a policy belongs to.
type brief struct {
	source recon.SourceName
	action string
}

func newComparison(o CompareOptions, in compareInput) *comparison {
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	c := &comparison{
		o: o, in: in, policies: map[brief]*recon.Policy{},
		ours:    map[recon.EffectIdentity]bool{},
		groupOf: map[int32][]int32{}, hintsOf: map[int32][]int32{}, judged: map[int32]rules.Judged{},
		classes: CompareClasses{Operations: map[rules.Class]int{}, Effects: map[rules.Class]int{}},
		told:    map[string]bool{}, explained: map[recon.EffectIdentity]bool{},
	}
	for _, k := range rules.OperationClasses {
		c.classes.Operations[k] = 0
	}
	for _, k := range rules.EffectClasses {
		c.classes.Effects[k] = 0
	}
	c.heard = in.facts.systems
	c.window = c.span()
	c.learnPolicies()
	c.learnPlaces()
	return c
}

// span is the window, with sides that were not given set to where the files end.
func (c *comparison) span() recon.Window {
	w := c.o.Window
	first, last := c.in.facts.span.first, c.in.facts.span.last
	if first.IsZero() { // both files are empty
		first, last = c.o.Now, c.o.Now
	}
	// A side that was given stands: the other one is never beyond it.
	if w.From.IsZero() {
		w.From = first
		if !w.To.IsZero() && w.To.Before(first) {
			w.From = w.To
		}
	}
	if w.To.IsZero() {
		w.To = last.Truncate(time.Second).Add(time.Second) // half-open, and the last one is in
		if w.To.Before(w.From) {
			w.To = w.From
		}
	}
	return w
}

// learnPolicies gives every action its policy, and the kind that it makes where no
// configuration says so.
func (c *comparison) learnPolicies() {
	for at := range c.in.facts.places {
		b := at.brief
		if c.policies[b] != nil {
			continue
		}
		p, configured := c.o.Policies[b.action]
		if !configured || p.Source != b.source {
			p = recon.DefaultPolicy()
			p.Action, p.Source = b.action, b.source
		}
		if p.Effect == "" {
			p.Effect = c.in.facts.kinds.of(b)
		}
		c.policies[b] = &p
	}
}

// learnPlaces says which accounts and modes are ours: those of the configuration,
// and without one those that operations name.
func (c *comparison) learnPlaces() {
	for at := range c.in.facts.places {
		if p := c.policies[at.brief]; len(p.Accounts) == 0 {
			c.ours[recon.EffectIdentity{System: systemOf(p, at.brief.source), Account: at.account, Mode: at.mode}] = true
		}
	}
	for _, p := range c.o.Policies {
		for _, a := range p.Accounts {
			c.ours[recon.EffectIdentity{System: systemOf(&p, p.Source), Account: a.Account, Mode: a.Mode}] = true
		}
	}
}

func systemOf(p *recon.Policy, source recon.SourceName) string {
	return matchers.TermsOf(*p, source).System
}

func (c *comparison) policyOf(op int) *recon.Policy {
	o := c.in.operations[op]
	return c.policies[brief{o.Source, o.Action}]
}

func (c *comparison) pair() {
	c.pairing = matchers.Index(c.in.operations, c.in.effects, func(o *recon.Operation) matchers.Terms {
		return matchers.TermsOf(*c.policies[brief{o.Source, o.Action}], o.Source)
	})
	c.links = spans(c.pairing.Links, len(c.in.operations))
	c.linkOf = make([]int32, len(c.in.effects))
	for e := range c.linkOf {
		c.linkOf[e] = -1
	}
	for i := range c.pairing.Links {
		c.linkOf[c.pairing.Links[i].Effect] = int32(i)
	}
	for i, of := range spans(c.pairing.Grouped, len(c.in.operations)) {
		if len(of) > 0 {
			c.links[i] = slices.Concat(c.links[i], of)
		}
	}
	for i := range c.pairing.Grouped {
		e := int32(c.pairing.Grouped[i].Effect)
		c.groupOf[e] = append(c.groupOf[e], int32(i))
	}
	for i := range c.pairing.Suggestions {
		e := int32(c.pairing.Suggestions[i].Effect)
		c.hintsOf[e] = append(c.hintsOf[e], int32(i))
	}
}

// spans gives, for every operation, its links: they stand together.
func spans(links []matchers.Link, operations int) [][]matchers.Link {
	of := make([][]matchers.Link, operations)
	for i := 0; i < len(links); {
		j := i + 1
		for j < len(links) && links[j].Operation == links[i].Operation {
			j++
		}
		of[links[i].Operation] = links[i:j]
		i = j
	}
	return of
}

func (c *comparison) judgeOperations() {
	hints := spans(c.pairing.Suggestions, len(c.in.operations))
	for i, op := range c.in.operations {
		if !c.plain(op, c.links[i]) {
			j := c.judge(i, slices.Concat(c.links[i], hints[i]))
			c.judged[int32(i)] = j
			c.tell(j.Findings)
			for _, id := range j.Explained {
				c.explained[id] = true
			}
		}
		if c.window.Contains(op.CreatedAt) {
			c.classes.Operations[c.operationClass(i)]++
			c.counted[0]++
		}
	}
}

// tell adds findings. Each operation of a group tells what is wrong with the whole group,
// and that is one finding.
func (c *comparison) tell(findings []recon.Finding) {
	for _, f := range findings {
		if len(f.Operations) > 1 {
			print := f.Fingerprint()
			if c.told[print] {
				continue
			}
			c.told[print] = true
		}
		c.findings = append(c.findings, f)
	}
}

func (c *comparison) operationClass(i int) rules.Class {
	if j, odd := c.judged[int32(i)]; odd {
		return j.Class
	}
	return rules.ClassMatched
}

// plain reports whether the operation is matched without anything to say, which
// nearly all are: a short cut past the rules that a test holds against them.
func (c *comparison) plain(op *recon.Operation, links []matchers.Link) bool {
	return op.State != recon.Failed && len(links) == 1 && links[0].Certainty == recon.Proof &&
		len(links[0].Differences) == 0 && c.in.effects[links[0].Effect].Status == recon.Completed
}

// judge lets the rules sort one operation.
func (c *comparison) judge(i int, links []matchers.Link) rules.Judged {
	op := c.in.operations[i]
	kase := recon.Case{Operation: *op, Policy: *c.policyOf(i)}
	for _, l := range links {
		e := c.in.effects[l.Effect]
		kase.Effects = append(kase.Effects, *e)
		kase.Matches = append(kase.Matches, c.match(l))
	}
	if len(c.links[i]) > 1 {
		kase.Effects = c.withRepayments(kase.Effects)
	}
	place := rules.PlaceSeen
	if c.silence(briefPlace{brief{op.Source, op.Action}, op.Account, op.Mode}) != "" {
		place = rules.PlaceUnseen
	}
	return rules.Judge(kase, c.o.Now, place)
}

func (c *comparison) match(l matchers.Link) recon.Match {
	return l.Match(c.in.operations[l.Operation].ID, c.in.effects[l.Effect].Identity())
}

func (c *comparison) judgeEffects() {
	for i := range c.in.effects {
		e := c.in.effects[i]
		class := c.effectClass(i)
		if class == rules.ClassOrphan {
			var hints []recon.Match
			for _, h := range c.hintsOf[int32(i)] {
				hints = append(hints, c.match(c.pairing.Suggestions[h]))
			}
			c.findings = append(c.findings, rules.Orphan(*e, hints))
		}
		if c.window.Contains(e.CreatedAt) {
			c.classes.Effects[class]++
			c.counted[1]++
		}
	}
}

func (c *comparison) effectClass(i int) rules.Class {
	e := c.in.effects[i]
	if l := c.linkOf[i]; l >= 0 {
		j, odd := c.judged[int32(c.pairing.Links[l].Operation)]
		if !odd {
			return rules.ClassMatched
		}
		return rules.LinkedClass(j, *e)
	}
	if of := c.groupOf[int32(i)]; len(of) > 0 {
		return c.groupClass(*e, of)
	}
	return rules.UnlinkedClass(*e, c.ownership(e), c.grace(e), c.o.Now)
}

// groupClass classes an effect that stands for several operations: as the first of them
// with something to say, in the order of their ids.
func (c *comparison) groupClass(e recon.Effect, of []int32) rules.Class {
	for _, g := range of {
		j, odd := c.judged[int32(c.pairing.Grouped[g].Operation)]
		if class := rules.LinkedClass(j, e); odd && class != rules.ClassMatched {
			return class
		}
	}
	return rules.ClassMatched
}

// ownership says whether an effect without operation is one of ours to explain.
func (c *comparison) ownership(e *recon.Effect) rules.Ownership {
	if e.CausedBy != "" {
		cause := e.Identity()
		cause.ID = e.CausedBy
		if _, known := c.in.places.at[c.in.places.key(cause)]; known {
			return rules.Explained
		}
	}
	if c.explained[e.Identity()] || c.releases(e) {
		return rules.Explained
	}
	if !c.ours[recon.EffectIdentity{System: e.System, Account: e.Account, Mode: e.Mode}] {
		return rules.NotOurs
	}
	if c.owning == nil {
		c.owning = make([]recon.Policy, 0, len(c.policies))
		for _, p := range c.policies {
			c.owning = append(c.owning, *p)
		}
	}
	if !rules.Owns(*e, c.owning) {
		return rules.NotOurs
	}
	return rules.Ours
}

// releases reports whether the effect is what a capture of ours left of a hold.
func (c *comparison) releases(e *recon.Effect) bool {
	for n := -1; n < len(e.OtherParents); n++ {
		of := e.Identity()
		if of.ID = e.Parent; n >= 0 {
			of.ID = e.OtherParents[n]
		}
		at, known := c.in.places.at[c.in.places.key(of)]
		if known && c.linkOf[at] >= 0 && rules.Releases(*e, *c.in.effects[at]) {
			return true
		}
	}
	return false
}

// withRepayments adds what gives back some of the effects: a refund of a charge that was
// made twice ends the duplicate.
func (c *comparison) withRepayments(effects []recon.Effect) []recon.Effect {
	if c.repaying == nil {
		c.repaying = map[string][]int32{}
		for i, e := range c.in.effects {
			if e.Kind != "refund" && !strings.HasSuffix(e.Kind, "reversal") {
				continue
			}
			for _, parent := range append([]string{e.Parent}, e.OtherParents...) {
				if parent != "" {
					c.repaying[parent] = append(c.repaying[parent], int32(i))
				}
			}
		}
	}
	for _, of := range effects {
		for _, i := range c.repaying[of.ID] {
			effects = append(effects, *c.in.effects[i])
		}
	}
	return effects
}

// grace is how long an effect of this source and kind may wait for its operation.
func (c *comparison) grace(e *recon.Effect) time.Duration {
	grace, found := time.Duration(0), false
	for b, p := range c.policies {
		if b.source == e.Source && (p.Effect == e.Kind || p.Effect == "") {
			grace, found = max(grace, p.Grace.Std()), true
		}
	}
	if !found {
		return recon.DefaultPolicy().Grace.Std()
	}
	return grace
}
