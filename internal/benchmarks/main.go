// Command benchmarks measures every budget of speed, each beside its own physical limit,
// and writes what came of it as docs/benchmarks.md.
//
//	go run ./internal/benchmarks -o docs/benchmarks.md   every row
//	go run ./internal/benchmarks audit webhook           rows with one of these words, on the screen
//	go run ./internal/benchmarks -large                  the rows that take hours
//
// A row is a benchmark of the product's own tests; see the list in rows.go. Its command
// stands in the report, so that anybody can run it alone.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	file := flag.String("o", "", "file that the report is written to; empty: the screen")
	large := flag.Bool("large", false, "measure the rows that take hours, and write their section of the report alone")
	flag.Parse()
	part := minutes
	if *large {
		part = hours
	}
	if err := report(ctx, *file, part, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// part is a part of the report that is measured and written by itself.
type part struct {
	rows  []row
	write func(page, io.Writer)
	// join makes the file of what was written and of what the file held.
	join func(written, older string) string
}

var (
	minutes = part{rows, page.write, withLarge}
	hours   = part{largeRows, page.writeLarge, replaceLarge}
)

// report measures the rows of a part and writes it. An error says which rows could not be
// measured, or that the page could not be written; a budget that was missed is none.
func report(ctx context.Context, file string, of part, words []string) error {
	chosen := choose(of.rows, words)
	if len(chosen) == 0 {
		return fmt.Errorf("no row has one of these words: see rows.go in internal/benchmarks")
	}
	p := page{at: time.Now(), machine: look(ctx), results: measure(ctx, chosen, os.Stderr)}
	var text bytes.Buffer
	of.write(p, &text)
	if file == "" {
		_, err := text.WriteTo(os.Stdout)
		return err
	}
	older, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(file, []byte(of.join(text.String(), string(older))), 0o644); err != nil {
		return err
	}
	var failed []string
	for _, r := range p.results {
		if r.failure != "" {
			failed = append(failed, r.what)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("not measured: %s", strings.Join(failed, "; "))
	}
	return nil
}

// choose keeps the rows that hold one of the words; no words keep all.
func choose(all []row, words []string) []row {
	var kept []row
	for _, r := range all {
		if len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return strings.Contains(r.what, w) }) {
			kept = append(kept, r)
		}
	}
	return kept
}

// measure runs the command of each row, once where rows share one.
func measure(ctx context.Context, chosen []row, progress io.Writer) []result {
	outputs, failures := map[string]string{}, map[string]string{}
	var results []result
	for _, r := range chosen {
		command := r.command()
		if _, known := outputs[command]; !known {
			began := time.Now()
			outputs[command], failures[command] = run(ctx, command)
			fmt.Fprintf(progress, "%s\n  %s %s\n", command, time.Since(began).Round(time.Second), failures[command])
		}
		results = append(results, r.judge(outputs[command], failures[command]))
	}
	return results
}

// run gives what a command printed, and in one line why it failed; empty: it did not.
func run(ctx context.Context, command string) (output, failure string) {
	c := exec.CommandContext(ctx, "bash", "-c", command)
	said, err := c.CombinedOutput()
	if err == nil {
		return string(said), ""
	}
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	for _, line := range lines {
		// The test's own word says more than the last line, which is go's "FAIL".
		if text := strings.TrimSpace(line); strings.Contains(text, "_test.go:") || strings.Contains(text, "panic:") {
			return string(said), text
		}
	}
	return string(said), fmt.Sprintf("%v: %s", err, lines[len(lines)-1])
}
