package large

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// befell counts what befell a world, beside what was counted when it happened: the fates of
// its intents, and of what went wrong that which only the providers' side knows.
func (w *World) befell(n *Numbers) {
	for _, i := range w.plan.intents {
		n.Fates[i.fate.name]++
		w.befellIntent(n, i)
	}
	for _, d := range w.book.all() {
		w.befellDeed(n, d)
	}
	w.befellEvents(n)
	for _, c := range w.at.cards.Calls() {
		if c.Faulted && c.Method == http.MethodGet {
			n.Faults["question to the card provider that it did not answer"]++
		}
	}
}

func (w *World) befellIntent(n *Numbers, i intent) {
	done := func(of intent) bool { return len(w.book.by(of.id)) > 0 }
	tries := i.fate.tries
	switch {
	case len(tries) > 0 && tries[0].crash == diesForever:
		n.Faults["operation that nobody ever sent"]++
	case i.twinOf >= 0 && done(i):
		n.Faults["intent done under two keys"]++
	case i.threeOf >= 0 && done(i):
		n.Faults["one of three that fail for one target"]++
	}
	if i.onCards() && len(tries) > 0 && tries[len(tries)-1].after >= day {
		n.Faults["agent came back when its key had expired"]++
	}
	if i.fate.unseen > 0 {
		n.Faults["refund on the charge that nobody can see"]++
	}
}

// endings are what became of effects that did not last as they were made.
var endings = map[life]string{
	pendsThenOK: "effect pended for hours", pendsThenBad: "effect pended, then failed", failsLate: "effect failed days later",
	waitsThenCancelled: "effect waited for the customer, then was cancelled",
}

func (w *World) befellDeed(n *Numbers, d *deed) {
	i, ours := w.intents[d.op]
	switch {
	case !ours:
		n.Faults["effect made by hand without reference"]++
		return
	case d.hand:
		n.Faults["effect made once more by hand"]++
	case d.minor != i.money.Minor:
		n.Faults["effect of another amount"]++
	}
	if turns := len(d.turns); turns > 0 && !d.turns[turns-1].at.After(w.clock.Now()) {
		n.Faults[endings[i.fate.life]]++
	}
}

// befellEvents counts what befell the card provider's events on their way.
func (w *World) befellEvents(n *Numbers) {
	made, posted := map[string]time.Time{}, map[string]bool{}
	for _, e := range w.at.cards.Events() {
		if w.mailed(e.Account, e.Mode, e.Type) && !e.Created.Before(w.cardsAt(epoch)) {
			made[e.ID] = e.Created
		}
	}
	for _, d := range w.at.cards.Deliveries() {
		if d.Forged {
			continue // that is counted where it is refused
		}
		posted[d.Event] = true
		if d.Early {
			n.Faults["event posted before its request was answered"]++
		}
		switch {
		case d.Repeat:
			n.Faults["event posted twice"]++
		case !d.Taken():
			n.Faults["event posted in vain"]++
		case d.Attempt == 1 && d.At.Sub(made[d.Event]) > w.plan.nature.cadence+time.Minute:
			n.Faults["event posted late"]++
		}
	}
	until := w.cardsAt(w.over().Add(-day)) // later ones may still have been on their way
	for id, at := range made {
		if !posted[id] && at.Before(until) {
			n.Faults["event never posted"]++
		}
	}
}

// mailed reports whether an endpoint of the product takes such events.
func (w *World) mailed(of, in, kind string) bool {
	refund, dispute := strings.HasPrefix(kind, "refund."), strings.HasPrefix(kind, "charge.dispute.")
	return in == mode && (of == toldAccount && refund || w.cards.Sheet().Has(of, in) && (refund || dispute))
}

// cardsAt is what the card provider's clock says at a time of ours.
func (w *World) cardsAt(at time.Time) time.Time { return at.Add(w.plan.nature.skew) }

// well are the fates of intents that nothing befell.
func well(fate string) bool { return fate == plain.name || fate == recordedRight.name }

// demanded counts the findings that the truth demands, by kind.
func demanded(must map[about]string) map[recon.FindingKind]int {
	kinds := map[recon.FindingKind]int{}
	for key := range must {
		kinds[key.kind]++
	}
	return kinds
}
