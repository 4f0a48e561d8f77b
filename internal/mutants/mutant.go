package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mutant is one deliberate fault.
type mutant struct {
	name     string // what goes wrong, in words
	file     string // below the root
	old, new string // a text that stands in the file exactly once, and what stands there instead
	// pkg is the package whose tests must notice, and tests the ones of them that are run
	// (a regular expression; empty: all).
	pkg, tests string
}

// mutants is every fault, room by room.
func mutants() []mutant {
	return slices.Concat(pairing, judging, planning, recording, acting, people, asking, auditing, receiving, telling)
}

// mutated gives the file's text with the fault in it.
func (m mutant) mutated(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", fmt.Errorf("the fault %q is in no file: %w", m.name, err)
	}
	switch n := strings.Count(string(text), m.old); {
	case m.old == "" || m.old == m.new:
		return "", fmt.Errorf("the fault %q changes nothing", m.name)
	case n != 1:
		return "", fmt.Errorf("the fault %q: its old text stands %d times in %s, and must stand there once; bring internal/mutants up to date", m.name, n, m.file)
	}
	return strings.Replace(string(text), m.old, m.new, 1), nil
}
