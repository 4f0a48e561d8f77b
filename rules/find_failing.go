package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	// A third failure for one target within a month is no accident any more.
	failingAfter  = 3
	failingWithin = 30 * 24 * time.Hour
)

// Failure is one failed effect of a target, with the operation that it belongs to, if
// any.
type Failure struct {
	Effect    recon.Effect
	Operation recon.OperationID
	Target    string // what keeps failing: the operation's target, else the effect's
}

// Failing tells of targets for which the same thing fails again and again. Each is one
// finding that names the first three failures; how many there are by now stands in
// what was observed, so that the 28th does not make a new finding. It is over once nothing
// failed for as long as the three must be close to each other, up to the time until which
// failures were looked for.
func Failing(failures []Failure, until time.Time) []recon.Finding {
	type subject struct {
		source             recon.SourceName
		kind, mode, target string
	}
	by := map[subject][]Failure{}
	for _, f := range failures {
		if f.Effect.Status == recon.EffectFailed && f.Target != "" {
			s := subject{f.Effect.Source, f.Effect.Kind, f.Effect.Mode, f.Target}
			by[s] = append(by[s], f)
		}
	}
	var findings []recon.Finding
	for s, list := range by {
		slices.SortFunc(list, func(a, b Failure) int {
			return cmp.Or(a.Effect.CreatedAt.Compare(b.Effect.CreatedAt), cmp.Compare(a.Effect.ID, b.Effect.ID),
				cmp.Compare(a.Effect.Account, b.Effect.Account), cmp.Compare(a.Effect.Mode, b.Effect.Mode))
		})
		if until.Sub(list[len(list)-1].Effect.CreatedAt) >= failingWithin {
			continue
		}
		for i := 0; i+failingAfter <= len(list); i++ {
			if list[i+failingAfter-1].Effect.CreatedAt.Sub(list[i].Effect.CreatedAt) < failingWithin {
				findings = append(findings, failingFinding(s.target, list[i:]))
				break
			}
		}
	}
	slices.SortFunc(findings, func(a, b recon.Finding) int { return cmp.Compare(a.Fingerprint(), b.Fingerprint()) })
	return findings
}

// fees says what the failures cost, where the provider shows it: each try may be charged.
func fees(list []Failure) string {
	sums := map[string]int64{}
	for _, x := range list {
		currency := x.Effect.Settlement.Currency
		if currency == "" {
			currency = x.Effect.Money.Currency
		}
		if x.Effect.Fee != nil && currency != "" {
			sums[currency] += *x.Effect.Fee
		}
	}
	var texts []string
	for _, currency := range slices.Sorted(maps.Keys(sums)) {
		if sums[currency] != 0 {
			texts = append(texts, recon.Money{Minor: sums[currency], Currency: currency}.Text(nil))
		}
	}
	if len(texts) == 0 {
		return ""
	}
	return " The fees add up to " + strings.Join(texts, ", ") + "."
}

// failingFinding is about the failures from the first of three that came close.
func failingFinding(target string, list []Failure) recon.Finding {
	first := list[0].Effect
	f := recon.Finding{
		Kind: recon.FindFailing, Certainty: recon.Proof, Source: first.Source, Money: first.Money, Operations: []recon.OperationID{},
		Reason: fmt.Sprintf("The %s for %s failed %d times since %s; the last time at %s.", recon.Noun(first.Kind), target,
			len(list), recon.TimeText(first.CreatedAt, nil), recon.TimeText(list[len(list)-1].Effect.CreatedAt, nil)) + fees(list),
		Observed: []recon.Difference{{Field: "failures", Theirs: strconv.Itoa(len(list))}},
	}
	for _, x := range list[:failingAfter] {
		f.Effects = append(f.Effects, x.Effect.Ref())
		if x.Operation != "" {
			f.Operations = append(f.Operations, x.Operation)
		}
	}
	slices.Sort(f.Operations)
	f.Operations = slices.Compact(f.Operations)
	return f
}
