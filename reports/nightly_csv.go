package reports

import (
	"io"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// NightlyTotalsCSV writes the lines of operations, effects and fees. Each thing stands in
// one row of its part; amounts are in minor units, and empty where there is none or it is
// not known.
func NightlyTotalsCSV(w io.Writer, n *Nightly) error {
	c, err := NewCSV(w, "part", "source", "action_or_kind", "currency", "state", "count", "amount_minor", "amount")
	if err != nil {
		return err
	}
	row := func(part string, source recon.SourceName, what string, currency *string, state string, s Sum) error {
		if s.Count == 0 {
			return nil
		}
		name, minor, text := "", any(""), decimalText("")
		if currency != nil {
			name = *currency
		}
		if s.Amount != nil {
			minor, text = *s.Amount, decimalText(strings.TrimSuffix(strings.ReplaceAll(n.sumText(s, currency), ",", ""), " "+name))
		}
		return c.Row(part, string(source), what, name, state, s.Count, minor, text)
	}
	for _, l := range n.Operations {
		for _, state := range recon.States {
			if err := row("operations", l.Source, l.Action, l.Currency, string(state), l.States[state]); err != nil {
				return err
			}
		}
	}
	for _, l := range n.Effects {
		for _, status := range statuses {
			if err := row("effects", l.Source, l.Kind, l.Currency, string(status), l.Statuses[status]); err != nil {
				return err
			}
		}
	}
	for _, l := range n.Fees {
		if err := row("fees", l.Source, l.Kind, &l.Currency, "known", l.Known); err != nil {
			return err
		}
		if err := row("fees", l.Source, l.Kind, &l.Currency, "not_known", Sum{Count: l.NotKnown}); err != nil {
			return err
		}
	}
	return c.Close()
}

// NightlyFindingsCSV writes one row a finding. Several ids in a cell are separated by
// spaces.
func NightlyFindingsCSV(w io.Writer, n *Nightly) error {
	c, err := NewCSV(w, "finding_id", "kind", "certainty", "state", "source", "in_range", "opened_at", "amount_minor", "currency",
		"operation_ids", "effect_ids", "differs", "reason", "assignee")
	if err != nil {
		return err
	}
	for _, f := range n.Findings {
		amount, currency, assignee := any(""), "", ""
		if f.Money != nil {
			amount, currency = f.Money.Amount, f.Money.Currency
		}
		if f.Assignee != nil {
			assignee = *f.Assignee
		}
		inRange := "yes"
		if !f.InRange {
			inRange = "no"
		}
		var ids, differs []string
		for _, id := range f.Operations {
			ids = append(ids, string(id))
		}
		for _, d := range f.Observed {
			differs = append(differs, d.Field+": "+orNone(d.Ours)+" / "+orNone(d.Theirs))
		}
		if err := c.Row(f.ID, string(f.Kind), string(f.Certainty), string(f.State), string(f.Source), inRange,
			f.OpenedAt.In(n.zone()).Format(time.RFC3339), amount, currency, strings.Join(ids, " "), strings.Join(f.EffectIDs, " "),
			strings.Join(differs, "; "), f.Reason, assignee); err != nil {
			return err
		}
	}
	return c.Close()
}
