package peers

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// maxPeak is the budget of memory for a million operations beside a million effects, and
// maxRatio that of time, beside DuckDB.
const (
	maxPeak  = 512 << 20
	maxRatio = 1.5
)

// TestPeersFindTheSame reconciles the same two files by every engine, round by round, and
// prints what each took. All must find the same discrepancies, which are those that were
// planted. PEERS_ROWS (20,000) and PEERS_ROUNDS (1) say how much is done.
//
// How long it took is printed and not judged: that depends on what else the machine does.
// How much memory ours held does not.
func TestPeersFindTheSame(t *testing.T) {
	n, rounds := number(t, "PEERS_ROWS", 20_000), number(t, "PEERS_ROUNDS", 1)
	p := makePair(t, n)
	all := engines(t)
	took := make([][]result, len(all))
	for range rounds {
		for i, e := range all {
			r := e.run(t, p)
			took[i] = append(took[i], r)
			if !slices.Equal(r.found, took[0][0].found) {
				t.Errorf("%s found %s; %s found %s", e.name, differences(r.found, took[0][0].found), all[0].name, differences(took[0][0].found, r.found))
			}
		}
	}
	counts := map[string]int{}
	for _, f := range took[0][0].found {
		kind, _, _ := strings.Cut(f, " ")
		counts[kind]++
	}
	if fmt.Sprint(counts) != fmt.Sprint(p.truth) {
		t.Errorf("found %v, planted were %v", counts, p.truth)
	}
	t.Logf("%d operations, as many effects, median of %d\n%s", n, rounds, table(all, took))
	if peak := slices.MaxFunc(took[0], func(a, b result) int { return int(a.peak - b.peak) }).peak; n <= 1_000_000 && peak > maxPeak {
		t.Errorf("ours held %d MiB, at most %d", peak>>20, maxPeak>>20)
	}
}

// table shows the medians, with the ratio to DuckDB as the median of the rounds' own ratios.
func table(all []engine, took [][]result) string {
	var text strings.Builder
	out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "wall s\tCPU s\tpeak MiB\t× DuckDB\t\t")
	for i, e := range all {
		var ratios []float64
		for round, r := range took[i] {
			ratios = append(ratios, r.wall.Seconds()/took[1][round].wall.Seconds())
		}
		seconds := func(of func(result) time.Duration) float64 {
			return median(took[i], func(r result) float64 { return of(r).Seconds() })
		}
		cpu := "?"
		if took[i][0].cpu > 0 {
			cpu = fmt.Sprintf("%.2f", seconds(func(r result) time.Duration { return r.cpu }))
		}
		fmt.Fprintf(out, "%.2f\t%s\t%.0f\t%.2f\t  %s\n", seconds(func(r result) time.Duration { return r.wall }), cpu,
			median(took[i], func(r result) float64 { return float64(r.peak >> 20) }), median(ratios, func(x float64) float64 { return x }), e.name)
	}
	out.Flush()
	fmt.Fprintf(&text, "budget of ours: %.1f × DuckDB, %d MiB", maxRatio, maxPeak>>20)
	return text.String()
}

func median[T any](of []T, value func(T) float64) float64 {
	var values []float64
	for _, v := range of {
		values = append(values, value(v))
	}
	slices.Sort(values)
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}

// differences gives the first few of what is in a and not in b.
func differences(a, b []string) string {
	only := slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
	return fmt.Sprintf("%d others: %q", len(only), only[:min(len(only), 5)])
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is no number above 0", name, text)
	}
	return n
}
