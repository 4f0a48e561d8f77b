package main

import "regexp"

var (
	// peersSay is the table of `make peers`: ours first, DuckDB second.
	peersSay = regexp.MustCompile(`× DuckDB\s*\n\s*(?P<ours>[\d.]+)\s+\S+\s+(?P<peak>[\d.]+)\s+(?P<ratio>[\d.]+) .*\n\s*(?P<duckdb>[\d.]+) `)
	// outageSays is what the hour of outage with many operations came to.
	outageSays = regexp.MustCompile(`many \{calls:(?P<calls>\d+) .*rows:(?P<rows>\d+) .*said:(?P<said>\d+)`)
)

// rows is every budget of speed that is measured in minutes.
var rows = []row{
	{
		what:    "sweep that concludes 100,000 due operations from one list",
		against: "the same rows updated and the evidence inserted by one set-based SQL loop",
		budget:  budget{bound: 5}, pkg: "sweep", benchmark: "BenchmarkSweep/100000", times: "3x", timeout: "20m",
		measure: metric{reported: "x-sql"}, ours: metric{reported: "s-ours", unit: "s"}, limit: metric{reported: "s-limit", unit: "s"},
	},
	{
		what:   "statements of that sweep for a batch of any size",
		budget: budget{bound: 12}, pkg: "sweep", benchmark: "BenchmarkSweep/100000", times: "3x", timeout: "20m",
		measure: metric{reported: "statements/batch"},
	},
	{
		what:    "provider calls of that sweep",
		against: "the pages that the window has",
		budget:  budget{bound: 1.1}, pkg: "sweep", benchmark: "BenchmarkSweep/100000", times: "3x", timeout: "20m",
		measure: metric{reported: "calls-ratio"},
	},
	{
		what:   "idle sweep of 10 million operations, 100,000 stuck and planned anew 30 times, 1 million closed on the ladder",
		budget: budget{bound: 50, unit: "shared buffers"}, pkg: "ledger", benchmark: "BenchmarkIdleSweep", times: "1x",
		measure: metric{reported: "buffers"},
		smaller: "only operations with a plan cost anything here, so of the others 900,000 stand for 8.9 million",
	},
	{
		what:    "audit of 1 million operations and 1 million effects in the database",
		against: "one full outer join that classes them",
		budget:  budget{bound: 3}, pkg: "sweep", benchmark: "BenchmarkAudit/1000000", times: "3x", timeout: "20m",
		measure: metric{reported: "x-join"}, ours: metric{reported: "s-ours", unit: "s"}, limit: metric{reported: "s-limit", unit: "s"},
	},
	{
		what:   "memory of that audit",
		budget: budget{bound: 256, unit: "MiB"}, pkg: "sweep", benchmark: "BenchmarkAudit/1000000", times: "3x", timeout: "20m",
		measure: metric{reported: "MiB", unit: "MiB"},
	},
	{
		what:    "import of a CSV of 1 million rows",
		against: "`COPY` and `INSERT ON CONFLICT` of the same rows",
		budget:  budget{bound: 1.5}, pkg: "ledger", benchmark: "BenchmarkImportEffects/1000000", times: "3x",
		measure: metric{reported: "ratio"}, ours: metric{reported: "s-ours", unit: "s"}, limit: metric{reported: "s-limit", unit: "s"},
	},
	{
		what:    "comparison of 1 million with 1 million JSON Lines",
		against: "reading both files and decoding the JSON alone",
		budget:  budget{bound: 2}, pkg: "sweep", benchmark: "BenchmarkCompare/lines/1000000", times: "3x",
		measure: metric{reported: "x-decoding"}, ours: metric{reported: "s-ours", unit: "s"}, limit: metric{reported: "s-limit", unit: "s"},
	},
	{
		what:    "comparison of 1 million with 1 million rows of CSV",
		against: "DuckDB that reads the same files and joins them",
		budget:  budget{bound: 1.5}, dir: "sweep/peers", test: "TestPeersFindTheSame", says: peersSay, env: "PEERS_ROWS=1000000 PEERS_ROUNDS=3",
		measure: metric{reported: "ratio"}, ours: metric{reported: "ours", unit: "s"}, limit: metric{reported: "duckdb", unit: "s"},
	},
	{
		what:   "memory of that comparison",
		budget: budget{bound: 512, unit: "MiB"}, dir: "sweep/peers", test: "TestPeersFindTheSame", says: peersSay, env: "PEERS_ROWS=1000000 PEERS_ROUNDS=3",
		measure: metric{reported: "peak", unit: "MiB"},
	},
	{
		what:    "webhook intake, 16 clients",
		against: "pgbench that inserts single rows into the same table, 16 clients",
		budget:  budget{bound: 0.5, atLeast: true}, pkg: "daemon", benchmark: "BenchmarkWebhooks", times: "3x",
		measure: metric{reported: "ratio"}, ours: metric{reported: "deliveries/s", unit: "/s"}, limit: metric{reported: "inserts/s", unit: "/s"},
	},
	{
		what:   "acknowledged events that are lost, of 100,000, when the daemon is killed five times",
		budget: budget{bound: 0}, pkg: "daemon", benchmark: "BenchmarkKilledDaemon", times: "1x",
		measure: metric{reported: "lost"},
	},
	{
		what:   "99 of 100 webhooks to the operation closed, at 100 events a second",
		budget: budget{bound: 1000, unit: "ms"}, pkg: "daemon", benchmark: "BenchmarkWebhookToClosed", times: "1x",
		measure: metric{reported: "ms-p99", unit: "ms"},
	},
	{
		what:    "open, claim and finish",
		against: "three bare statements in three commits",
		budget:  budget{bound: 2.5}, pkg: "ledger", benchmark: "BenchmarkActing", times: "5s",
		measure: metric{reported: "ratio"}, ours: metric{reported: "µs/acting", unit: "µs"}, limit: metric{reported: "µs/bare", unit: "µs"},
	},
	{
		what:   "snapshot of the metrics at 10 million operations",
		budget: budget{bound: 100, unit: "ms"}, pkg: "ledger", benchmark: "BenchmarkSnapshot/2000-entries-later-1000000", times: "20x",
		env:     "SNAPSHOT_ROWS=1000000",
		measure: metric{reported: "ns/op", scale: 1e-6, unit: "ms"},
		smaller: "measured at 1 million, since a ledger of 10 million takes longer to make than all other rows; `SNAPSHOT_ROWS=10000000` measures that",
	},
	{
		what:   "the first 1,000 closed of 1 million operations that an outage left unknown, from the start of the process and at the default pace of asking",
		budget: budget{bound: 60, unit: "s"}, pkg: "cmd/reconciler", benchmark: "BenchmarkCatchUp/1000000", times: "1x",
		measure: metric{reported: "s-first", unit: "s"},
	},
	{
		what:   "memory of the process that catches up, until 100,000 are closed",
		budget: budget{bound: 256, unit: "MiB"}, pkg: "cmd/reconciler", benchmark: "BenchmarkCatchUp/1000000", times: "1x",
		measure: metric{reported: "MiB", unit: "MiB"},
	},
	{
		what:   "provider calls of an hour of outage with 10,000 due operations (simulated time)",
		budget: budget{bound: 200}, pkg: "sweep", test: "TestAnHourOfOutageIsFewCallsAndOneMessage", says: outageSays, env: "SOAK=1",
		measure: metric{reported: "calls"},
	},
	{
		what:   "new rows of that outage",
		budget: budget{bound: 1000}, pkg: "sweep", test: "TestAnHourOfOutageIsFewCallsAndOneMessage", says: outageSays, env: "SOAK=1",
		measure: metric{reported: "rows"},
	},
	{
		what:   "messages of that outage",
		budget: budget{bound: 1}, pkg: "sweep", test: "TestAnHourOfOutageIsFewCallsAndOneMessage", says: outageSays, env: "SOAK=1",
		measure: metric{reported: "said"},
	},
}

// largeRows is every budget of speed that takes hours: what is measured is made first, at ten
// times the size.
var largeRows = []row{
	{
		what:    "audit of 10 million operations and 10 million effects with random ids",
		against: "1 million of the same",
		budget:  budget{bound: 12}, pkg: "sweep", benchmark: "BenchmarkAuditLarge", times: "1x", tags: "bench_large", timeout: "180m",
		measure: metric{reported: "x-million"}, ours: metric{reported: "s-ours", unit: "s"}, limit: metric{reported: "s-million", unit: "s"},
	},
	{
		what:   "memory of that audit",
		budget: budget{bound: 256, unit: "MiB"}, pkg: "sweep", benchmark: "BenchmarkAuditLarge", times: "1x", tags: "bench_large", timeout: "180m",
		measure: metric{reported: "MiB", unit: "MiB"},
	},
}
