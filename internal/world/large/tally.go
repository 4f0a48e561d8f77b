package large

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Numbers are what is counted of one world, or of many together.
type Numbers struct {
	Worlds         int                          `json:"worlds"`
	Operations     int                          `json:"operations"` // that somebody meant: what a plan has
	Imported       int                          `json:"imported"`   // of them, those from before the product
	Rows           int                          `json:"rows"`       // of the ledger: also those that were adopted, none that nobody opened
	Effects        int                          `json:"effects"`
	InDoubt        int                          `json:"in_doubt"` // operations whose sender ever had no definite answer
	ByEvidence     int                          `json:"closed_by_evidence"`
	ByEvents       int                          `json:"closed_by_events_alone"` // of them, where nothing can be asked
	ToPeople       int                          `json:"to_people"`
	Wrong          map[string]int               `json:"wrong"` // by the check that says so
	Fates          map[string]int               `json:"fates"` // what was to befall each operation
	Faults         map[string]int               `json:"faults"`
	Errands        map[string]int               `json:"errands"` // what people had done by commands
	Findings       map[recon.FindingKind]int    `json:"findings"`
	Planted        map[recon.FindingKind]int    `json:"planted"` // findings that the truth demands
	ProviderCalls  map[recon.SourceName]int     `json:"provider_calls"`
	Looks          map[recon.Outcome]int        `json:"looks"`
	People         map[ledger.PersonOutcome]int `json:"people"`
	Audits         int                          `json:"audits"`
	Reports        int                          `json:"reports"`
	Clicks         int                          `json:"clicks"`  // in Slack
	Buttons        map[recon.Verb]int           `json:"buttons"` // clicks of which something came
	Forms          int                          `json:"forms"`   // filled in there
	Events         int                          `json:"events"`
	Messages       int                          `json:"messages"`
	SimulatedHours int                          `json:"simulated_hours"`
	// TimeToTruth are the seconds from a sender's doubt to the closing by evidence, sorted.
	TimeToTruth []float64 `json:"-"`
}

func newNumbers() Numbers {
	return Numbers{
		Wrong: map[string]int{}, Fates: map[string]int{}, Faults: map[string]int{}, Errands: map[string]int{}, Findings: map[recon.FindingKind]int{}, Planted: map[recon.FindingKind]int{},
		ProviderCalls: map[recon.SourceName]int{}, Buttons: map[recon.Verb]int{},
		Looks: map[recon.Outcome]int{}, People: map[ledger.PersonOutcome]int{},
	}
}

// Add puts the numbers of another world to these.
func (n *Numbers) Add(o Numbers) {
	if n.Wrong == nil {
		*n = newNumbers()
	}
	n.Worlds += o.Worlds
	n.Operations += o.Operations
	n.Imported += o.Imported
	n.Rows += o.Rows
	n.Effects += o.Effects
	n.InDoubt += o.InDoubt
	n.ByEvidence += o.ByEvidence
	n.ByEvents += o.ByEvents
	n.ToPeople += o.ToPeople
	n.Audits += o.Audits
	n.Reports += o.Reports
	n.Clicks += o.Clicks
	n.Forms += o.Forms
	n.Events += o.Events
	n.Messages += o.Messages
	n.SimulatedHours += o.SimulatedHours
	addAll(n.Wrong, o.Wrong)
	addAll(n.Fates, o.Fates)
	addAll(n.Faults, o.Faults)
	addAll(n.Errands, o.Errands)
	addAll(n.Findings, o.Findings)
	addAll(n.Planted, o.Planted)
	addAll(n.ProviderCalls, o.ProviderCalls)
	addAll(n.Looks, o.Looks)
	addAll(n.People, o.People)
	addAll(n.Buttons, o.Buttons)
	n.TimeToTruth = append(n.TimeToTruth, o.TimeToTruth...)
	slices.Sort(n.TimeToTruth)
}

func sumOf[K comparable](m map[K]int) (sum int) {
	for _, v := range m {
		sum += v
	}
	return sum
}

func addAll[K comparable](to, from map[K]int) {
	for k, v := range from {
		to[k] += v
	}
}

// wrongs are the checks that are told with their number also when it is 0.
var wrongs = []string{wrongClose, missedFinding, falseFinding, secondEffect, unasked}

// MarshalJSON adds what is derived.
func (n Numbers) MarshalJSON() ([]byte, error) {
	type plain Numbers
	return json.Marshal(struct {
		plain
		CallsPerOperation float64 `json:"provider_calls_per_operation"`
		Median            float64 `json:"time_to_truth_median_seconds"`
		P99               float64 `json:"time_to_truth_p99_seconds"`
	}{plain(n), n.callsPerOperation(), n.truth(0.5).Seconds(), n.truth(0.99).Seconds()})
}

func (n Numbers) callsPerOperation() float64 {
	return float64(sumOf(n.ProviderCalls)) / float64(max(n.Operations, 1))
}

// truth is the time to truth of a share of the operations in doubt.
func (n Numbers) truth(share float64) time.Duration {
	if len(n.TimeToTruth) == 0 {
		return 0
	}
	at := min(int(share*float64(len(n.TimeToTruth))), len(n.TimeToTruth)-1)
	return time.Duration(n.TimeToTruth[at] * float64(time.Second))
}

// Table writes the numbers for people.
func (n Numbers) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(what string, v any) { fmt.Fprintf(t, "%v\t  %s\n", v, what) }
	row("worlds", n.Worlds)
	row("operations", n.Operations)
	row("of them imported, from before the product", n.Imported)
	row("effects", n.Effects)
	row("operations whose sender had no definite answer", n.InDoubt)
	row("closed by evidence", n.ByEvidence)
	row("of them by events alone, where nothing can be asked", n.ByEvents)
	row("to people", n.ToPeople)
	row("rows of the ledger", n.Rows)
	row("findings that the truth demanded", sumOf(n.Planted))
	all := maps.Clone(n.Wrong)
	for _, check := range wrongs {
		all[check] += 0
	}
	for _, check := range sorted(all) {
		row("WRONG: "+check, all[check])
	}
	row("provider calls per operation", fmt.Sprintf("%.2f", n.callsPerOperation()))
	row("time to truth, median, simulated", n.truth(0.5).Round(time.Second))
	row("time to truth, 99th percentile, simulated", n.truth(0.99).Round(time.Second))
	for _, kind := range sorted(n.Planted) {
		row("demanded "+string(kind), n.Planted[kind])
	}
	for _, kind := range sorted(n.Findings) {
		row("findings "+string(kind), n.Findings[kind])
	}
	for _, name := range sorted(n.Fates) {
		row(map[bool]string{true: "went well: ", false: "fates: "}[well(name)]+name, n.Fates[name])
	}
	for _, kind := range sorted(n.Faults) {
		row("faults: "+kind, n.Faults[kind])
	}
	for _, what := range sorted(n.Errands) {
		row("errands: "+what, n.Errands[what])
	}
	for _, o := range sorted(n.People) {
		row("actions of people "+string(o), n.People[o])
	}
	row("clicks in Slack", n.Clicks)
	for _, b := range sorted(n.Buttons) {
		row("of them not in vain, "+string(b), n.Buttons[b])
	}
	row("forms filled in there", n.Forms)
	row("events taken in", n.Events)
	row("messages", n.Messages)
	row("audits", n.Audits)
	row("reports", n.Reports)
	row("simulated days", n.SimulatedHours/24)
	return t.Flush()
}

func sorted[K cmp.Ordered](m map[K]int) []K { return slices.Sorted(maps.Keys(m)) }

// tally counts while a world goes on; servers count from their own goroutines.
type tally struct {
	mu sync.Mutex
	n  Numbers

	audits int
}

func newTally() *tally { return &tally{n: newNumbers()} }

func (t *tally) count(f func(*Numbers)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.n)
}

func (t *tally) calls(source recon.SourceName) {
	t.count(func(n *Numbers) { n.ProviderCalls[source]++ })
}
func (t *tally) fault(kind string) { t.count(func(n *Numbers) { n.Faults[kind]++ }) }
func (t *tally) errand(what string, times int) {
	t.count(func(n *Numbers) { n.Errands[what] += times })
}
func (t *tally) look(o recon.Outcome)          { t.count(func(n *Numbers) { n.Looks[o]++ }) }
func (t *tally) person(o ledger.PersonOutcome) { t.count(func(n *Numbers) { n.People[o]++ }) }
