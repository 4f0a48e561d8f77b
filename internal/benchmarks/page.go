package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// page is the report.
type page struct {
	at      time.Time
	machine machine
	results []result
}

// write writes the page as Markdown.
func (p page) write(w io.Writer) {
	fmt.Fprintf(w, `# Speed beside its limit

Written by %s on %s; the list of rows is in %s. Each budget is held against
the least that the same work can cost on the same machine at the same time: the rounds of both take turns,
and the ratio is that of the medians or the median of the rounds' ratios, as the benchmark says.

%s
| what | ours | the limit | measured | budget | |
|---|--:|--:|--:|--:|---|
`, "`make bench`", p.at.UTC().Format(time.DateOnly), "`internal/benchmarks`", p.machine)
	for _, r := range p.results {
		fmt.Fprintln(w, r.line())
	}
	p.remarks(w)
	fmt.Fprint(w, "\n## The commands\n\n```\n")
	told := map[string]bool{}
	for _, r := range p.results {
		if command := r.command(); !told[command] {
			told[command] = true
			fmt.Fprintln(w, command)
		}
	}
	fmt.Fprint(w, "```\n")
}

// line is the row of the table.
func (r result) line() string {
	what := r.what
	if r.against != "" {
		what += ", held against " + r.against
	}
	if r.failure != "" {
		return fmt.Sprintf("| %s | | | | %s | not measured |", what, r.budget)
	}
	value, _ := r.measure.of(r.values)
	fate := "met"
	if !r.met() {
		fate = "**missed**"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", what, r.ours.text(r.values), r.limit.text(r.values),
		number(value)+space(r.measure.unit), r.budget, fate)
}

// remarks says why rows were missed or not measured, and what was measured at less than
// full size.
func (p page) remarks(w io.Writer) {
	var lines []string
	for _, r := range p.results {
		switch {
		case r.failure != "":
			lines = append(lines, fmt.Sprintf("* **%s** was not measured: %s.", r.what, strings.TrimSuffix(r.failure, ".")))
		case !r.met() && r.missed == "":
			lines = append(lines, fmt.Sprintf("* **%s** misses its budget, and nobody has said why yet.", r.what))
		case !r.met():
			lines = append(lines, fmt.Sprintf("* **%s** misses its budget: %s.", r.what, r.missed))
		}
		if r.smaller != "" && r.failure == "" {
			lines = append(lines, fmt.Sprintf("* **%s**: %s.", r.what, r.smaller))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(w, "\n## Remarks\n\n%s\n", strings.Join(lines, "\n"))
	}
}

// text shows a metric's value with its unit; empty where the benchmark does not tell it.
func (m metric) text(values map[string]float64) string {
	v, ok := m.of(values)
	if !ok {
		return ""
	}
	return number(v) + space(m.unit)
}

func (b budget) String() string {
	sign := "≤ "
	if b.atLeast {
		sign = "≥ "
	}
	return sign + number(b.bound) + space(b.unit)
}

func space(unit string) string {
	if unit == "" {
		return ""
	}
	return " " + unit
}

// number shows three digits, and large numbers whole with their thousands apart.
func number(v float64) string {
	if math.Abs(v) < 1000 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	digits := strconv.FormatFloat(math.Round(v), 'f', 0, 64)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
