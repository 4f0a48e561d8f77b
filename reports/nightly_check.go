package reports

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// UnequalError says that totals do not add up. Such a report is not written.
type UnequalError struct{ What string }

func (e *UnequalError) Error() string {
	return "the totals of the report do not add up: " + e.What + "; nothing was written. Please report this with the output of `reconciler doctor`"
}

// Check demands that everything is counted exactly once, *UnequalError.
func (n *Nightly) Check() error {
	for _, part := range []func() error{n.checkOperations, n.checkEffects, n.checkAudits, n.checkOpen} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func unequal(what string, got, want any) error {
	return &UnequalError{fmt.Sprintf("%s: %v and %v", what, got, want)}
}

func (n *Nightly) checkOperations() error {
	all := 0
	for _, l := range n.Operations {
		all += l.All.Count
		name := fmt.Sprintf("%s of %s", l.Action, l.Source)
		if err := sums(name, l.All, l.Currency != nil, values(recon.States, l.States)); err != nil {
			return err
		}
	}
	if all != n.Totals.Operations {
		return unequal("operations by line, and counted at once", all, n.Totals.Operations)
	}
	return nil
}

func (n *Nightly) checkEffects() error {
	all := 0
	for _, l := range n.Effects {
		all += l.All.Count
		name := fmt.Sprintf("%s of %s", l.Kind, l.Source)
		for _, parts := range [][]Sum{values(statuses, l.Statuses), {l.Owned, l.Unowned}} {
			if err := sums(name, l.All, l.Currency != nil, parts); err != nil {
				return err
			}
		}
	}
	if all != n.Totals.Effects {
		return unequal("effects by line, and counted at once", all, n.Totals.Effects)
	}
	return nil
}

// statuses are those of effects, in the order of a life.
var statuses = []recon.EffectStatus{recon.InFlight, recon.Completed, recon.EffectFailed, recon.Reversed}

func values[K comparable](order []K, of map[K]Sum) []Sum {
	list := make([]Sum, 0, len(order))
	for _, k := range order {
		list = append(list, of[k])
	}
	return list
}

// sums demands that parts come to the whole, in number and in money.
func sums(name string, whole Sum, money bool, parts []Sum) error {
	count, amount := 0, int64(0)
	for _, p := range parts {
		count += p.Count
		if p.Amount != nil {
			amount += *p.Amount
		}
	}
	if count != whole.Count {
		return unequal(name+", parts and whole", count, whole.Count)
	}
	if money != (whole.Amount != nil) {
		return unequal(name+", has a currency, and a sum", money, whole.Amount != nil)
	}
	if money && amount != *whole.Amount {
		return unequal(name+", amounts of parts and of the whole", amount, *whole.Amount)
	}
	return nil
}

func (n *Nightly) checkAudits() error {
	operations, effects := 0, 0
	for _, a := range n.Audits {
		if got := total(a.Classes.Operations); got != a.Operations {
			return unequal("operations of the audit of "+string(a.Source)+" by class, and counted", got, a.Operations)
		}
		if got := total(a.Classes.Effects); got != a.Effects {
			return unequal("effects of the audit of "+string(a.Source)+" by class, and counted", got, a.Effects)
		}
		operations, effects = operations+a.Operations, effects+a.Effects
	}
	if c := n.Classes; c != nil && (total(c.Operations) != operations || total(c.Effects) != effects) {
		return unequal("classes of all audits, and their sum", total(c.Operations)+total(c.Effects), operations+effects)
	}
	return nil
}

func total(classes map[string]int) int {
	all := 0
	for _, n := range classes {
		all += n
	}
	return all
}

func (n *Nightly) checkOpen() error {
	for _, l := range n.Open {
		all := 0
		for _, c := range l.Buckets {
			all += c
		}
		if all != l.Count {
			return unequal(fmt.Sprintf("open operations of %s by age, and all", l.Action), all, l.Count)
		}
	}
	return nil
}
