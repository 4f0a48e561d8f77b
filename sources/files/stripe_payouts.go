package files

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// payouts adds up what a report says was paid out together, a payout at a time: a file holds
// the rows of several. The payout itself takes out what the others brought, so that all of
// them come to 0.
type payouts struct{ sums map[payoutKey]*payoutSum }

type payoutKey struct{ account, payout, currency string }

type payoutSum struct {
	line    int   // of the payout itself; 0: it is not in the file
	paid    int64 // by the payout itself
	rest    int64 // of the other rows
	unclear bool  // a row could not be read, or the payout came back
}

func newPayouts() *payouts { return &payouts{map[payoutKey]*payoutSum{}} }

// addToPayout counts a row of whatever category, also one that tells of no effect: fees are
// part of what was paid out.
func (b *stripeBalance) addToPayout(rec *record, category string) {
	payout := rec.get(balPayout)
	itself := category == "payout" || category == "payout_reversal"
	if itself {
		payout = rec.get(balSource)
	}
	if payout == "" {
		return
	}
	currency := strings.ToUpper(rec.get(balCurrency))
	key := payoutKey{rec.get(balAccount), payout, currency}
	sum := b.payouts.sums[key]
	if sum == nil {
		sum = &payoutSum{}
		b.payouts.sums[payoutKey{strings.Clone(key.account), strings.Clone(key.payout), strings.Clone(key.currency)}] = sum
	}
	net, _, err := b.cell(rec, balNet, balCurrency, "net")
	switch {
	case err != nil || category == "payout_reversal":
		sum.unclear = true
	case itself:
		sum.line, sum.paid = rec.line, sum.paid-net
	default:
		sum.rest += net
	}
}

// tell names the payouts that are not the sum of their rows. That is no fault of the file: a
// report of a month begins in the middle of a payout.
func (p *payouts) tell(note noter) {
	keys := slices.SortedFunc(maps.Keys(p.sums), func(a, b payoutKey) int {
		return cmp.Or(cmp.Compare(p.sums[a].line, p.sums[b].line), strings.Compare(a.payout, b.payout))
	})
	for _, k := range keys {
		if s := p.sums[k]; s.line > 0 && !s.unclear && s.paid != s.rest {
			note(s.line, "payout %s is %s, and the rows of it that are here come to %s: the file does not hold all of them",
				shown(k.payout), recon.Money{Minor: s.paid, Currency: k.currency}.Text(nil), recon.Money{Minor: s.rest, Currency: k.currency}.Text(nil))
		}
	}
}
