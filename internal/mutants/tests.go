package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// testsWithin bounds one run. It is far above what any of them takes, so that a slow
// machine decides nothing.
const testsWithin = "6m"

// fate is what became of a fault.
type fate string

const (
	caught    fate = "caught"
	survived  fate = "SURVIVED"
	unusable  fate = "UNUSABLE"  // it does not apply or does not compile: no test caught it
	undecided fate = "UNDECIDED" // the tests came to no end, or none ran
)

// verdict is a fate, and by which test or why.
type verdict struct {
	fate fate
	by   string
}

// group is tests that are run together.
type group struct{ pkg, tests string }

// tests runs tests of the module at root.
type tests struct {
	root  string
	sound map[group]bool // tests that pass without any fault
}

// try runs a fault's tests with the fault. The one that catches it must pass without.
func (t tests) try(ctx context.Context, m mutant) verdict {
	v := t.with(ctx, m)
	if v.fate != caught {
		return v
	}
	name, _, _ := strings.Cut(v.by, "/")
	alone := group{m.pkg, "^" + name + "$"}
	if !t.sound[alone] {
		if without := t.run(ctx, alone, ""); without.fate != survived {
			return verdict{undecided, fmt.Sprintf("without any fault %s: %s %s", name, without.fate, without.by)}
		}
		t.sound[alone] = true
	}
	return v
}

func (t tests) with(ctx context.Context, m mutant) verdict {
	text, err := m.mutated(t.root)
	if err != nil {
		return verdict{unusable, err.Error()}
	}
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return verdict{undecided, err.Error()}
	}
	defer os.RemoveAll(dir)
	overlay, err := t.overlay(dir, m.file, text)
	if err != nil {
		return verdict{undecided, err.Error()}
	}
	return t.run(ctx, group{m.pkg, m.tests}, overlay)
}

// overlay writes a file's other text and the list by which the compiler finds it.
func (t tests) overlay(dir, file, text string) (string, error) {
	original, err := filepath.Abs(filepath.Join(t.root, file))
	if err != nil {
		return "", err
	}
	other := filepath.Join(dir, filepath.Base(file))
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: other}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(other, []byte(text), 0o600); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, list, 0o600)
}

// run runs tests, and says which of them failed first.
func (t tests) run(ctx context.Context, g group, overlay string) verdict {
	args := []string{"test", "-json", "-vet=off", "-failfast", "-timeout=" + testsWithin}
	if overlay != "" {
		args = append(args, "-count=1", "-overlay="+overlay)
	}
	if g.tests != "" {
		args = append(args, "-run="+g.tests)
	}
	command := exec.CommandContext(ctx, "go", append(args, "./"+g.pkg)...)
	command.Dir = t.root
	// Any counterexample will do: rapid neither looks for a smaller one, for half a minute,
	// nor leaves it in the checkout.
	command.Env = append(os.Environ(), "RAPID_SHRINKTIME=0s", "RAPID_NOFAILFILE=1")
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) } // go ends the tests then
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	_ = command.Run() // what it printed says more than its exit code
	return judge(&said)
}

// event is a line of `go test -json`.
type event struct{ Action, Package, Test, Output string }

// judge reads what `go test -json` said.
func judge(said io.Reader) verdict {
	var first, output string
	passed, built, ran := false, true, false
	lines := bufio.NewScanner(said)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			output += lines.Text() + "\n" // go itself speaks, not the tests
			continue
		}
		switch {
		case e.Action == "build-fail":
			built = false
		case e.Action == "build-output":
			output += e.Output
		case e.Action == "output":
			if strings.HasPrefix(e.Output, "panic: test timed out") {
				return verdict{undecided, "the tests took longer than " + testsWithin}
			}
		case e.Test != "" && e.Action == "run":
			ran = true
		case e.Test != "" && e.Action == "fail" && first == "":
			first = e.Test
		case e.Test == "" && e.Action == "pass":
			passed = true
		}
	}
	switch {
	case !built:
		return verdict{unusable, "it does not compile: " + strings.TrimSpace(output)}
	case first != "":
		return verdict{caught, first}
	case passed && ran:
		return verdict{survived, ""}
	}
	return verdict{undecided, "no test ran to its end: " + strings.TrimSpace(output)}
}
