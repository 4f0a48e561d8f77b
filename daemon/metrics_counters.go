package daemon

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// ledgerCounter is one counter that is read from the ledger's tallies.
type ledgerCounter struct {
	tally string // its name without namespace and _total
	desc  *prometheus.Desc
	// zero gives the labels of the series that are there before anything happened, by
	// configured source and action, if the counter has those.
	zero [][]string
	// ofAction says that source and action come before those labels.
	ofAction bool
}

// What the ledger's counters are told by.
var (
	unknownReasons = []string{"timeout", "reset", "no_answer", "5xx", "indeterminate", "accepted", "stored_error", "refused", "not_sent",
		"lease_over", "stale_release", "conflict", "in_flight", "import", "person", "other"}
	closedBy      = []string{"attempt", "evidence", "policy", "person", "import"}
	repeatReasons = []string{"existing", "open_elsewhere", "succeeded", "in_progress", "in_doubt", "key_expired"}
	reverified    = []string{"confirmed", "changed", "blind"}
)

func total(tally, help string, labels ...string) ledgerCounter {
	return ledgerCounter{
		tally: tally, desc: desc(tally+"_total", help, labels...), zero: [][]string{{}},
		ofAction: len(labels) > 1 && labels[0] == "source" && labels[1] == "action",
	}
}

// each gives the values of the last label before anything happened.
func (c ledgerCounter) each(values ...string) ledgerCounter {
	zero := [][]string{}
	for _, before := range c.zero {
		for _, v := range values {
			zero = append(zero, append(slices.Clone(before), v))
		}
	}
	c.zero = zero
	return c
}

// ledgerCounters count what the journal and the findings tell, so that they go on after a
// restart and count actors in any language.
var ledgerCounters = []ledgerCounter{
	total("operations_opened", "Operations recorded, imported ones too.", "source", "action"),
	total("operations_became_unknown", "Times that an operation became unknown, by what made it so.", "source", "action", "reason").
		each(unknownReasons...),
	total("operations_closed", "Times that an operation closed, by how it ended and what closed it.", "source", "action", "outcome", "by").
		each(string(recon.Succeeded), string(recon.Failed)).each(closedBy...),
	total("confirmed_after_timeout", "Operations without a definite answer that evidence showed to have happened."),
	total("repeats_prevented", "Repeats that were not let happen, by how the operation stood.", "reason").each(repeatReasons...),
	total("retries_refused_after_key_expiry", "Repeats refused because the provider may have forgotten their key; part of repeats_prevented."),
	total("findings_opened", "Findings opened, also those opened again.", "kind").each(kindNames()...),
	total("reversed_effects", "Operations that had succeeded and of whose effect nothing is left."),
	total("reverified", "Closed operations looked at again, by what that found.", "outcome").each(reverified...),
}

func kindNames() []string {
	names := make([]string, 0, len(recon.FindingKinds))
	for _, k := range recon.FindingKinds {
		names = append(names, string(k))
	}
	return names
}

// counters sends the ledger's counters. Before the first reading there are none: a
// counter that begins at 0 and then jumps to what it was is an increase that never was.
func (of configured) counters(s ledger.Snapshot, to chan<- prometheus.Metric) {
	if s.At.IsZero() {
		return
	}
	for _, c := range ledgerCounters {
		counts := map[string]float64{}
		for _, labels := range of.zeroSeries(c) {
			counts[strings.Join(labels, "\x00")] = 0
		}
		for _, t := range s.Tallies {
			if t.Name == c.tally {
				counts[strings.Join(t.Labels, "\x00")] = float64(t.N)
			}
		}
		for key, n := range counts {
			var labels []string
			if key != "" {
				labels = strings.Split(key, "\x00")
			}
			to <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, n, labels...)
		}
	}
}

// zeroSeries are the series that there always are.
func (of configured) zeroSeries(c ledgerCounter) [][]string {
	if !c.ofAction {
		return c.zero
	}
	var all [][]string
	for _, p := range of.actions {
		for _, more := range c.zero {
			all = append(all, append([]string{string(p.Source), p.Action}, more...))
		}
	}
	return all
}
