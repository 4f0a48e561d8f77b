package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const said = `goos: linux
goarch: amd64
BenchmarkSweep/10000-2         	       1	2219347321 ns/op	         1.000 calls-ratio	        1.2 x-sql	 9 B/op
BenchmarkSweep/100000-2        	       1	22193473210 ns/op	         1.010 calls-ratio	        41.50 s-ours	 10.0 s-limit	 4.15 x-sql
BenchmarkRows/later-1000-2     	       5	  9 ns/op
BenchmarkRows/1000             	       5	  8 ns/op
BenchmarkActing                	     100	  11 ns/op	      1234567 µs/acting	      2.75 ratio
PASS
ok  	example.com/sweep	31.2s
`

const peersSaid = `=== RUN   TestPeers
    peers_test.go:56: 1000000 operations, as many effects, median of 3
        wall s  CPU s  peak MiB  × DuckDB
          0.95   1.20       380      1.19    reconciler compare
          0.80      ?       486      1.00    DuckDB
        budget of ours: 1.5 × DuckDB, 512 MiB
--- PASS: TestPeers (9.00s)
`

const outageSaid = `    outage_test.go:109: few {calls:60 looks:60 blind:1 told:1 rows:190 said:1 over:1m0s}, many {calls:61 looks:60 blind:1 told:1 rows:200 said:1 over:1m0s}
`

func TestTheValuesOfABenchmarkAreReadByItsWholeName(t *testing.T) {
	t.Parallel()
	all := read(said)
	for _, tt := range []struct {
		name, unit string
		want       float64
	}{
		{"BenchmarkSweep/10000", "x-sql", 1.2},
		{"BenchmarkSweep/100000", "x-sql", 4.15},
		{"BenchmarkSweep/100000", "ns/op", 22193473210},
		{"BenchmarkActing", "µs/acting", 1234567},
		{"BenchmarkRows/later-1000", "ns/op", 9},
		{"BenchmarkRows/1000", "ns/op", 8},
	} {
		if got, ok := all[tt.name][tt.unit]; !ok || got != tt.want {
			t.Errorf("%s: %v %s (%t), want %v", tt.name, got, tt.unit, ok, tt.want)
		}
	}
}

func TestAPageSaysWhatWasMetAndWhatWasNot(t *testing.T) {
	t.Parallel()
	sweep := row{
		what: "a sweep", against: "a loop", budget: budget{bound: 5}, pkg: "sweep", benchmark: "BenchmarkSweep/100000", times: "1x",
		measure: metric{reported: "x-sql"}, ours: metric{reported: "s-ours", unit: "s"}, limit: metric{reported: "s-limit", unit: "s"},
	}
	calls := row{what: "calls", budget: budget{bound: 1.01}, pkg: "sweep", benchmark: "BenchmarkSweep/100000", times: "1x", measure: metric{reported: "calls-ratio"}}
	acting := row{
		what: "acting", budget: budget{bound: 2.5}, pkg: "ledger", benchmark: "BenchmarkActing", times: "5s", env: "ROWS=1", missed: "the disk is slow",
		measure: metric{reported: "ratio"}, ours: metric{reported: "µs/acting", unit: "µs"}, smaller: "measured at half",
	}
	unexplained := acting
	unexplained.what, unexplained.missed, unexplained.smaller = "acting again", "", ""
	atLeast := acting
	atLeast.what, atLeast.budget = "at least", budget{bound: 2.75, atLeast: true, unit: "x"}
	gone := row{what: "gone", budget: budget{bound: 1}, benchmark: "BenchmarkGone", measure: metric{reported: "ratio"}}
	mute := row{what: "mute", budget: budget{bound: 1}, benchmark: "BenchmarkActing", measure: metric{reported: "lost"}}

	logs := row{
		what: "logged", budget: budget{bound: 2}, dir: "peers", test: "TestPeers", says: peersSay, env: "ROUNDS=1",
		measure: metric{reported: "ratio"}, ours: metric{reported: "ours", unit: "s"}, limit: metric{reported: "duckdb", unit: "s"},
	}
	silent := row{what: "silent", test: "TestOutage", says: outageSays, measure: metric{reported: "calls"}}
	outage := silent
	outage.what, outage.budget = "outage", budget{bound: 200}

	p := page{at: time.Date(2026, 3, 1, 23, 0, 0, 0, time.UTC), machine: machine{
		cores: 2, processor: "Abacus", memory: 8 << 30, syncs: 1234.5, goVersion: "1.26.8", postgresql: "15.18"}}
	for _, r := range []row{sweep, calls, acting, unexplained, atLeast, gone, mute} {
		p.results = append(p.results, r.judge(said, ""))
	}
	p.results = append(p.results, gone.judge("", "x_test.go:1: no python"), logs.judge(peersSaid, ""), silent.judge(said, ""), outage.judge(outageSaid, ""))
	var out bytes.Buffer
	p.write(&out)
	for _, want := range []string{
		"on 2026-03-01;", "| cores | 2 (Abacus) |", "| memory | 8 GiB |", "| 1,235 a second |", "| Go | 1.26.8 |", "| PostgreSQL | 15.18 |",
		"| a sweep, held against a loop | 41.5 s | 10 s | 4.15 | ≤ 5 | met |",
		"| calls |  |  | 1.01 | ≤ 1.01 | met |",
		"| acting | 1,234,567 µs |  | 2.75 | ≤ 2.5 | **missed** |",
		"| at least | 1,234,567 µs |  | 2.75 | ≥ 2.75 x | met |",
		"| gone | | | | ≤ 1 | not measured |",
		"| logged | 0.95 s | 0.8 s | 1.19 | ≤ 2 | met |",
		"| silent | | | | ≤ 0 | not measured |",
		"| outage |  |  | 61 | ≤ 200 | met |",
		"ROUNDS=1 go -C peers test -vet=off -timeout=10m -count=1 -v -run='^TestPeers$' ./\n",
		"* **acting** misses its budget: the disk is slow.", "* **acting**: measured at half.",
		"* **acting again** misses its budget, and nobody has said why yet.",
		"* **gone** was not measured: the command ran and measured nothing of this name.",
		"* **gone** was not measured: x_test.go:1: no python.",
		`* **mute** was not measured: the benchmark tells no "lost".`,
		"go test -vet=off -timeout=10m -run='^$' -bench='^BenchmarkSweep$/^100000$' -benchtime=1x ./sweep\nROWS=1 go test",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the page does not say %q:\n%s", want, &out)
		}
	}
	if n := strings.Count(out.String(), "BenchmarkSweep"); n != 1 {
		t.Errorf("one command for two rows is shown %d times", n)
	}
}

func TestWhatTakesHoursHasASectionOfItsOwn(t *testing.T) {
	t.Parallel()
	large := row{what: "ten million", budget: budget{bound: 5}, pkg: "sweep", benchmark: "BenchmarkSweep/100000", times: "1x", tags: "bench_large", timeout: "180m",
		measure: metric{reported: "x-sql"}, missed: "it is night"}
	small := large
	small.what, small.tags, small.timeout = "one million", "", ""
	write := func(p part, r row, said string) string {
		var b bytes.Buffer
		p.write(page{results: []result{r.judge(said, "")}}, &b)
		return b.String()
	}
	first := minutes.join(write(minutes, small, said), "")
	if !strings.Contains(first, "Not measured yet: `make bench-large`") || strings.Contains(first, "bench_large") {
		t.Errorf("a page without them says\n%s", first)
	}
	measured := hours.join(write(hours, large, said), first)
	page, section, _ := strings.Cut(measured, largeHeading)
	if !strings.HasPrefix(first, page) || strings.Contains(section, "Not measured yet") {
		t.Errorf("the first page\n%s\nbecomes\n%s", first, measured)
	}
	for _, want := range []string{
		"Written by `make bench-large` on", "| cores |", "| ten million |  |  | 4.15 | ≤ 5 | met |",
		"go test -vet=off -timeout=180m -tags=bench_large -run='^$' -bench='^BenchmarkSweep$/^100000$' -benchtime=1x ./sweep\n",
	} {
		if !strings.Contains(section, want) {
			t.Errorf("the section does not say %q:\n%s", want, section)
		}
	}
	faster := strings.ReplaceAll(said, "4.15 x-sql", "3.15 x-sql")
	again := minutes.join(write(minutes, small, faster), measured)
	if page, kept, _ := strings.Cut(again, largeHeading); kept != section || !strings.Contains(page, "| one million |  |  | 3.15 |") {
		t.Errorf("after another make bench the page is\n%s", again)
	}
	if slower := hours.join(write(hours, large, strings.ReplaceAll(said, "4.15 x-sql", "9 x-sql")), again); strings.Count(slower, "ten million") != 2 ||
		!strings.Contains(slower, "* **ten million** misses its budget: it is night.") || !strings.Contains(slower, "| one million |  |  | 3.15 |") {
		t.Errorf("after another make bench-large the page is\n%s", slower)
	}
}

// TestEveryRowNamesABenchmarkThatIsThere keeps the list in step with the code.
func TestEveryRowNamesABenchmarkThatIsThere(t *testing.T) {
	t.Parallel()
	for _, r := range slices.Concat(rows, largeRows) {
		files, err := filepath.Glob(filepath.Join("../..", r.dir, r.pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var text []byte
		for _, file := range append(files, "../turns/turns.go") {
			one, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, one...)
		}
		name, _, _ := strings.Cut(r.benchmark+r.test, "/")
		if !regexp.MustCompile(`(?m)^func ` + name + `\(`).Match(text) {
			t.Errorf("%s: there is no %s in %s", r.what, name, filepath.Join(r.dir, r.pkg))
		}
		for _, m := range []metric{r.measure, r.ours, r.limit} {
			if r.test == "" && m.reported != "" && m.reported != "ns/op" && !bytes.Contains(text, []byte(`"`+m.reported+`"`)) {
				t.Errorf("%s: nothing in %s reports %q", r.what, filepath.Join(r.dir, r.pkg), m.reported)
			}
		}
	}
}

// TestACommandIsRunOnceForAllItsRows runs real commands: one that fails tells why.
func TestACommandIsRunOnceForAllItsRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/tiny\n\ngo 1.26\n",
		"tiny_test.go": `package tiny

import (
	"os"
	"testing"
)

func BenchmarkTiny(b *testing.B) {
	b.ReportMetric(7, "ratio")
	b.ReportMetric(3, "calls")
}

func BenchmarkBroken(b *testing.B) { b.Fatal("there is no " + os.Getenv("WHAT")) }
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tiny := row{what: "tiny", dir: dir, benchmark: "BenchmarkTiny", times: "1x", measure: metric{reported: "ratio"}, budget: budget{bound: 7}}
	calls := tiny
	calls.what, calls.measure = "calls", metric{reported: "calls"}
	broken := row{what: "broken", dir: dir, benchmark: "BenchmarkBroken", times: "1x", env: "WHAT=python", measure: metric{reported: "ratio"}}
	var progress bytes.Buffer
	got := measure(t.Context(), []row{tiny, calls, broken}, &progress)
	if n := strings.Count(progress.String(), "go -C"); n != 2 {
		t.Errorf("%d commands were run, want 2:\n%s", n, &progress)
	}
	if !got[0].met() || got[1].values["calls"] != 3 || !strings.Contains(got[2].failure, "there is no python") {
		t.Errorf("measured %+v", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := measure(ended, []row{tiny}, io.Discard); got[0].failure == "" {
		t.Error("a run that was stopped measured something")
	}
}

func TestTheMachineIsFoundOut(t *testing.T) {
	t.Parallel()
	m := look(t.Context())
	if m.cores < 1 || m.memory < 1<<20 || m.syncs <= 0 || m.goVersion == "" || m.postgresql == "" {
		t.Errorf("found %+v", m)
	}
}
