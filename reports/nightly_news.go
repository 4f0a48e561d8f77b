package reports

import (
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// toldGaps is how many gaps a message names; the page has all.
const toldGaps = 10

// NightlyNews is what people are told of a report that stands at a page.
func NightlyNews(n *Nightly, page string) recon.DayReport {
	d := recon.DayReport{
		Day: n.Window.Name, Zone: n.Window.Zone, Verdict: n.verdict(), Operations: n.Totals.Operations, Effects: n.Totals.Effects,
		Findings: n.findingsByKind(), Money: n.moneyByCurrency(), Gaps: []string{}, Page: page, Exponents: n.Exponents,
	}
	for _, part := range []struct {
		lead string
		list []NightlyGap
	}{{"Not audited", n.NotAudited}, {"Not seen", n.Unseen}, {"Audit failed", n.Failed}, {"Down", n.Down}} {
		for _, g := range part.list {
			if len(d.Gaps) == toldGaps {
				d.MoreGaps++
				continue
			}
			d.Gaps = append(d.Gaps, part.lead+": "+recon.Shorten(n.gapText(g), 300))
		}
	}
	return d
}

// findingsByKind counts findings in the order of the list, which is that of their gravity.
func (n *Nightly) findingsByKind() []recon.DayFindings {
	list := []recon.DayFindings{}
	for _, f := range n.Findings {
		i := slices.IndexFunc(list, func(k recon.DayFindings) bool { return k.Kind == f.Kind })
		if i < 0 {
			i, list = len(list), append(list, recon.DayFindings{Kind: f.Kind})
		}
		if f.open() {
			list[i].Open++
		} else {
			list[i].Over++
		}
	}
	return list
}

// moneyByCurrency adds the lines of each currency; those without one have no amount.
func (n *Nightly) moneyByCurrency() []recon.DayMoney {
	list := []recon.DayMoney{}
	for _, l := range n.Operations {
		if l.Currency == nil || l.All.Amount == nil {
			continue
		}
		i := slices.IndexFunc(list, func(m recon.DayMoney) bool { return m.Currency == *l.Currency })
		if i < 0 {
			i, list = len(list), append(list, recon.DayMoney{Currency: *l.Currency})
		}
		m, done := &list[i], l.States[recon.Succeeded]
		m.Count, m.Minor = m.Count+l.All.Count, m.Minor+*l.All.Amount
		m.DoneCount += done.Count
		if done.Amount != nil {
			m.DoneMinor += *done.Amount
		}
	}
	slices.SortFunc(list, func(a, b recon.DayMoney) int { return strings.Compare(a.Currency, b.Currency) })
	return list
}
