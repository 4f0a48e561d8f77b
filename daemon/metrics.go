package daemon

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// metrics holds every series of this process in a registry of its own. From the first
// scrape on there is one, 0 where there is nothing, for every configured source,
// action, open state, scheduled run and finding kind: an alert on a series that
// appears with the first fault misses that fault.
type metrics struct {
	registry *prometheus.Registry
	gauges   *gauges

	looks     *prometheus.CounterVec
	requests  *prometheus.CounterVec
	notices   *prometheus.CounterVec
	inbox     *prometheus.CounterVec
	versions  *prometheus.CounterVec
	takenIn   *prometheus.CounterVec
	unmatched prometheus.Counter
	clicks    *prometheus.CounterVec
	runs      *prometheus.HistogramVec
	unknown   *prometheus.HistogramVec
}

var (
	openStates  = []recon.State{recon.Pending, recon.InProgress, recon.Unknown, recon.ManualReview}
	outcomes    = []recon.Outcome{recon.Found, recon.Absent, recon.Blind}
	closings    = []recon.State{recon.Succeeded, recon.Failed, recon.ManualReview, recon.Pending}
	runBuckets  = []float64{0.1, 0.5, 1, 5, 15, 30, 60, 300, 900, 3600}
	longBuckets = []float64{60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 3 * 86400, 7 * 86400, 30 * 86400}
)

func newMetrics(c *config.Config) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		gauges:   newGauges(c),
		looks: counter("looks_total", "Looks at a source, by how it was asked and what came of it.",
			"source", "method", "outcome"),
		requests: counter("provider_requests_total", "Requests to a provider, by endpoint and by status or kind of fault.",
			"source", "endpoint", "code"),
		notices:  counter("notices_total", "Tries to deliver a notice, by how they went.", "destination", "result"),
		inbox:    counter("inbox_events_total", "Deliveries of providers, by how they were answered.", "source", "result"),
		versions: counter("inbox_versions_total", "Events that were delivered and stored, by the version of the provider's interface that they are written in.", "source", "version"),
		takenIn:  counter("inbox_taken_in_total", "Tries to take in what an event says, by how they ended.", "source", "result"),
		unmatched: prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: "inbox_match_failures_total",
			Help: "Effects of our actions that events told of and that belonged to no operation then."}),
		clicks: newClicks(),
		runs:   histogram("run_duration_seconds", "How long runs took.", runBuckets, "run"),
		unknown: histogram("unknown_duration_seconds", "How long operations were unknown until a sweep concluded, by the state that they got.",
			longBuckets, "source", "outcome"),
	}
	limit := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "provider_requests_per_second_limit",
		Help: "How many requests a second to the source's provider each process allows itself; 0: as many as it likes."}, []string{"source"})
	m.registry.MustRegister(limit, m.gauges, m.looks, m.requests, m.notices, m.inbox, m.versions, m.takenIn, m.unmatched, m.clicks, m.runs, m.unknown)
	for _, s := range c.Sources {
		limit.WithLabelValues(string(s.Name)).Set(s.Sheet.PerSecond)
		for _, o := range outcomes {
			for _, a := range s.Sheet.Abilities {
				m.looks.WithLabelValues(string(s.Name), string(a.Method), string(o))
			}
		}
		if s.Sheet.Webhooks {
			for _, r := range deliveryResults {
				m.inbox.WithLabelValues(string(s.Name), r)
			}
			for _, state := range []inbox.State{inbox.Done, inbox.Waiting, inbox.Failed, inbox.Ignored} {
				m.takenIn.WithLabelValues(string(s.Name), string(state))
			}
			m.looks.WithLabelValues(string(s.Name), string(recon.ByEvent), string(recon.Found))
		}
		for _, state := range closings {
			m.unknown.WithLabelValues(string(s.Name), string(state))
		}
	}
	m.show(c)
	return m
}

// show makes the series of all that a new configuration can bring. What it takes away is
// shown no longer by the gauges; counters only grow.
func (m *metrics) show(c *config.Config) {
	m.gauges.show(c)
	for _, name := range runNames(c) {
		m.runs.WithLabelValues(name)
	}
	for _, d := range c.Destinations {
		for _, r := range escalation.Results {
			m.notices.WithLabelValues(d.Name, string(r))
		}
	}
}

const namespace = "reconciler"

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: name, Help: help, Buckets: buckets}, labels)
}

// runNames are the scheduled runs: those of each source, and those of the ledger.
func runNames(c *config.Config) []string {
	var names []string
	for _, s := range c.Sources {
		for _, r := range scheduled(c) {
			names = append(names, r.name+"/"+string(s.Name))
		}
	}
	if !c.Schedule.Report.Off() {
		names = append(names, runReport)
	}
	return append(names, runHousekeeping)
}

// watch counts what a sweep of a source tells.
func (m *metrics) watch(source recon.SourceName) sweep.Watch {
	return sweep.Watch{
		Look: func(l recon.Look) {
			m.looks.WithLabelValues(string(l.Source), string(l.Method), string(l.Outcome)).Inc()
		},
		Judged: func(c recon.Case, d recon.Decision) {
			since := c.Operation.UnknownSince
			if d.From == recon.Unknown && d.To != recon.Unknown && !since.IsZero() {
				m.unknown.WithLabelValues(string(source), string(d.To)).Observe(max(0, time.Since(since).Seconds()))
			}
		},
	}
}

// requested counts requests to the provider of a source.
func (m *metrics) requested(source recon.SourceName) config.Watch {
	return func(endpoint, code string) {
		m.requests.WithLabelValues(string(source), endpoint, code).Inc()
	}
}

func (m *metrics) noticed(destination string, r escalation.Result) {
	m.notices.WithLabelValues(destination, string(r)).Inc()
}

// written counts a stored event by its version.
func (m *metrics) written(e recon.Event) {
	m.versions.WithLabelValues(string(e.Source), e.Version).Inc()
}

// delivered counts a delivery to a source.
func (m *metrics) delivered(source recon.SourceName, result string) {
	m.inbox.WithLabelValues(string(source), result).Inc()
}

// intake counts what an intake tells.
func (m *metrics) intake() sweep.IntakeWatch {
	return sweep.IntakeWatch{
		Ended: func(e inbox.Ending) {
			m.takenIn.WithLabelValues(string(e.Of.Event.Source), string(e.State())).Inc()
		},
		Unmatched: func(recon.Effect) { m.unmatched.Inc() },
		Look:      m.watch("").Look,
		Judged:    func(c recon.Case, d recon.Decision) { m.watch(c.Operation.Source).Judged(c, d) },
	}
}

func (m *metrics) ran(name string, took time.Duration) {
	m.runs.WithLabelValues(name).Observe(took.Seconds())
}

// gauges shows the newest snapshot of the ledger. It reads the database at no scrape:
// a scrape must not become slow with it, nor fail.
type gauges struct {
	mu   sync.Mutex // guards all of it
	of   configured
	last ledger.Snapshot
}

// configured is what there is a series for, whether the ledger has anything of it or not.
type configured struct {
	actions []recon.Policy
	sources []recon.SourceName
	runs    []string
}

func newGauges(c *config.Config) *gauges {
	g := &gauges{}
	g.show(c)
	return g
}

func (g *gauges) show(c *config.Config) {
	of := configured{actions: c.Policies, runs: runNames(c)}
	for _, s := range c.Sources {
		of.sources = append(of.sources, s.Name)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of = of
}

func (g *gauges) set(s ledger.Snapshot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = s
}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(namespace+"_"+name, help, labels, nil)
}

// Every time is an instant, never an age, so that a stuck process cannot make it look
// young; 0 means that there is none.
var (
	operationsDesc = desc("operations", "Open operations.", "source", "action", "state")
	unknownDesc    = desc("oldest_unknown_operation_timestamp_seconds",
		"Since when the oldest operation is unknown of which no effect is known; 0: there is none.", "source", "action")
	inFlightDesc = desc("oldest_in_flight_operation_timestamp_seconds",
		"Since when the oldest operation is unknown whose effect is known and still in flight; 0: there is none.", "source", "action")
	keyDesc = desc("next_key_expiry_timestamp_seconds",
		"When the next key ends of an operation without a known effect, after which a repeat is refused; 0: none is to come.", "source", "action")
	findingsDesc = desc("findings", "Findings that have not ended and are not settled.", "kind")
	unownedDesc  = desc("effects_unowned", "Effects of kinds that the source's actions make, and that belong to no operation.", "source")
	blindDesc    = desc("source_blind_since_timestamp_seconds", "Since when the source does not answer; 0: it answers.", "source")
	successDesc  = desc("run_last_success_timestamp_seconds", "When the run last ended well; 0: never.", "run")
	noticeDesc   = desc("oldest_undelivered_notice_timestamp_seconds", "Since when the oldest notice waits to be delivered; 0: none waits.")
	snapshotDesc = desc("ledger_snapshot_timestamp_seconds", "When the ledger was last read for these gauges; 0: not yet.")
	gaugeDescs   = []*prometheus.Desc{operationsDesc, unknownDesc, inFlightDesc, keyDesc, findingsDesc, unownedDesc, blindDesc, successDesc, noticeDesc, snapshotDesc}
)

// Describe implements prometheus.Collector.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range gaugeDescs {
		to <- d
	}
	for _, c := range ledgerCounters {
		to <- c.desc
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	g.mu.Lock()
	of, s := g.of, g.last
	g.mu.Unlock()
	send := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	of.operations(s, send)
	for _, k := range recon.FindingKinds {
		send(findingsDesc, float64(s.Findings[k]), string(k))
	}
	for _, name := range of.sources {
		send(unownedDesc, float64(s.EffectsUnowned[name]), string(name))
		send(blindDesc, seconds(s.BlindSince[name]), string(name))
	}
	for _, name := range of.runs {
		send(successDesc, seconds(s.RunLastSuccess[name]), name)
	}
	send(noticeDesc, seconds(s.OldestNotice))
	send(snapshotDesc, seconds(s.At))
	of.counters(s, to)
}

// operations tells of every configured action, and of what the ledger has besides:
// operations of an action that somebody took out of the configuration are still open.
func (of configured) operations(s ledger.Snapshot, send func(*prometheus.Desc, float64, ...string)) {
	type action struct {
		source recon.SourceName
		name   string
	}
	type state struct {
		action
		state recon.State
	}
	actions := map[action]bool{}
	counts := map[state]int64{}
	unknown, inFlight, key := map[action]time.Time{}, map[action]time.Time{}, map[action]time.Time{}
	for _, p := range of.actions {
		actions[action{p.Source, p.Action}] = true
	}
	for _, o := range s.Operations {
		a := action{o.Source, o.Action}
		actions[a] = true
		counts[state{a, o.State}] = o.Count
		unknown[a] = earlier(unknown[a], o.OldestUnknown)
		inFlight[a] = earlier(inFlight[a], o.OldestInFlight)
		key[a] = earlier(key[a], o.NextKeyExpiry)
	}
	for a := range actions {
		for _, st := range openStates {
			send(operationsDesc, float64(counts[state{a, st}]), string(a.source), a.name, string(st))
		}
		send(unknownDesc, seconds(unknown[a]), string(a.source), a.name)
		send(inFlightDesc, seconds(inFlight[a]), string(a.source), a.name)
		send(keyDesc, seconds(key[a]), string(a.source), a.name)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

// MetricsPage lists every metric with its labels and its help, as a table for the
// documentation. It asks the collectors for their descriptions, since a vector that
// nobody has used yet shows no series.
func MetricsPage() string {
	m := newMetrics(&config.Config{})
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		m.registry.Describe(descs)
	}()
	var lines []string
	for d := range descs {
		lines = append(lines, tableLine(d))
	}
	slices.Sort(lines)
	return "| metric | labels | what it tells |\n|---|---|---|\n" + strings.Join(lines, "\n") + "\n"
}

var descText = regexp.MustCompile(`^Desc\{fqName: "([^"]*)", help: "(.*?)"(?:, unit: "[^"]*")?, constLabels: \{.*\}, variableLabels: \{(.*)\}\}$`)

// tableLine reads a description, which has no other way to be read.
func tableLine(d *prometheus.Desc) string {
	parts := descText.FindStringSubmatch(d.String())
	if parts == nil {
		panic("daemon: a metric's description reads " + d.String()) // only where the library writes it in another way
	}
	labels := strings.ReplaceAll(parts[3], ",", ", ")
	return "| `" + parts[1] + "` | " + labels + " | " + parts[2] + " |"
}
