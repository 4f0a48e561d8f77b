package slack

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// dayReport is a message about the report of a day. The report has everything; this has
// what a person needs to decide whether to open it.
type dayReport struct{ recon.DayReport }

func (d dayReport) render() rendered {
	open := 0
	for _, k := range d.Findings {
		open += k.Open
	}
	title := "Report of " + d.Day + ": " + d.standing(open)
	r := rendered{Text: plain(title, 700)}
	r.add(header(title))
	r.add(text(plain(d.Verdict, 600)))
	r.add(text(fmt.Sprintf("%s opened, %s made, days of %s.", counted(d.Operations, "operation"), counted(d.Effects, "effect"), plain(d.Zone, 60))))
	r.add(text(lines(d.money(), maxSection)))
	r.add(text(lines(d.findings(), maxSection)))
	r.add(text(lines(d.gaps(), maxSection)))
	if d.Page == "" {
		r.add(text("⚠️ Its files could not be written: the log of the daemon says why, and how to write them."))
	} else {
		r.add(mrkdwn("The page: " + code(d.Page, 500)))
	}
	return r
}

// standing is the verdict as short as a lock screen: findings, and whether it is whole.
func (d dayReport) standing(open int) string {
	s := "nothing waits for a person"
	switch {
	case open == 1:
		s = "1 finding waits for a person"
	case open > 1:
		s = counted(open, "finding") + " wait for a person"
	}
	if len(d.Gaps) > 0 {
		s += "; not all was seen"
	}
	return s
}

// money has one line per currency, never added across them.
func (d dayReport) money() []string {
	var list []string
	for i, m := range d.Money {
		if i == shownCurrencies {
			return append(list, fmt.Sprintf("and %d more currencies", len(d.Money)-i))
		}
		list = append(list, fmt.Sprintf("• %s: %s, of it done %s (%s)", counted(m.Count, "operation"), d.amount(m.Minor, m.Currency),
			d.amount(m.DoneMinor, m.Currency), thousands(m.DoneCount)))
	}
	return list
}

func (d dayReport) amount(minor int64, currency string) string {
	return recon.Money{Minor: minor, Currency: recon.Shorten(currency, 12)}.SumText(d.Exponents)
}

func (d dayReport) findings() []string {
	var list []string
	for _, k := range d.Findings {
		line := fmt.Sprintf("• %s %s – %s", thousands(k.Open), kindName(k.Kind), kindText(k.Kind))
		if k.Over > 0 {
			line += fmt.Sprintf(" (%s more are over)", thousands(k.Over))
		}
		list = append(list, line)
	}
	return list
}

func (d dayReport) gaps() []string {
	var list []string
	for _, g := range d.Gaps {
		list = append(list, "⚠️ "+recon.Shorten(g, 400))
	}
	if d.MoreGaps > 0 {
		list = append(list, fmt.Sprintf("and %s more", thousands(d.MoreGaps)))
	}
	return list
}
