package nightly

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
)

// findings puts both sides beside each finding. One that an audit of a wider window told
// is left out when nothing of it is of the range.
func (m *making) findings(ctx context.Context, n *reports.Nightly) error {
	var operations []recon.OperationID
	var effects []string
	for _, f := range m.Findings {
		operations = append(operations, f.Operations...)
		for _, e := range f.Effects {
			effects = append(effects, e.ID)
		}
	}
	ours, theirs, err := m.Ledger.Sides(ctx, distinct(operations), distinct(effects))
	if err != nil {
		return err
	}
	sides := newSides(ours, theirs)
	n.Findings = []reports.NightlyFinding{}
	for _, f := range m.Findings {
		ours, theirs := sides.of(f.Finding)
		about := slices.ContainsFunc(ours, func(o recon.Operation) bool { return m.Window.Contains(o.CreatedAt) }) ||
			slices.ContainsFunc(theirs, func(e recon.Effect) bool { return m.Window.Contains(e.CreatedAt) })
		inRange := about || m.Window.Contains(f.OpenedAt)
		if inRange || f.Open() && f.OpenedAt.Before(m.Window.To) {
			n.Findings = append(n.Findings, reports.NewFinding(reports.Sides{FindingRow: reports.FindingRow(f), Ours: ours, Theirs: theirs}, inRange, m.At))
		}
	}
	reports.SortFindings(n.Findings)
	return nil
}

func distinct[T cmp.Ordered](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}

// sides are what findings name. An export and an API of one provider show the same effect,
// so the source is no part of its name.
type sides struct {
	operations map[recon.OperationID]recon.Operation
	effects    map[recon.EffectRef]recon.Effect
}

func newSides(operations []recon.Operation, effects []recon.Effect) sides {
	s := sides{map[recon.OperationID]recon.Operation{}, map[recon.EffectRef]recon.Effect{}}
	for _, o := range operations {
		s.operations[o.ID] = o
	}
	for _, e := range effects {
		ref := e.Ref()
		ref.Source = ""
		s.effects[ref] = e
	}
	return s
}

func (s sides) of(f recon.Finding) (ours []recon.Operation, theirs []recon.Effect) {
	for _, id := range f.Operations {
		if o, ok := s.operations[id]; ok {
			ours = append(ours, o)
		}
	}
	for _, ref := range f.Effects {
		ref.Source = ""
		if e, ok := s.effects[ref]; ok {
			theirs = append(theirs, e)
		}
	}
	return ours, theirs
}

// stories tells the operations that findings name, those of the first findings.
func (m *making) stories(ctx context.Context, n *reports.Nightly) error {
	n.Stories = []reports.StoryPage{}
	told := map[recon.OperationID]bool{}
	for _, f := range n.Findings {
		for _, o := range f.Ours {
			if told[o.ID] || len(n.Stories) == maxPages {
				continue
			}
			told[o.ID] = true
			s, err := m.Ledger.Story(ctx, o.ID)
			if err != nil {
				return err
			}
			n.Stories = append(n.Stories, reports.NewStoryPage(s, m.At, m.Zone))
		}
	}
	return nil
}
