package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// page is the report, but for the section of the large rows.
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
and the ratio is the median of the rounds' ratios.

%s
`, "`make bench`", p.at.UTC().Format(time.DateOnly), "`internal/benchmarks`", p.machine)
	p.table(w)
	p.remarks(w, "## Remarks\n\n")
	fmt.Fprint(w, "\n## The commands\n\n")
	p.commands(w)
}

// largeHeading begins the section of what takes hours, which is the last of the page.
const largeHeading = "## What takes hours\n"

// notYet is what it says before anybody has measured it.
const notYet = "\nNot measured yet: `make bench-large` does, and leaves the rest of this page as it is.\n"

// writeLarge writes the section of the large rows. It has a date and a machine of its own,
// since the rest of the page is written more often.
func (p page) writeLarge(w io.Writer) {
	fmt.Fprintf(w, "%s\nWritten by `make bench-large` on %s; `make bench` leaves it as it is. Each is measured once.\n\n%s\n", largeHeading, p.at.UTC().Format(time.DateOnly), p.machine)
	p.table(w)
	p.remarks(w, "")
	fmt.Fprintln(w)
	p.commands(w)
}

// withLarge is a page with the section of the large rows of an older one.
func withLarge(page, older string) string {
	_, section, measured := strings.Cut(older, largeHeading)
	if !measured {
		section = notYet
	}
	return page + "\n" + largeHeading + section
}

// replaceLarge is an older page with a new section of the large rows.
func replaceLarge(section, older string) string {
	page, _, _ := strings.Cut(older, largeHeading)
	return page + section
}

func (p page) table(w io.Writer) {
	fmt.Fprint(w, "| what | ours | the limit | measured | budget | |\n|---|--:|--:|--:|--:|---|\n")
	for _, r := range p.results {
		fmt.Fprintln(w, r.line())
	}
}

func (p page) commands(w io.Writer) {
	fmt.Fprint(w, "```\n")
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
func (p page) remarks(w io.Writer, heading string) {
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
		fmt.Fprintf(w, "\n%s%s\n", heading, strings.Join(lines, "\n"))
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
