package main

// form is how a panel shows its series.
type form int

const (
	lines form = iota
	stacked
	number
	heat
)

// view is one panel.
type view struct {
	title   string
	about   string
	form    form
	unit    string
	queries []query
	// red is from where on a number is red; 0: never.
	red float64
}

type query struct{ expr, legend string }

// section is a row of panels, of which three stand side by side, and four numbers.
type section struct {
	title string
	views []view
}

// Replicas show the same ledger, so the largest of their gauges and counters counts; what a
// process counts itself is added up.
var sections = []section{
	{"Now", []view{
		{"Unknown", "Operations of which nobody knows whether they happened.", number, "none", []query{
			{`sum(max by (source, action) (reconciler_operations{job=~"$job", state="unknown"}))`, "unknown"},
		}, 0},
		{"Oldest unknown", "How long the oldest operation without a known effect has been unknown.", number, "s", []query{
			{`max(time() - (max by (source, action) (reconciler_oldest_unknown_operation_timestamp_seconds{job=~"$job"}) > 0)) or vector(0)`, "age"},
		}, 3600},
		{"Before people", "Operations in manual review.", number, "none", []query{
			{`sum(max by (source, action) (reconciler_operations{job=~"$job", state="manual_review"}))`, "manual review"},
		}, 1},
		{"Closed wrongly", "Open conflicts and reversals.", number, "none", []query{
			{`sum(max by (kind) (reconciler_findings{job=~"$job", kind=~"conflict|reversed"}))`, "findings"},
		}, 1},
		{"Ledger read", "How long ago the ledger was read for all of this.", number, "s", []query{
			{`time() - max(reconciler_ledger_snapshot_timestamp_seconds{job=~"$job"})`, "age"},
		}, 300},
		{"Oldest undelivered notice", "How long the oldest notice that is due has waited.", number, "s", []query{
			{`(time() - (max(reconciler_oldest_undelivered_notice_timestamp_seconds{job=~"$job"}) > 0)) or vector(0)`, "age"},
		}, 600},
		{"Next key to end", "How long until a key ends under which an unknown operation could be repeated safely.", number, "s", []query{
			{`(min((max by (source, action) (reconciler_next_key_expiry_timestamp_seconds{job=~"$job"}) > 0)) - time()) or vector(0)`, "time"},
		}, 0},
		{"Blind sources", "Sources that do not answer.", number, "none", []query{
			{`sum(max by (source) (reconciler_source_blind_since_timestamp_seconds{job=~"$job"} > bool 0))`, "sources"},
		}, 1},
	}},
	{"What becomes unknown", []view{
		{"Share that became unknown", "Of the operations recorded within an hour.", lines, "percentunit", []query{
			{`sum by (action) (max by (source, action, reason) (increase(reconciler_operations_became_unknown_total{job=~"$job"}[1h]))) / sum by (action) (max by (source, action) (increase(reconciler_operations_opened_total{job=~"$job"}[1h])))`, "{{action}}"},
		}, 0},
		{"Why", "What made operations unknown, an hour.", stacked, "none", []query{
			{`sum by (reason) (max by (source, action, reason) (increase(reconciler_operations_became_unknown_total{job=~"$job"}[1h])))`, "{{reason}}"},
		}, 0},
		{"Open operations", "By state.", stacked, "none", []query{
			{`sum by (state) (max by (source, action, state) (reconciler_operations{job=~"$job"}))`, "{{state}}"},
		}, 0},
		{"Oldest unknown", "By action. A straight line that climbs is one that nobody closes.", lines, "s", []query{
			{`(time() - (max by (source, action) (reconciler_oldest_unknown_operation_timestamp_seconds{job=~"$job"}) > 0)) or max by (source, action) (reconciler_oldest_unknown_operation_timestamp_seconds{job=~"$job"})`, "{{source}} {{action}}"},
		}, 0},
		{"Oldest in flight", "Taken on by the provider and not ended.", lines, "s", []query{
			{`(time() - (max by (source, action) (reconciler_oldest_in_flight_operation_timestamp_seconds{job=~"$job"}) > 0)) or max by (source, action) (reconciler_oldest_in_flight_operation_timestamp_seconds{job=~"$job"})`, "{{source}} {{action}}"},
		}, 0},
		{"Repeats prevented", "Each could have been a second payment. Those after the end of the key by themselves.", lines, "none", []query{
			{`sum by (reason) (max by (reason) (increase(reconciler_repeats_prevented_total{job=~"$job"}[1h])))`, "{{reason}}"},
			{`max(increase(reconciler_retries_refused_after_key_expiry_total{job=~"$job"}[1h]))`, "after key expiry"},
		}, 0},
	}},
	{"How it is closed", []view{
		{"Age when the truth was found", "How long operations had been unknown when a sweep concluded them.", heat, "s", []query{
			{`sum by (le) (increase(reconciler_unknown_duration_seconds_bucket{job=~"$job"}[$__rate_interval]))`, "{{le}}"},
		}, 0},
		{"Time to truth", "Half, and all but five and one of a hundred, are faster.", lines, "s", []query{
			{`histogram_quantile(0.5, sum by (le) (increase(reconciler_unknown_duration_seconds_bucket{job=~"$job"}[1h])))`, "half"},
			{`histogram_quantile(0.95, sum by (le) (increase(reconciler_unknown_duration_seconds_bucket{job=~"$job"}[1h])))`, "95 %"},
			{`histogram_quantile(0.99, sum by (le) (increase(reconciler_unknown_duration_seconds_bucket{job=~"$job"}[1h])))`, "99 %"},
		}, 0},
		{"Closed by", "By the answer of an attempt, by evidence, by a person.", stacked, "none", []query{
			{`sum by (by) (max by (source, action, outcome, by) (increase(reconciler_operations_closed_total{job=~"$job"}[1h])))`, "{{by}}"},
		}, 0},
		{"Confirmed after a timeout", "They had no definite answer, and had happened.", lines, "none", []query{
			{`max(increase(reconciler_confirmed_after_timeout_total{job=~"$job"}[1h]))`, "confirmed"},
			{`max(increase(reconciler_reversed_effects_total{job=~"$job"}[1h]))`, "reversed later"},
		}, 0},
		{"Re-verified", "Closed operations that were looked at again.", stacked, "none", []query{
			{`sum by (outcome) (max by (outcome) (increase(reconciler_reverified_total{job=~"$job"}[1d])))`, "{{outcome}}"},
		}, 0},
	}},
	{"Findings", []view{
		{"Open findings", "By kind.", stacked, "none", []query{
			{`max by (kind) (reconciler_findings{job=~"$job"})`, "{{kind}}"},
		}, 0},
		{"Opened", "An hour, by kind.", stacked, "none", []query{
			{`max by (kind) (increase(reconciler_findings_opened_total{job=~"$job"}[1h]))`, "{{kind}}"},
		}, 0},
		{"Effects without operation", "Of kinds that our actions make. Differences between what is recorded and what is there.", lines, "none", []query{
			{`max by (source) (reconciler_effects_unowned{job=~"$job"})`, "{{source}}"},
		}, 0},
	}},
	{"Sources", []view{
		{"Looks", "By method and what came of them.", stacked, "cps", []query{
			{`sum by (method, outcome) (rate(reconciler_looks_total{job=~"$job"}[$__rate_interval]))`, "{{method}} {{outcome}}"},
		}, 0},
		{"Requests against the budget", "Requests a second to each provider, and what we allow ourselves.", lines, "reqps", []query{
			{`sum by (source) (rate(reconciler_provider_requests_total{job=~"$job"}[$__rate_interval]))`, "{{source}}"},
			{`sum by (source) (reconciler_provider_requests_per_second_limit{job=~"$job"})`, "{{source}} allowed"},
		}, 0},
		{"Answers", "By status, or by the kind of fault where none came.", stacked, "reqps", []query{
			{`sum by (source, code) (rate(reconciler_provider_requests_total{job=~"$job"}[$__rate_interval]))`, "{{source}} {{code}}"},
		}, 0},
		{"Blind for", "How long a source has not answered.", lines, "s", []query{
			{`(time() - (max by (source) (reconciler_source_blind_since_timestamp_seconds{job=~"$job"}) > 0)) or max by (source) (reconciler_source_blind_since_timestamp_seconds{job=~"$job"})`, "{{source}}"},
		}, 0},
		{"Share of blind looks", "By source.", lines, "percentunit", []query{
			{`sum by (source) (rate(reconciler_looks_total{job=~"$job", outcome="blind"}[1h])) / sum by (source) (rate(reconciler_looks_total{job=~"$job"}[1h]))`, "{{source}}"},
		}, 0},
	}},
	{"Inbox, notices, runs", []view{
		{"Deliveries", "Of providers, by how they were answered.", stacked, "cps", []query{
			{`sum by (source, result) (rate(reconciler_inbox_events_total{job=~"$job"}[$__rate_interval]))`, "{{source}} {{result}}"},
		}, 0},
		{"Taken in", "What events say, by how taking it in ended; and what belonged to no operation then.", lines, "none", []query{
			{`sum by (source, result) (increase(reconciler_inbox_taken_in_total{job=~"$job"}[1h]))`, "{{source}} {{result}}"},
			{`sum(increase(reconciler_inbox_match_failures_total{job=~"$job"}[1h]))`, "without operation"},
		}, 0},
		{"Notices", "Tries to deliver, an hour.", stacked, "none", []query{
			{`sum by (destination, result) (increase(reconciler_notices_total{job=~"$job"}[1h]))`, "{{destination}} {{result}}"},
		}, 0},
		{"Last good end of each run", "How long ago.", lines, "s", []query{
			{`time() - (max by (run) (reconciler_run_last_success_timestamp_seconds{job=~"$job"}) > 0)`, "{{run}}"},
		}, 0},
		{"Duration of runs", "On average.", lines, "s", []query{
			{`sum by (run) (rate(reconciler_run_duration_seconds_sum{job=~"$job"}[1h])) / sum by (run) (rate(reconciler_run_duration_seconds_count{job=~"$job"}[1h]))`, "{{run}}"},
		}, 0},
	}},
}
