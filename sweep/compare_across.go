package sweep

import (
	"hash/maphash"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/matchers"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
)

// findAcross tells what no single operation shows.
func (c *comparison) findAcross() {
	c.findings = append(c.findings, rules.SuspectedDuplicates(c.done())...)
	c.findings = append(c.findings, rules.Failing(c.failures(), c.in.facts.span.last)...)
	c.findings = append(c.findings, rules.ParentTotals(c.children())...)
}

// children gives the effects under parents of which one shows the parent's own total.
func (c *comparison) children() []recon.Effect {
	totals := map[string]bool{}
	for _, e := range c.in.effects {
		if e.ParentTotal != nil && e.Parent != "" {
			totals[e.Parent] = true
		}
	}
	if len(totals) == 0 {
		return nil
	}
	var children []recon.Effect
	for i, e := range c.in.effects {
		if totals[e.Parent] && (c.linkOf[i] >= 0 || c.ownership(e) != rules.NotOurs) {
			children = append(children, *e)
		}
	}
	return children
}

// done gives the operations with completed effects of which another one has the same
// action, target and amount; the others cannot be suspected. They are told apart by a
// hash first: a collision costs a needless comparison, nothing else.
func (c *comparison) done() []rules.Done {
	var h maphash.Hash
	hashes := make([]uint64, len(c.in.operations)) // 0: without completed effect
	times := make(map[uint64]bool, len(c.in.operations))
	for i, op := range c.in.operations {
		if !slices.ContainsFunc(c.links[i], c.completed) {
			continue
		}
		h.Reset()
		h.WriteString(op.Action)
		h.WriteByte(0)
		h.WriteString(op.Target)
		hashes[i] = h.Sum64() ^ uint64(op.Money.Minor) | 1
		_, again := times[hashes[i]]
		times[hashes[i]] = again
	}
	var done []rules.Done
	for i, op := range c.in.operations {
		if hashes[i] == 0 || !times[hashes[i]] {
			continue
		}
		d := rules.Done{Operation: *op, Within: c.policyOf(i).DuplicateWithin.Std()}
		for _, l := range c.links[i] {
			if c.completed(l) {
				d.Effects = append(d.Effects, *c.in.effects[l.Effect])
			}
		}
		done = append(done, d)
	}
	return done
}

func (c *comparison) completed(l matchers.Link) bool {
	return c.in.effects[l.Effect].Status == recon.Completed
}

// failures gives the failed effects that are ours, with what keeps failing.
func (c *comparison) failures() []rules.Failure {
	var failures []rules.Failure
	for i := range c.in.effects {
		e := c.in.effects[i]
		if e.Status != recon.EffectFailed {
			continue
		}
		f := rules.Failure{Effect: *e, Target: e.Target}
		if l := c.linkOf[i]; l >= 0 {
			op := c.in.operations[c.pairing.Links[l].Operation]
			f.Operation, f.Target = op.ID, op.Target
		} else if of := c.groupOf[int32(i)]; len(of) > 0 {
			op := c.in.operations[c.pairing.Grouped[of[0]].Operation]
			f.Operation, f.Target = op.ID, op.Target
		} else if c.ownership(e) == rules.NotOurs {
			continue
		}
		failures = append(failures, f)
	}
	return failures
}
