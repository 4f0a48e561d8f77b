// Package turns keeps what a benchmark measures in which our work and the least that it can
// cost take turns, so that a machine that slows down slows both. It serves tests only.
package turns

import (
	"slices"
	"testing"
	"time"
)

// Rounds are the times of both sides, round by round. The zero value has none.
type Rounds struct{ ours, limit, ratios []float64 }

// Add adds a round.
func (r *Rounds) Add(ours, limit time.Duration) {
	r.ours, r.limit = append(r.ours, ours.Seconds()), append(r.limit, limit.Seconds())
	r.ratios = append(r.ratios, ours.Seconds()/limit.Seconds())
}

// Report reports the median of the rounds' ratios under the name of the unit, and the medians
// of both sides in seconds as s-ours and s-limit.
func (r *Rounds) Report(b *testing.B, ratio string) {
	b.Helper()
	b.ReportMetric(Median(r.ratios), ratio)
	b.ReportMetric(Median(r.ours), "s-ours")
	b.ReportMetric(Median(r.limit), "s-limit")
}

// Median gives the value in the middle, or what lies between the two that are; 0 of none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[half]
	}
	return (sorted[half-1] + sorted[half]) / 2
}
