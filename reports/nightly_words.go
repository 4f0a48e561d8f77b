package reports

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// The words of this file stand in the text and in the HTML of a report alike.

// verdict says in one sentence what the report comes to.
func (n *Nightly) verdict() string {
	switch n.Standing() {
	case StandFindings:
		s := count(n.openFindings(), "finding") + " waited for a person when the ledger was read."
		if len(n.Audits) == 0 || len(n.NotAudited) > 0 {
			s += " Not all of the range was audited."
		} else if len(n.Unseen) > 0 {
			s += " Not all of the range could be seen."
		}
		return s
	case StandNotAudited:
		if len(n.Audits) == 0 {
			return "No audit has looked into this range: what the providers hold may differ from all that follows. Run `reconciler audit`."
		}
		return "Parts of this range were not audited: what the providers hold there may differ from what follows."
	case StandUnseen:
		return "Parts of this range could not be seen: nothing is known of them, good or bad."
	case StandNotEnded:
		return "The range has not ended: there is more to come."
	}
	return "All that was seen is accounted for: no finding is open."
}

// ending says that there is more to come.
func (n *Nightly) ending() string {
	if n.Ended {
		return ""
	}
	return "The range had not ended when the ledger was read at " + n.when(n.AsOf) + ": these are not its final numbers."
}

// hours says how long a range is where that is not what one expects of days.
func (n *Nightly) hours() string { return fmt.Sprintf("%g hours", n.Window.Hours) }

// sumText writes an amount, or nothing for things without one.
func (n *Nightly) sumText(s Sum, currency *string) string {
	if s.Amount == nil || currency == nil {
		return "–"
	}
	return recon.Money{Minor: *s.Amount, Currency: *currency}.SumText(n.Exponents)
}

// gapText tells one gap.
func (n *Nightly) gapText(g NightlyGap) string {
	if g.To == nil {
		return fmt.Sprintf("%s, since %s: %s", g.Source, n.when(g.From), g.Why)
	}
	return fmt.Sprintf("%s, %s to %s: %s", g.Source, n.when(g.From), n.when(*g.To), g.Why)
}

func secondsText(s *float64) string {
	if s == nil {
		return "–"
	}
	return span(time.Duration(*s * float64(time.Second)))
}

// truthText says how long doubts lasted.
func (n *Nightly) truthText() string {
	t := n.Truth
	if t.Closed == 0 {
		return "no operation in doubt was closed in this range"
	}
	s := fmt.Sprintf("%s closed that were in doubt: half within %s, 99 %% within %s, the longest after %s",
		count(t.Closed, "operation"), secondsText(t.Median), secondsText(t.P99), secondsText(t.Longest))
	if t.ByPeople > 0 {
		s += fmt.Sprintf("; %s of them by people", number(t.ByPeople))
	}
	return s
}

func (s OurSide) text(n *Nightly) string {
	at := ""
	if s.Parent != "" {
		at = " under " + s.Parent
	}
	return fmt.Sprintf("%s of %s for %s%s, %s, opened %s", s.Action, s.Money.recon().Text(n.Exponents), orNone(s.Target), at, s.State,
		n.when(s.CreatedAt))
}

func (s TheirSide) text(n *Nightly) string {
	at := ""
	if s.Parent != "" {
		at = " under " + s.Parent
	}
	return fmt.Sprintf("%s of %s%s, %s, made %s at %s, account %s, mode %s", recon.Noun(s.Kind), s.Money.recon().Text(n.Exponents), at,
		s.Status.Text(), n.when(s.CreatedAt), s.Source, orNone(s.Account), orNone(s.Mode))
}

// stateText says how a finding stood.
func (f NightlyFinding) stateText() string {
	s := string(f.State)
	if f.Assignee != nil {
		s += ", assigned to " + *f.Assignee
	}
	if f.Ending != "" && !f.open() {
		s += ": " + f.Ending
	}
	return s
}

// classOrder puts classes with most in them first.
func classOrder(classes map[string]int) []string {
	return slices.SortedFunc(maps.Keys(classes), func(a, b string) int {
		return cmp.Or(cmp.Compare(classes[b], classes[a]), cmp.Compare(a, b))
	})
}

// when writes an instant of the document in its zone.
func (n *Nightly) when(t time.Time) string { return recon.TimeText(t, n.zone()) }

// knownFees are the lines with a fee.
func (n *Nightly) knownFees() []FeeLine {
	return slices.DeleteFunc(slices.Clone(n.Fees), func(l FeeLine) bool { return l.Known.Count == 0 })
}

// feesNotKnown says for how many effects no fee of their kind and currency is known at all.
func (n *Nightly) feesNotKnown() string {
	not := 0
	for _, l := range n.Fees {
		if l.Known.Count == 0 {
			not += l.NotKnown
		}
	}
	switch {
	case not == 0:
		return ""
	case len(n.knownFees()) == 0:
		return "No fees are known: the sources told none of " + count(not, "effect") + " that were done."
	}
	return "Of " + count(not, "more effect") + " that were done the sources told no fee."
}

func (n *Nightly) chainsText() string {
	if n.Chains.Operations == 0 {
		return "none changed in this range"
	}
	return count(n.Chains.Operations, "operation") + " changed in this range"
}

// findingsText counts findings: how many wait for a person, how many are over, of which
// kinds.
func (n *Nightly) findingsText() string {
	if len(n.Findings) == 0 {
		return "no findings"
	}
	kinds := map[recon.FindingKind]int{}
	for _, f := range n.Findings {
		kinds[f.Kind]++
	}
	s := count(len(n.Findings), "finding")
	if over := len(n.Findings) - n.openFindings(); over > 0 {
		s += ", " + number(over) + " of them over"
	}
	return s + ": " + tally(kinds)
}
