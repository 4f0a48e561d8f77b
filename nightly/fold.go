package nightly

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
)

func sum(currency string) reports.Sum {
	if currency == "" {
		return reports.Sum{}
	}
	return reports.Sum{Amount: new(int64)}
}

func add(to reports.Sum, count int, minor int64) reports.Sum {
	to.Count += count
	if to.Amount != nil {
		amount := *to.Amount + minor
		to.Amount = &amount
	}
	return to
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// operations folds the states of a source, action and currency into one line.
func (m *making) operations() []reports.OperationLine {
	lines := []reports.OperationLine{}
	for _, s := range m.Operations {
		last := len(lines) - 1
		if last < 0 || lines[last].Source != s.Source || lines[last].Action != s.Action || deref(lines[last].Currency) != s.Currency {
			line := reports.OperationLine{Source: s.Source, Action: s.Action, Currency: orNull(s.Currency), All: sum(s.Currency), States: map[recon.State]reports.Sum{}}
			for _, state := range recon.States {
				line.States[state] = sum(s.Currency)
			}
			lines, last = append(lines, line), last+1
		}
		l := &lines[last]
		l.All = add(l.All, s.Count, s.Minor)
		l.States[s.State] = add(l.States[s.State], s.Count, s.Minor)
	}
	return lines
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// effects folds statuses and owners of a source, kind and currency into one line.
func (m *making) effects() []reports.EffectLine {
	lines := []reports.EffectLine{}
	for _, s := range m.Effects {
		last := len(lines) - 1
		if last < 0 || lines[last].Source != s.Source || lines[last].Kind != s.Kind || deref(lines[last].Currency) != s.Currency {
			line := reports.EffectLine{Source: s.Source, Kind: s.Kind, Currency: orNull(s.Currency), All: sum(s.Currency),
				Owned: sum(s.Currency), Unowned: sum(s.Currency), Statuses: map[recon.EffectStatus]reports.Sum{}}
			for _, status := range []recon.EffectStatus{recon.InFlight, recon.Completed, recon.EffectFailed, recon.Reversed} {
				line.Statuses[status] = sum(s.Currency)
			}
			lines, last = append(lines, line), last+1
		}
		l := &lines[last]
		l.All = add(l.All, s.Count, s.Minor)
		l.Statuses[s.Status] = add(l.Statuses[s.Status], s.Count, s.Minor)
		owner := &l.Unowned
		if s.Owned {
			owner = &l.Owned
		}
		*owner = add(*owner, s.Count, s.Minor)
	}
	return lines
}

// fees adds what is known of the fees of effects that were done. What is not known is
// counted, and is never 0.
func (m *making) fees() []reports.FeeLine {
	lines := []reports.FeeLine{}
	for _, s := range m.Effects {
		if s.FeeCurrency == "" || s.Status != recon.Completed && s.Status != recon.Reversed {
			continue
		}
		at := slices.IndexFunc(lines, func(l reports.FeeLine) bool {
			return l.Source == s.Source && l.Kind == s.Kind && l.Currency == s.FeeCurrency
		})
		if at < 0 {
			at = len(lines)
			lines = append(lines, reports.FeeLine{Source: s.Source, Kind: s.Kind, Currency: s.FeeCurrency, Known: sum(s.FeeCurrency)})
		}
		lines[at].Known = add(lines[at].Known, s.Fees, s.Fee)
		lines[at].NotKnown += s.Count - s.Fees
	}
	return lines
}

// open folds ages of a source, action and state into one line.
func (m *making) open() []reports.OpenLine {
	lines := []reports.OpenLine{}
	for _, a := range m.Open {
		last := len(lines) - 1
		if last < 0 || lines[last].Source != a.Source || lines[last].Action != a.Action || lines[last].State != a.State {
			lines = append(lines, reports.OpenLine{Source: a.Source, Action: a.Action, State: a.State, Buckets: make([]int, len(reports.AgeNames))})
			last++
		}
		lines[last].Buckets[a.Bucket] += a.Count
		lines[last].Count += a.Count
	}
	return lines
}

func (m *making) truth() reports.NightlyTruth {
	c := m.Closings
	t := reports.NightlyTruth{Closed: c.Count, ByPeople: c.ByPeople}
	if c.Count > 0 {
		seconds := func(d time.Duration) *float64 { s := d.Seconds(); return &s }
		t.Median, t.P99, t.Longest = seconds(c.Median), seconds(c.P99), seconds(c.Most)
	}
	return t
}

// policies lists those in force, and older ones that operations of the range were opened
// under.
func (m *making) policies() []reports.NightlyPolicy {
	type key struct {
		action  string
		version int
	}
	lines := map[key]*reports.NightlyPolicy{}
	line := func(k key) *reports.NightlyPolicy {
		if lines[k] == nil {
			lines[k] = &reports.NightlyPolicy{Action: k.action, Version: k.version}
		}
		return lines[k]
	}
	for _, p := range m.Policies {
		line(key{p.Action, p.Version}).Active = true
	}
	for _, s := range m.Operations {
		line(key{s.Action, s.Policy}).Operations += s.Count
	}
	list := make([]reports.NightlyPolicy, 0, len(lines))
	for _, p := range lines {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b reports.NightlyPolicy) int {
		return cmp.Or(cmp.Compare(a.Action, b.Action), cmp.Compare(a.Version, b.Version))
	})
	return list
}
