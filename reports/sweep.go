package reports

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Sweep is what one run of a sweep over one source did (contracts: JSON). It has the
// shape of sweep.Outcome, so that one converts to the other. Claimed is the sum of
// the eight after it.
type Sweep struct {
	RunID         string                    `json:"run_id"`
	Source        recon.SourceName          `json:"source"`
	Claimed       int                       `json:"claimed"`
	Succeeded     int                       `json:"succeeded"`
	Failed        int                       `json:"failed"`
	Released      int                       `json:"released"`
	ManualReview  int                       `json:"manual_review"`
	Kept          int                       `json:"kept"`
	Blind         int                       `json:"blind"`
	Lost          int                       `json:"lost"`
	SetAside      int                       `json:"set_aside"`
	ProviderCalls int                       `json:"provider_calls"`
	Findings      map[recon.FindingKind]int `json:"findings"`
	DurationMS    int64                     `json:"duration_ms"`
	BlindReason   string                    `json:"blind_reason,omitempty"` // why some could not be looked at
}

// Manner says whether a run changed anything.
type Manner string

const (
	Done   Manner = "done"
	DryRun Manner = "dry run"
)

// Sweeps writes what a sweep of one or several sources did, source by source, and the
// sum where there are several.
func Sweeps(w io.Writer, runs []Sweep, m Manner) error {
	p := newPage(time.Time{}, nil)
	if m == DryRun {
		p.line("Dry run: nothing was changed. A real run would do this:")
	}
	sum := Sweep{Source: "all sources", Findings: map[recon.FindingKind]int{}}
	for _, r := range runs {
		p.sweep(r)
		sum = sum.plus(r)
	}
	switch {
	case len(runs) == 0:
		p.line("no sources to sweep")
	case len(runs) > 1:
		p.sweep(sum)
	}
	return p.writeTo(w)
}

// SweepsJSON writes the same as a list.
func SweepsJSON(w io.Writer, runs []Sweep) error {
	list := make([]Sweep, 0, len(runs))
	for _, r := range runs {
		if r.Findings == nil {
			r.Findings = map[recon.FindingKind]int{}
		}
		list = append(list, r)
	}
	return writeJSON(w, list)
}

func (p *page) sweep(r Sweep) {
	if r.Claimed == 0 {
		p.text(string(r.Source)+": ", fmt.Sprintf("nothing was due (%s, %s)", count(r.ProviderCalls, "request"), took(r.DurationMS)))
	} else {
		p.text(string(r.Source)+": ", fmt.Sprintf("%s due: %s (%s, %s)", count(r.Claimed, "operation"), r.outcomes(),
			count(r.ProviderCalls, "request"), took(r.DurationMS)))
	}
	if r.BlindReason != "" {
		p.text("  could not look: ", r.BlindReason)
	}
	var found []string
	for _, k := range recon.FindingKinds {
		if n := r.Findings[k]; n > 0 {
			found = append(found, fmt.Sprintf("%s %s", number(n), k))
		}
	}
	if len(found) > 0 {
		p.text("  findings: ", strings.Join(found, ", "))
	}
}

// outcomes lists what became of the operations; what is 0 is not said.
func (r Sweep) outcomes() string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, number(n)+" "+what)
		}
	}
	add(r.Succeeded, "succeeded")
	add(r.Failed, "failed")
	add(r.Released, "released for one more attempt")
	add(r.ManualReview, "to manual review")
	add(r.Kept, "kept open")
	add(r.Blind, "could not be looked at")
	add(r.Lost, "changed by another writer first")
	add(r.SetAside, "set aside after a fault")
	return strings.Join(parts, ", ")
}

func (r Sweep) plus(o Sweep) Sweep {
	r.Claimed += o.Claimed
	r.Succeeded += o.Succeeded
	r.Failed += o.Failed
	r.Released += o.Released
	r.ManualReview += o.ManualReview
	r.Kept += o.Kept
	r.Blind += o.Blind
	r.Lost += o.Lost
	r.SetAside += o.SetAside
	r.ProviderCalls += o.ProviderCalls
	r.DurationMS += o.DurationMS
	for k, n := range o.Findings {
		r.Findings[k] += n
	}
	return r
}

// took writes how long a run lasted.
func took(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return span(d)
}
