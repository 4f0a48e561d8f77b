package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// row is one budget and how it is measured.
type row struct {
	what    string
	against string // the physical limit, or empty where the budget is absolute
	budget  budget

	dir       string // the module's folder, empty for the product's own
	pkg       string // below it
	benchmark string // its whole name, such as BenchmarkSweep/100000
	times     string // -benchtime
	tags      string // build tags that it needs, or empty
	timeout   string // empty: 10m
	// test and says stand in the place of a benchmark where a test measures: its name, and
	// what it logs, with the values as named groups.
	test string
	says *regexp.Regexp
	env  string // variables before the command

	measure metric // what the budget holds
	// ours and limit are what was measured on either side, where the benchmark tells.
	ours, limit metric
	// missed says why a budget is missed, where that is known and lasts.
	missed string
	// smaller says how what is measured here is less than what the budget speaks of.
	smaller string
}

// budget bounds a value from above, or from below.
type budget struct {
	bound   float64
	atLeast bool
	unit    string
}

// metric is a value of a benchmark by the unit that it reports it under, times scale (0: 1),
// shown with unit.
type metric struct {
	reported string
	scale    float64
	unit     string
}

// result is a row with what was measured.
type result struct {
	row
	values  map[string]float64 // by reported unit
	failure string             // why there is none
}

// command is what anybody types to measure the row alone.
func (r row) command() string {
	words := []string{"go"}
	if r.env != "" {
		words = []string{r.env, "go"}
	}
	if r.dir != "" {
		words = append(words, "-C", r.dir)
	}
	words = append(words, "test", "-vet=off", "-timeout="+cmp.Or(r.timeout, "10m"))
	if r.tags != "" {
		words = append(words, "-tags="+r.tags)
	}
	if r.test != "" {
		words = append(words, "-count=1", "-v", "-run='^"+r.test+"$'")
	} else {
		words = append(words, "-run='^$'", "-bench='"+pattern(r.benchmark)+"'", "-benchtime="+r.times)
	}
	return strings.Join(append(words, "./"+r.pkg), " ")
}

// pattern picks exactly one benchmark: go matches each part of its name for itself.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + part + "$"
	}
	return strings.Join(parts, "/")
}

// judge reads the row's values out of a command's output.
func (r row) judge(output, failure string) result {
	out := result{row: r, failure: failure}
	if failure != "" {
		return out
	}
	values, found := read(output)[r.benchmark]
	if r.test != "" {
		values, found = r.logged(output)
	}
	switch _, measured := values[r.measure.reported]; {
	case !found:
		out.failure = "the command ran and measured nothing of this name"
	case !measured:
		out.failure = fmt.Sprintf("the benchmark tells no %q", r.measure.reported)
	default:
		out.values = values
	}
	return out
}

var (
	// line is a line of a benchmark's output: its name, how often it ran, and pairs of value
	// and unit.
	line = regexp.MustCompile(`(?m)^(Benchmark\S+)\s+\d+\t(.*)$`)
	// processors end a name where there are several; a name may end alike by itself.
	processors = regexp.MustCompile(`-\d+$`)
)

// read gives the values of every benchmark in an output, by unit and by name, with and
// without the number of processors.
func read(output string) map[string]map[string]float64 {
	all := map[string]map[string]float64{}
	for _, found := range line.FindAllStringSubmatch(output, -1) {
		fields := strings.Fields(found[2])
		values := map[string]float64{}
		for i := 0; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				values[fields[i+1]] = v
			}
		}
		all[found[1]] = values
		all[processors.ReplaceAllString(found[1], "")] = values
	}
	return all
}

// logged gives the values that a test logs, by the names of the groups.
func (r row) logged(output string) (map[string]float64, bool) {
	found := r.says.FindStringSubmatch(output)
	values := map[string]float64{}
	for i, name := range r.says.SubexpNames() {
		if found == nil || name == "" {
			continue
		}
		if v, err := strconv.ParseFloat(found[i], 64); err == nil {
			values[name] = v
		}
	}
	return values, found != nil
}

// of gives a metric's value, and false where the benchmark does not tell it.
func (m metric) of(values map[string]float64) (float64, bool) {
	v, ok := values[m.reported]
	if m.scale != 0 {
		v *= m.scale
	}
	return v, ok && m.reported != ""
}

// met reports whether the budget was kept.
func (r result) met() bool {
	v, ok := r.measure.of(r.values)
	switch {
	case !ok:
		return false
	case r.budget.atLeast:
		return v >= r.budget.bound
	}
	return v <= r.budget.bound
}
