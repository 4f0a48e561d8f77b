// Command mutants puts deliberate faults into the product, one after the other, and runs
// the tests that must notice each. A fault that no test notices is a test that is
// missing.
//
// No fault touches the checkout: it stands in a file of its own, and the compiler is told
// to read that one instead (go's -overlay, which holds for embedded SQL too).
//
//	go run ./internal/mutants              every fault
//	go run ./internal/mutants blind lease  those with one of these words in their names
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, ".", os.Args[1:], os.Stdout))
}

// run gives 0 where every fault was caught, 1 where one survived or could not be tried, and
// 2 where nothing has such a name.
func run(ctx context.Context, root string, words []string, out io.Writer) int {
	chosen := choose(mutants(), words)
	if len(chosen) == 0 {
		fmt.Fprintf(out, "no fault has one of these words in its name: %s\n", strings.Join(words, " "))
		return 2
	}
	began, t := time.Now(), tests{root: root, sound: map[group]bool{}}
	tally := map[fate]int{}
	for _, m := range chosen {
		if ctx.Err() != nil {
			fmt.Fprintln(out, "stopped")
			return 1
		}
		begun := time.Now()
		v := t.try(ctx, m)
		tally[v.fate]++
		fmt.Fprintf(out, "%-12s %-60s %s (%s)\n", v.fate, m.name, v.by, time.Since(begun).Round(100*time.Millisecond))
	}
	fmt.Fprintf(out, "%d faults, %d caught, in %s\n", len(chosen), tally[caught], time.Since(began).Round(time.Second))
	if tally[caught] < len(chosen) {
		return 1
	}
	return 0
}

// choose keeps those whose name holds one of the words; no words keep all.
func choose(all []mutant, words []string) []mutant {
	if len(words) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(m mutant) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(m.name, w) })
	})
}
