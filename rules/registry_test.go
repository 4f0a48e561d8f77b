package rules_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/rules"
)

// stems gives the names of files that match, without prefix and extension.
func stems(t *testing.T, pattern string, prefixes ...string) []string {
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), filepath.Ext(f))
		for _, p := range prefixes {
			name = strings.TrimPrefix(name, p)
		}
		if !strings.HasSuffix(name, "_test") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestEveryRuleHasItsPageAndEveryPageItsRule(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(rules.Names(), stems(t, "../docs/rules/*.md")); diff != "" {
		t.Errorf("rules and pages differ (-rules +pages):\n%s", diff)
	}
}

func TestEveryRuleIsOneFile(t *testing.T) {
	t.Parallel()
	files := append(stems(t, "decide_*.go", "decide_"), stems(t, "find_*.go", "find_")...)
	slices.Sort(files)
	if diff := cmp.Diff(rules.Names(), files); diff != "" {
		t.Errorf("rules and files differ (-rules +files):\n%s", diff)
	}
}

func TestEveryPageAnswersTheSameQuestions(t *testing.T) {
	t.Parallel()
	want := []string{"## What it catches", "## Example", "## Settings", "## How to silence or snooze", "## What to do"}
	for _, name := range rules.Names() {
		page, err := os.ReadFile("../docs/rules/" + name + ".md")
		if err != nil {
			t.Error(err)
			continue
		}
		var headings []string
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, "## ") {
				headings = append(headings, strings.TrimSpace(line))
			}
		}
		if diff := cmp.Diff(want, headings); diff != "" {
			t.Errorf("%s.md (-want +got):\n%s", name, diff)
		}
		if !strings.HasPrefix(string(page), "# "+name+"\n") {
			t.Errorf("%s.md does not begin with its name", name)
		}
	}
}
