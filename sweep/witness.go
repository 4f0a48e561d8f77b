package sweep

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// testify asks the witnesses that the cases' actions name, each once for the whole batch,
// and puts what they say into the cases. One that could not be asked is not asked again in
// this run: an operation is never kept waiting for it.
func (p *pass) testify(ctx context.Context, h *heard) error {
	by := map[string][]sources.Question{}
	for _, c := range h.cases {
		if name := c.Policy.Witness; name != "" && p.Witnesses[name] != nil && !p.deaf[name] {
			by[name] = append(by[name], question(c))
		}
	}
	said := map[recon.OperationID]*recon.Testimony{}
	for name, batch := range by {
		told, err := p.Witnesses[name].Testify(ctx, name, batch, p.options.Now)
		if err != nil {
			return fmt.Errorf("ask the witness %s about %d operations: %w", name, len(batch), err)
		}
		for i := range told {
			said[told[i].Operation] = &told[i]
			p.deaf[name] = p.deaf[name] || deafened(told[i].Look)
			if p.Watch.Look != nil {
				p.Watch.Look(told[i].Look)
			}
		}
	}
	for i, c := range h.cases {
		h.cases[i].Witness = said[c.Operation.ID]
	}
	return nil
}

// deafened reports whether a look says that the witness cannot be asked. That it answers what
// nobody understands may be so of one object alone, and keeps no other from being asked for.
func deafened(l recon.Look) bool {
	return l.Outcome == recon.Blind && l.Fault != string(sources.Malformed)
}

// testimonies are the looks at witnesses on which decisions rest. What changed nothing is not
// kept: the same words every few minutes would be no evidence of anything.
func testimonies(all []judged) []recon.Look {
	var looks []recon.Look
	for _, j := range all {
		if t := j.Case.Witness; t != nil && slices.Contains(j.Decision.LookIDs, t.Look.ID) {
			looks = append(looks, t.Look)
		}
	}
	return looks
}
