package reports

import (
	"fmt"
	"io"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// NightlyText writes a report for a terminal or a mail.
func NightlyText(w io.Writer, n *Nightly) error {
	p := newPage(n.AsOf, n.zone())
	p.line("Reconciliation report for " + n.Window.Name)
	p.text("", fmt.Sprintf("%s to %s, %s, zone %s; the ledger was read at %s", p.when(n.Window.From), p.when(n.Window.To), n.hours(), n.Window.Zone, p.when(n.AsOf)))
	p.blank()
	p.text("", n.verdict())
	if s := n.ending(); s != "" {
		p.text("", s)
	}
	p.gaps(n)
	p.nightlyOperations(n)
	p.nightlyEffects(n)
	p.nightlyFees(n)
	p.nightlyClasses(n)
	p.nightlyOpen(n)
	p.blank()
	p.line("Time to truth")
	p.text("  ", n.truthText())
	p.nightlyFindings(n)
	p.nightlyProof(n)
	return p.writeTo(w)
}

func (p *page) gaps(n *Nightly) {
	for _, part := range []struct {
		lead string
		list []NightlyGap
	}{{"NOT AUDITED  ", n.NotAudited}, {"NOT SEEN     ", n.Unseen}, {"AUDIT FAILED ", n.Failed}, {"DOWN         ", n.Down}} {
		for _, g := range part.list {
			p.text(part.lead, n.gapText(g))
		}
	}
}

// table writes columns that are as wide as what they hold. Those from number right are
// numbers and stand to the right.
func (p *page) table(right int, rows ...[]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(recon.Printable(cell))))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		b.WriteString("  ")
		for i, cell := range row {
			cell = recon.Printable(cell)
			if i < right {
				b.WriteString(pad(cell, min(widths[i], 24)) + "  ")
			} else {
				b.WriteString(left(cell, widths[i]) + "  ")
			}
		}
		p.line(b.String())
	}
}

func (p *page) nightlyOperations(n *Nightly) {
	p.blank()
	p.line("Operations opened, by what is known of them: " + number(n.Totals.Operations))
	if len(n.Operations) == 0 {
		return
	}
	rows := [][]string{{"source", "action", "count", "amount", "of it done", "done", "failed", "open"}}
	for _, l := range n.Operations {
		rows = append(rows, []string{string(l.Source), l.Action, number(l.All.Count), n.sumText(l.All, l.Currency),
			n.sumText(l.States[recon.Succeeded], l.Currency), number(l.States[recon.Succeeded].Count), number(l.States[recon.Failed].Count),
			number(l.All.Count - l.States[recon.Succeeded].Count - l.States[recon.Failed].Count)})
	}
	p.table(2, append(rows, []string{"all", "", number(n.Totals.Operations), "", "", "", "", ""})...)
}

func (p *page) nightlyEffects(n *Nightly) {
	p.blank()
	p.line("Effects made at the providers: " + number(n.Totals.Effects))
	if len(n.Effects) == 0 {
		return
	}
	rows := [][]string{{"source", "kind", "count", "amount done", "done", "in flight", "failed", "reversed", "unpaired"}}
	for _, l := range n.Effects {
		rows = append(rows, []string{string(l.Source), recon.Noun(l.Kind), number(l.All.Count), n.sumText(l.Statuses[recon.Completed], l.Currency),
			number(l.Statuses[recon.Completed].Count), number(l.Statuses[recon.InFlight].Count), number(l.Statuses[recon.EffectFailed].Count),
			number(l.Statuses[recon.Reversed].Count), number(l.Unowned.Count)})
	}
	p.table(2, append(rows, []string{"all", "", number(n.Totals.Effects), "", "", "", "", "", ""})...)
}

func (p *page) nightlyFees(n *Nightly) {
	if len(n.Fees) == 0 {
		return
	}
	p.blank()
	p.line("Fees of what was done")
	if fees := n.knownFees(); len(fees) > 0 {
		rows := [][]string{{"source", "kind", "known of", "fees", "not known of"}}
		for _, l := range fees {
			rows = append(rows, []string{string(l.Source), recon.Noun(l.Kind), number(l.Known.Count), feeText(n, l), number(l.NotKnown)})
		}
		p.table(2, rows...)
	}
	if s := n.feesNotKnown(); s != "" {
		p.text("  ", s)
	}
}

// feeText writes what is known of fees; nothing known is no 0.
func feeText(n *Nightly, l FeeLine) string {
	if l.Known.Count == 0 {
		return "not known"
	}
	return n.sumText(l.Known, &l.Currency)
}

func (p *page) nightlyClasses(n *Nightly) {
	for _, a := range n.Audits {
		p.blank()
		p.text("Audit of ", fmt.Sprintf("%s, %s to %s: %s, %s", a.Source, p.when(a.From), p.when(a.To),
			count(a.Operations, "operation"), count(a.Effects, "effect")))
		p.text("  operations  ", classesText(a.Classes.Operations))
		p.text("  effects     ", classesText(a.Classes.Effects))
	}
	switch {
	case n.Classes != nil && len(n.Audits) > 1:
		p.blank()
		p.line("All audits")
		p.classes(Comparison{OperationClasses: n.Classes.Operations, EffectClasses: n.Classes.Effects})
	case n.Classes == nil && len(n.Audits) > 0:
		p.text("", "The windows of these audits overlap, so their classes are not added: a sum would count twice.")
	}
}

// classesText lists classes that hold something, in a fixed order.
func classesText(classes map[string]int) string {
	var parts []string
	for _, k := range classOrder(classes) {
		if classes[k] > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", number(classes[k]), strings.ReplaceAll(k, "_", " ")))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func (p *page) nightlyOpen(n *Nightly) {
	if len(n.Open) == 0 {
		return
	}
	p.blank()
	p.line("Open operations by age")
	rows := [][]string{append([]string{"action", "state"}, "<15 min", "<1 h", "<4 h", "<24 h", "<3 d", "<7 d", "older", "all")}
	for _, l := range n.Open {
		row := []string{l.Action, recon.Noun(string(l.State))}
		for _, c := range l.Buckets {
			row = append(row, number(c))
		}
		rows = append(rows, append(row, number(l.Count)))
	}
	p.table(2, rows...)
}

func (p *page) nightlyFindings(n *Nightly) {
	p.blank()
	if len(n.Findings) == 0 {
		p.line("No findings.")
		return
	}
	p.text("", n.findingsText())
	for i, f := range n.Findings {
		if i == shownFindings {
			p.blank()
			p.line(fmt.Sprintf("and %s more; the JSON and the CSV have all", number(len(n.Findings)-i)))
			return
		}
		p.blank()
		p.nightlyFinding(n, i+1, f)
	}
}

func (p *page) nightlyFinding(n *Nightly, i int, f NightlyFinding) {
	head := fmt.Sprintf("%d. %s (%s)", i, f.Kind, f.Certainty)
	if f.Money != nil {
		head += ", " + f.Money.recon().Text(n.Exponents)
	}
	if !f.InRange {
		head += ", open from before"
	}
	p.text("", head+": "+f.Kind.Text())
	for _, o := range f.Ours {
		p.text("   ours    ", string(o.ID)+": "+o.text(n))
	}
	if len(f.Ours) == 0 {
		p.line("   ours    no operation")
	}
	for _, e := range f.Theirs {
		p.text("   theirs  ", e.ID+": "+e.text(n))
	}
	if len(f.Theirs) == 0 {
		p.line("   theirs  no effect")
	}
	for _, d := range f.Observed {
		if d.Ours != "" || len(f.Ours) > 0 {
			p.text("   differs ", fmt.Sprintf("%s: ours %s, theirs %s", recon.Noun(d.Field), orNone(d.Ours), orNone(d.Theirs)))
		}
	}
	p.text("   why     ", f.Reason)
	p.text("   state   ", f.stateText())
	p.text("   more    ", "reconciler findings show "+f.ID)
}

func (p *page) nightlyProof(n *Nightly) {
	p.blank()
	p.line("What this rests on")
	for _, l := range n.Policies {
		p.row("Policy", l.text())
	}
	p.row("Chains", n.chainsText())
	if n.Chains.Operations > 0 {
		p.row("Digest", n.Chains.Digest+" of their heads")
	}
	p.row("To check", "reconciler operations verify")
}

func (l NightlyPolicy) text() string {
	s := fmt.Sprintf("%s, version %d", l.Action, l.Version)
	if !l.Active {
		s += ", no longer in force"
	}
	return s + ": " + count(l.Operations, "operation") + " opened under it"
}

// NightlySummary says in a few lines what a report comes to and where it is.
func NightlySummary(w io.Writer, n *Nightly, path string) error {
	p := newPage(n.AsOf, n.zone())
	p.text(n.Window.Name+": ", n.verdict())
	if s := n.ending(); s != "" {
		p.text("", s)
	}
	p.gaps(n)
	p.text("", fmt.Sprintf("%s opened, %s made, %s", count(n.Totals.Operations, "operation"), count(n.Totals.Effects, "effect"), n.findingsText()))
	if err := p.writeTo(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, path) // whole, however long: it is there to be opened
	return err
}
