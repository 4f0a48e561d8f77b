package sweep

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// told is an effect as one line tells it.
type told struct {
	effect *recon.Effect
	line   int32
}

// agree refuses lines of one effect that contradict each other: the same status, and
// another amount, currency or reference. It looks at the lines as they stand, so that
// their order does not matter.
func agree(name string, lines []told) error {
	type claim struct {
		status recon.EffectStatus
		field  string
	}
	type said struct {
		value string
		line  int32
	}
	first := map[claim]said{}
	for _, l := range lines {
		e := l.effect
		values := [...]struct{ field, value string }{{"amount", ""}, {"currency", e.Money.Currency}, {"reference", e.Reference}}
		if !e.Money.IsZero() {
			values[0].value = strconv.FormatInt(e.Money.Minor, 10)
		}
		for _, v := range values {
			if v.value == "" {
				continue
			}
			c := claim{e.Status, v.field}
			if before, ok := first[c]; !ok {
				first[c] = said{v.value, l.line}
			} else if before.value != v.value {
				return fmt.Errorf("%s line %d: effect %s stands on line %d already, with the same status and another %s; remove the wrong line",
					name, l.line, e.ID, before.line, v.field)
			}
		}
	}
	return nil
}

// mergeLines joins the lines of one effect. The furthest status wins, then the latest
// update; what only a later one shows is kept. The result does not depend on the order
// of the lines.
func mergeLines(lines []told) *recon.Effect {
	slices.SortStableFunc(lines, func(x, y told) int { return compareLines(x.effect, y.effect) })
	merged := *lines[0].effect
	fill := func(to *string, from string) {
		if *to == "" {
			*to = from
		}
	}
	for _, l := range lines[1:] {
		e := l.effect
		if !merged.ShowsAmount() {
			merged.Money = e.Money
		}
		fill(&merged.Reference, e.Reference)
		fill(&merged.NaturalReference, e.NaturalReference)
		fill(&merged.Key, e.Key)
		fill(&merged.Parent, e.Parent)
		fill(&merged.Target, e.Target)
		fill(&merged.CausedBy, e.CausedBy)
		fill(&merged.CreatedBy, e.CreatedBy)
		fill(&merged.FailureReason, e.FailureReason)
		if len(merged.OtherParents) == 0 {
			merged.OtherParents = e.OtherParents
		}
		if e.CreatedAt.Before(merged.CreatedAt) {
			merged.CreatedAt = e.CreatedAt
		}
	}
	return &merged
}

// compareLines orders lines of one effect by what they are worth, and then by what
// they say, so that equal ones only are left in the order of the file.
func compareLines(a, b *recon.Effect) int {
	switch {
	case furthest(a.Status, b.Status):
		return -1
	case furthest(b.Status, a.Status):
		return 1
	}
	return cmp.Or(
		b.UpdatedAt.Compare(a.UpdatedAt), a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Kind, b.Kind),
		strings.Compare(string(a.Source), string(b.Source)), strings.Compare(a.Parent, b.Parent),
		slices.Compare(a.OtherParents, b.OtherParents), strings.Compare(a.Target, b.Target),
		strings.Compare(a.NaturalReference, b.NaturalReference), strings.Compare(a.Key, b.Key),
		strings.Compare(a.CausedBy, b.CausedBy), strings.Compare(a.CreatedBy, b.CreatedBy),
		strings.Compare(a.FailureReason, b.FailureReason), strings.Compare(a.Reference, b.Reference),
		cmp.Compare(a.Money.Minor, b.Money.Minor), strings.Compare(a.Money.Currency, b.Money.Currency),
	)
}

// furthest reports whether status a is further in an effect's life than b. Of failed
// and reversed, reversed says more: it happened before it was undone.
func furthest(a, b recon.EffectStatus) bool {
	if a.Rank() != b.Rank() {
		return a.Rank() > b.Rank()
	}
	return a == recon.Reversed && b == recon.EffectFailed
}
