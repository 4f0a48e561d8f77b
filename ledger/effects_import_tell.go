package ledger

import (
	"strconv"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// verdict is what a row of a file does to an effect that is stored.
type verdict uint8

const (
	saysNothingNew verdict = iota
	changesIt
	contradictsIt // the same status, and another value of what must not differ
)

// tell puts together what is held of an effect and what a row of a file says of it. A
// file is written from a few columns: what a row leaves out is not told, and what only it
// tells is added. Beyond that the law of merging holds: a row replaces only where it moves
// the status forward, an earlier stage is history, and what else differs is kept beside.
// readable says that somebody can be asked what is right. field names what contradicts.
func tell(old held, row recon.Effect, readable bool) (m merged, v verdict, field string) {
	row = normal(row)
	if old.effect.Kind != row.Kind {
		return merged{effect: old.effect}, contradictsIt, "kind"
	}
	row.Source = old.effect.Source
	switch step := further(row.Status, old.effect.Status); {
	case step < 0: // an earlier stage
		return added(old.effect, filledFrom(old.effect, row))
	case step == 0:
		if field := contradiction(old.effect, row); field != "" {
			m, _, _ := beside(old, filledFrom(row, old.effect), readable)
			return m, contradictsIt, field
		}
		filled := filledFrom(old.effect, row)
		if filled.UpdatedAt.Before(row.UpdatedAt) {
			filled.UpdatedAt = row.UpdatedAt
		}
		if m, v, _ := added(old.effect, filled); v == changesIt {
			return m, v, ""
		}
		return beside(old, filledFrom(row, old.effect), readable)
	}
	now := filledFrom(row, old.effect)
	now.Owner, now.NeedsRead = old.effect.Owner, old.effect.NeedsRead
	m = merged{effect: now, write: true, replace: true}
	m.before, m.after = differences(old.effect, now)
	return m, changesIt, ""
}

// further compares how far two statuses are. Of failed and reversed, reversed says more.
func further(a, b recon.EffectStatus) int {
	if r := a.Rank() - b.Rank(); r != 0 {
		return r
	}
	switch {
	case a == b:
		return 0
	case a == recon.Reversed:
		return 1
	}
	return -1
}

// added is the effect with what was not known of it.
func added(old, now recon.Effect) (merged, verdict, string) {
	if equalEffects(old, now) {
		return merged{effect: old}, saysNothingNew, ""
	}
	now.Owner, now.NeedsRead = old.Owner, old.NeedsRead
	return merged{effect: now, write: true, replace: true}, changesIt, ""
}

// beside keeps what a row says otherwise without taking it over. Where nobody can be
// asked, asking is not planned.
func beside(old held, now recon.Effect, readable bool) (merged, verdict, string) {
	m := merge(old, seen{effect: now})
	if m.replace || !readable {
		m.effect, m.write, m.replace = old.effect, false, false
	}
	return m, saysNothingNew, ""
}

// contradiction names the field in which two tellings of the same stage cannot both be
// right.
func contradiction(a, b recon.Effect) string {
	amount := func(m recon.Money) string {
		if m.IsZero() {
			return ""
		}
		return strconv.FormatInt(m.Minor, 10)
	}
	for _, f := range []struct{ name, a, b string }{
		{"amount", amount(a.Money), amount(b.Money)}, {"currency", a.Money.Currency, b.Money.Currency},
		{"reference", a.Reference, b.Reference}, {"key", a.Key, b.Key}, {"target", a.Target, b.Target},
		{"natural_reference", a.NaturalReference, b.NaturalReference},
	} {
		if f.a != "" && f.b != "" && f.a != f.b {
			return f.name
		}
	}
	if a.Parent != "" && b.Parent != "" && !a.Under(b.Parent) && !b.Under(a.Parent) {
		return "parent"
	}
	return ""
}

// filledFrom gives e with what it does not tell taken from other. An effect began at the
// earliest time that anybody tells.
func filledFrom(e, other recon.Effect) recon.Effect {
	text := func(to *string, from string) {
		if *to == "" {
			*to = from
		}
	}
	number := func(to **int64, from *int64) {
		if *to == nil {
			*to = from
		}
	}
	if e.Parent == "" || e.Parent != other.Parent && other.Under(e.Parent) || e.Parent == other.Parent && len(e.OtherParents) == 0 {
		e.Parent, e.OtherParents = other.Parent, other.OtherParents
	}
	if !e.ShowsAmount() {
		e.Money = other.Money
	}
	if e.Settlement.IsZero() {
		e.Settlement = other.Settlement
	}
	text(&e.Target, other.Target)
	text(&e.Reference, other.Reference)
	text(&e.NaturalReference, other.NaturalReference)
	text(&e.Key, other.Key)
	text(&e.CreatedBy, other.CreatedBy)
	text(&e.FailureReason, other.FailureReason)
	text(&e.CausedBy, other.CausedBy)
	number(&e.Fee, other.Fee)
	number(&e.Net, other.Net)
	number(&e.ParentTotal, other.ParentTotal)
	if len(e.Metadata) == 0 {
		e.Metadata = other.Metadata
	}
	if other.CreatedAt.Before(e.CreatedAt) {
		e.CreatedAt = other.CreatedAt
	}
	if e.UpdatedAt.IsZero() {
		e.UpdatedAt = other.UpdatedAt
	}
	return e
}
