package matchers

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// differences compares everything that both sides show. What only one side shows is
// not compared: an export without parents contradicts nobody.
func differences(o *recon.Operation, e *recon.Effect, t *Terms) []recon.Difference {
	var list []recon.Difference
	differ := func(field, ours, theirs string) {
		list = append(list, recon.Difference{Field: field, Ours: ours, Theirs: theirs})
	}
	if !o.Money.IsZero() && e.ShowsAmount() {
		if o.Money.Currency != e.Money.Currency {
			differ("currency", o.Money.Currency, e.Money.Currency)
		}
		if apart := o.Money.Minor - e.Money.Minor; apart > t.Tolerance || -apart > t.Tolerance {
			differ("amount", o.Money.Text(t.Exponents), e.Money.Text(t.Exponents))
		}
	}
	if o.Parent != "" && e.Parent != "" && !e.Under(o.Parent) {
		differ("parent", o.Parent, strings.Join(append([]string{e.Parent}, e.OtherParents...), ", "))
	}
	if o.Account != "" && e.Account != "" && o.Account != e.Account {
		differ("account", o.Account, e.Account)
	}
	if o.Target != "" && e.Target != "" && o.Target != e.Target && norm.NFC.String(o.Target) != norm.NFC.String(e.Target) {
		differ("target", o.Target, e.Target)
	}
	if o.Key != "" && e.Key != "" && o.Key != e.Key {
		differ("key", o.Key, e.Key)
	}
	if r := strings.TrimSpace(e.Reference); r != "" && r != string(o.ID) && r != o.Group && !looksLike(r, string(o.ID)) {
		differ("reference", string(o.ID), r)
	}
	return list
}
