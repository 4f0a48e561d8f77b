package breaker

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// Experiment is work that may break off anywhere. W is the world that it is done in.
type Experiment[W any] struct {
	// New makes a world with work in it, the same each time.
	New func(*testing.T) W
	// Do does the work. All that it sends goes through the breaker.
	Do func(context.Context, W, *Breaker) error
	// Again is what happens then: the time of whoever died is over, and the work is done
	// again and to its end.
	Again func(W)
	// Said is what the world says in the end, line by line.
	Said func(W) []string
}

// sample is how many steps are tried where nobody asks for all of them: two in each way.
const sample = 10

// Everywhere breaks the work off at its steps and demands that, done again, it ends as
// whole work does: each line is one of the work done at once, or of the work done only
// when it is done again, and what both of them say is said. It tries some of the steps, each
// in another way; with INTERRUPT=all it tries every step in every way.
func (e Experiment[W]) Everywhere(t *testing.T) {
	t.Helper()
	whole, passing := e.New(t), &Breaker{}
	if err := e.Do(passing.Context(t.Context()), whole, passing); err != nil {
		t.Fatalf("whole work fails: %v", err)
	}
	e.Again(whole)
	steps := passing.Steps()
	late, dead := e.New(t), &Breaker{How: Killed, At: 1}
	if err := e.Do(dead.Context(t.Context()), late, dead); err == nil {
		t.Fatal("work that dies at its first step says that it is done")
	}
	e.Again(late)
	ends := ends{e.Said(whole), e.Said(late)}
	if len(steps) < 3 || len(ends.atOnce) == 0 {
		t.Fatalf("there is nothing to break: %d steps, %d lines", len(steps), len(ends.atOnce))
	}
	var never atomic.Int64
	tries := breaks(len(steps), os.Getenv("INTERRUPT") == "all")
	t.Cleanup(func() { // when all of them are over
		if n := never.Load(); n > int64(len(tries)/4) {
			t.Errorf("%d of %d tries never came to their step: nothing was broken off", n, len(tries))
		}
	})
	for _, b := range tries {
		t.Run(fmt.Sprintf("%03d %s %.40s", b.At, b.How, steps[b.At-1]), func(t *testing.T) {
			t.Parallel()
			w := e.New(t)
			failure := e.Do(b.Context(t.Context()), w, b)
			if len(b.Steps()) < b.At {
				never.Add(1)
			}
			e.Again(w)
			if diff := ends.differ(e.Said(w)); diff != "" {
				t.Errorf("another end than that of whole work (broken off with %v):\n%s", failure, diff)
			}
		})
	}
}

// ends are what is said of work that is done at once, and of work that is done only later.
type ends struct{ atOnce, later []string }

// differ shows what is said of broken work and of neither whole one, and what is said of
// both of them and not of it; empty: nothing.
func (e ends) differ(broken []string) string {
	var b strings.Builder
	for _, line := range e.atOnce {
		if slices.Contains(e.later, line) && !slices.Contains(broken, line) {
			fmt.Fprintf(&b, "missing: %s\n", line)
		}
	}
	for _, line := range broken {
		if !slices.Contains(e.atOnce, line) && !slices.Contains(e.later, line) {
			fmt.Fprintf(&b, "strange: %s\n", line)
		}
	}
	return b.String()
}

// breaks chooses what is tried.
func breaks(steps int, all bool) []*Breaker {
	var list []*Breaker
	if all {
		for at := 1; at <= steps; at++ {
			for _, how := range Ways {
				list = append(list, &Breaker{How: how, At: at})
			}
		}
		return list
	}
	n := min(sample, steps)
	for i := range n {
		list = append(list, &Breaker{How: Ways[i%len(Ways)], At: 1 + i*(steps-1)/max(n-1, 1)})
	}
	return list
}
