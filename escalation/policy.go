package escalation

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Policy says who is told of what, and when.
type Policy struct {
	// Everybody are the destinations that are told at once of what no ladder is for.
	Everybody []string
	// Ladders by what they are for: "ACTION/KIND", an action, a kind of finding, or
	// "default". The first of these that is there holds. An empty one tells nobody.
	Ladders map[string][]Step
	// Quiet are the hours in which only the last step of a ladder and the one before a
	// key expires are told; what came due in them is told at their end.
	Quiet []Quiet
	// FoldAt is how many findings of one kind at one source, opened within FoldWithin of
	// each other, are told as one incident; 0: DefaultFoldAt, DefaultFoldWithin.
	FoldAt     int
	FoldWithin time.Duration
	// Digest is when and where the state of all findings is told.
	Digest Digest
}

// Defaults of folding: fewer messages than that are read one by one.
const (
	DefaultFoldAt     = 10
	DefaultFoldWithin = 10 * time.Minute
)

// Step is one rung of a ladder.
type Step struct {
	// After is counted from when the operation came into question, else from when the
	// finding was opened. A step is never sooner after the first one than the ladder says.
	After time.Duration
	// BeforeKeyExpiry, above 0, counts back from the moment after which a repeat under the
	// same key is no longer safe. Such a step is for findings that leave the choice.
	BeforeKeyExpiry time.Duration
	To              string
	Mention         string // whom it calls by name, as the destination knows it
	// Above are amounts in minor units by currency; a finding without more than one of
	// them passes the step over. Nil: every finding.
	Above map[string]int64
}

// Name identifies the step for a finding. It says what the step is, not where it
// stands, so that a ladder that is changed tells nothing twice.
func (s Step) Name() string {
	if s.BeforeKeyExpiry > 0 {
		return recon.Duration(s.BeforeKeyExpiry).Text() + " before the key expires"
	}
	return "after " + recon.Duration(s.After).Text()
}

// concerns reports whether the step is for so much money.
func (s Step) concerns(money []recon.Money) bool {
	return s.Above == nil || slices.ContainsFunc(money, func(m recon.Money) bool {
		limit, ok := s.Above[m.Currency]
		return ok && m.Minor > limit
	})
}

// ladder gives the steps for findings of a kind on an action.
func (p Policy) ladder(action string, kind recon.FindingKind) []Step {
	for _, name := range []string{action + "/" + string(kind), action, string(kind), "default"} {
		if steps, ok := p.Ladders[name]; ok {
			return steps
		}
	}
	steps := make([]Step, 0, len(p.Everybody))
	for _, d := range p.Everybody {
		steps = append(steps, Step{To: d})
	}
	return steps
}

func (p Policy) foldAt() int { return cmp.Or(p.FoldAt, DefaultFoldAt) }

func (p Policy) foldWithin() time.Duration { return cmp.Or(p.FoldWithin, DefaultFoldWithin) }

// Quiet is a span of the day in a zone. From after To means over midnight.
type Quiet struct {
	Days     []time.Weekday // on which it begins; none: every day
	From, To time.Duration  // since midnight, as the wall clock shows it
	Zone     *time.Location // nil: UTC
}

// until gives the end of the quiet hours that t lies in, and false when it lies in none.
func (q Quiet) until(t time.Time) (time.Time, bool) {
	local := t.In(zoneOr(q.Zone))
	for _, back := range []int{0, 1} { // those that began today, and those of yesterday that go over midnight
		day := time.Date(local.Year(), local.Month(), local.Day()-back, 0, 0, 0, 0, local.Location())
		if len(q.Days) > 0 && !slices.Contains(q.Days, day.Weekday()) {
			continue
		}
		to := q.To
		if to <= q.From {
			to += 24 * time.Hour
		}
		begin, end := wall(day, q.From), wall(day, to)
		if !t.Before(begin) && t.Before(end) {
			return end, true
		}
	}
	return time.Time{}, false
}

// wall is an hour of a day as the wall clock shows it, also on the day on which the
// clock is changed.
func wall(day time.Time, since time.Duration) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), 0, int(since/time.Minute), 0, 0, day.Location())
}

func zoneOr(z *time.Location) *time.Location {
	if z == nil {
		return time.UTC
	}
	return z
}

// loud moves a time out of the quiet hours, also where one span ends in another.
func (p Policy) loud(t time.Time) time.Time {
	for range 8 { // a week of spans that touch
		moved := false
		for _, q := range p.Quiet {
			if end, ok := q.until(t); ok {
				t, moved = end, true
			}
		}
		if !moved {
			break
		}
	}
	return t
}

// Digest is when the state of all findings is told, and to whom.
type Digest struct {
	// Last gives the newest time at or before one at which a digest was due; nil: never.
	Last func(time.Time) time.Time
	To   []string
	Zone *time.Location // of the day that names it; nil: UTC
}

// digestWithin is how late a digest may be told. One that was missed by more has
// nothing new to say.
const digestWithin = 12 * time.Hour

// due gives the day of a digest that is to be told now; empty: none is.
func (d Digest) due(now time.Time) string {
	if d.Last == nil || len(d.To) == 0 {
		return ""
	}
	last := d.Last(now)
	if last.IsZero() || now.Sub(last) > digestWithin {
		return ""
	}
	return last.In(zoneOr(d.Zone)).Format(time.DateOnly)
}
