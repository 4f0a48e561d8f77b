package reports

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Sides is a finding with the operations and effects that it names.
type Sides struct {
	FindingRow
	Ours   []recon.Operation
	Theirs []recon.Effect
}

// NewFinding puts a finding into a report that was read at now. The report keeps no name of
// whoever made an effect.
func NewFinding(f Sides, inRange bool, now time.Time) NightlyFinding {
	n := NightlyFinding{listedFinding: listed(f.FindingRow, now), InRange: inRange, Ours: []OurSide{}, Theirs: []TheirSide{}}
	for _, o := range f.Ours {
		n.Ours = append(n.Ours, OurSide{o.ID, o.Action, o.Target, o.Parent, moneyOf(o.Money), o.State, o.CreatedAt.UTC()})
	}
	for _, e := range f.Theirs {
		n.Theirs = append(n.Theirs, TheirSide{e.Ref(), e.Status, e.Parent, moneyOf(e.Money), e.CreatedAt.UTC()})
	}
	return n
}

func moneyOf(m recon.Money) *money {
	if m.IsZero() {
		return nil
	}
	return &money{m.Minor, m.Currency}
}

func (m *money) recon() recon.Money {
	if m == nil {
		return recon.Money{}
	}
	return recon.Money{Minor: m.Amount, Currency: m.Currency}
}

// SortFindings puts those that wait for a person first, of them those of the range, and
// within each the dearest of a currency.
func SortFindings(list []NightlyFinding) {
	slices.SortStableFunc(list, func(a, b NightlyFinding) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), dearest(a.compared(), b.compared()))
	})
}

func (f NightlyFinding) rank() int {
	switch {
	case f.open() && f.InRange:
		return 0
	case f.open():
		return 1
	}
	return 2
}

func (f NightlyFinding) compared() Compared {
	c := Compared{Finding: recon.Finding{Kind: f.Kind, Source: f.Source, Operations: f.Operations, Effects: f.Effects, Money: f.Money.recon()}}
	for _, o := range f.Ours {
		c.Operations = append(c.Operations, recon.Operation{CreatedAt: o.CreatedAt})
	}
	for _, e := range f.Theirs {
		c.Effects = append(c.Effects, recon.Effect{CreatedAt: e.CreatedAt})
	}
	return c
}
