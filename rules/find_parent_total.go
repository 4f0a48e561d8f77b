package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// ParentTotals tells of parents whose own running total differs from what their live
// children add up to: a child that nobody sees, or one too many. Children are effects of
// one kind under one parent in one currency; effects without parent or amount, and parents
// of which no child shows the total, are left out.
//
// Each child shows the total as it was when the child was read, so an older one may be out
// of date: one that fits is enough.
func ParentTotals(effects []recon.Effect) []recon.Finding {
	type family struct {
		source                 recon.SourceName
		system, account, mode  string
		kind, parent, currency string
	}
	by := map[family][]recon.Effect{}
	for _, e := range effects {
		if e.Parent != "" && !e.Money.IsZero() {
			f := family{e.Source, e.System, e.Account, e.Mode, e.Kind, e.Parent, e.Money.Currency}
			by[f] = append(by[f], e)
		}
	}
	var findings []recon.Finding
	for _, children := range by {
		if f, differs := parentTotal(children); differs {
			findings = append(findings, f)
		}
	}
	slices.SortFunc(findings, func(a, b recon.Finding) int { return cmp.Compare(a.Fingerprint(), b.Fingerprint()) })
	return findings
}

// parentTotal judges the children of one parent.
func parentTotal(children []recon.Effect) (recon.Finding, bool) {
	slices.SortFunc(children, func(a, b recon.Effect) int {
		return cmp.Or(seenLast(a).Compare(seenLast(b)), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	var live []recon.Effect
	sum := recon.Money{Currency: children[0].Money.Currency}
	for _, e := range children {
		if e.Status.Live() {
			live = append(live, e)
			sum.Minor += e.Money.Minor
		}
	}
	var told *recon.Effect
	for i := range children {
		switch e := &children[i]; {
		case e.ParentTotal == nil:
		case *e.ParentTotal == sum.Minor:
			return recon.Finding{}, false
		default:
			told = e // the last one is the latest
		}
	}
	if told == nil {
		return recon.Finding{}, false
	}
	return parentTotalFinding(live, children, sum, recon.Money{Minor: *told.ParentTotal, Currency: sum.Currency}), true
}

func seenLast(e recon.Effect) time.Time {
	if e.UpdatedAt.After(e.CreatedAt) {
		return e.UpdatedAt
	}
	return e.CreatedAt
}

func parentTotalFinding(live, all []recon.Effect, sum, total recon.Money) recon.Finding {
	first := all[0]
	noun := recon.Noun(first.Kind)
	f := recon.Finding{
		Kind: recon.FindMismatch, Certainty: recon.Proof, Source: first.Source, Operations: []recon.OperationID{},
		Observed: []recon.Difference{{Field: "parent_total", Ours: sumText(sum), Theirs: sumText(total)}},
		Money:    recon.Money{Minor: max(sum.Minor-total.Minor, total.Minor-sum.Minor), Currency: sum.Currency},
	}
	var texts []string
	for _, e := range live {
		texts = append(texts, fmt.Sprintf("%s (%s, %s)", e.ID, e.Status.Text(), e.Money.Text(nil)))
	}
	for _, e := range all {
		f.Effects = append(f.Effects, e.Ref())
	}
	seen := "none of them is live"
	if len(texts) > 0 {
		seen = strings.Join(texts, ", ")
	}
	why := "one that is not seen"
	if sum.Minor > total.Minor {
		why = "one too many, or one that did not last"
	}
	f.Reason = fmt.Sprintf("%s says that every %s under it adds up to %s, and those that are seen add up to %s: %s. There is %s.",
		first.Parent, noun, sumText(total), sumText(sum), seen, why)
	return f
}

// sumText writes a sum, which may be 0.
func sumText(m recon.Money) string {
	if m.Minor == 0 {
		return "0 " + m.Currency
	}
	return m.Text(nil)
}
