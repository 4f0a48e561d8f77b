package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestEveryFaultStillApplies keeps the list in step with the code: each fault changes one
// place and names tests that exist.
func TestEveryFaultStillApplies(t *testing.T) {
	t.Parallel()
	named, known := map[string]bool{}, testNames{}
	for _, m := range mutants() {
		if _, err := m.mutated(root); err != nil {
			t.Error(err)
			continue
		}
		if named[m.name] {
			t.Errorf("two faults are called %q", m.name)
		}
		named[m.name] = true
		if !slices.ContainsFunc(known.of(t, m.pkg), regexp.MustCompile(m.tests).MatchString) {
			t.Errorf("the fault %q: no test of %s is named like %s", m.name, m.pkg, m.tests)
		}
	}
	if len(named) < 40 {
		t.Errorf("%d faults, at least 40 are wanted", len(named))
	}
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

// testNames are the names of a package's tests, by package.
type testNames map[string][]string

func (n testNames) of(t *testing.T, pkg string) []string {
	t.Helper()
	if names, read := n[pkg]; read {
		return names
	}
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	n[pkg] = nil
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range testFunction.FindAllStringSubmatch(string(text), -1) {
			n[pkg] = append(n[pkg], match[1])
		}
	}
	return n[pkg]
}

// module writes a module of its own.
func module(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestAFaultIsCaughtOnlyByATestThatFails runs faults on a tiny module of its own.
func TestAFaultIsCaughtOnlyByATestThatFails(t *testing.T) {
	t.Parallel()
	dir := module(t, map[string]string{
		"go.mod":   "module example.com/tiny\n\ngo 1.26\n",
		"text.sql": "one two",
		"tiny.go":  "package tiny\n\nimport _ \"embed\"\n\n//go:embed text.sql\nvar text string\n\nfunc double(n int) int { return 2 * n }\n",
		"tiny_test.go": "package tiny\n\nimport \"testing\"\n\nfunc TestFails(t *testing.T) {\n\tt.Fatal(\"always\")\n}\n\nfunc TestDouble(t *testing.T) {\n\tt.Run(\"of two\", func(t *testing.T) {\n" +
			"\t\tif double(2) != 4 {\n\t\t\tt.Fatal(double(2))\n\t\t}\n\t})\n}\n\n" +
			"func TestText(t *testing.T) {\n\tif text[:3] != \"one\" {\n\t\tt.Fatal(text)\n\t}\n}\n",
	})
	before, err := os.ReadFile(filepath.Join(dir, "tiny.go"))
	if err != nil {
		t.Fatal(err)
	}
	tiny := tests{root: dir, sound: map[group]bool{}}
	for _, tt := range []struct {
		m    mutant
		want verdict
	}{
		{mutant{name: "a wrong product", file: "tiny.go", old: "2 * n", new: "3 * n"}, verdict{caught, "TestDouble/of_two"}},
		{mutant{name: "an equal product", file: "tiny.go", old: "2 * n", new: "n * 2"}, verdict{survived, ""}},
		{mutant{name: "in an embedded file", file: "text.sql", old: "one", new: "two"}, verdict{caught, "TestText"}},
		{mutant{name: "where no test looks", file: "text.sql", old: "two", new: "three"}, verdict{survived, ""}},
		{mutant{name: "the process ends", file: "tiny.go", old: "2 * n", new: "[]int{}[n]"}, verdict{caught, "TestDouble/of_two"}},
		{mutant{name: "not Go", file: "tiny.go", old: "2 * n", new: "two * n"}, verdict{unusable, "undefined: two"}},
		{mutant{name: "stale", file: "tiny.go", old: "4 * n", new: "n"}, verdict{unusable, "stands 0 times"}},
		{mutant{name: "no test", file: "tiny.go", old: "2 * n", new: "n", tests: "Nobody"}, verdict{undecided, "no test ran"}},
		{mutant{name: "a test that fails anyway", file: "tiny.go", old: "2 * n", new: "n * 2", tests: "Fails"}, verdict{undecided, "without any fault TestFails"}},
	} {
		if tt.m.tests == "" {
			tt.m.tests = "Double|Text"
		}
		got := tiny.try(t.Context(), tt.m)
		if got.fate != tt.want.fate || !strings.Contains(got.by, tt.want.by) {
			t.Errorf("%s: %s %s, want %s %s", tt.m.name, got.fate, got.by, tt.want.fate, tt.want.by)
		}
	}
	if after, err := os.ReadFile(filepath.Join(dir, "tiny.go")); err != nil || string(after) != string(before) {
		t.Errorf("the file itself was changed (%v):\n%s", err, after)
	}
}

func TestTestsThatTakeTooLongDecideNothing(t *testing.T) {
	t.Parallel()
	const said = `{"Action":"run","Package":"p","Test":"TestX"}
{"Action":"output","Package":"p","Test":"TestX","Output":"panic: test timed out after 6m0s\\n"}
{"Action":"fail","Package":"p","Test":"TestX"}
{"Action":"fail","Package":"p"}
`
	if got := judge(strings.NewReader(said)); got.fate != undecided {
		t.Errorf("judged %+v", got)
	}
}

func TestAFaultLeavesNoCounterexampleBehind(t *testing.T) {
	t.Parallel()
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^pgregory\.net/rapid (v\S+) h1:`).FindSubmatch(sums)
	if version == nil {
		t.Fatal("rapid is in go.sum no more")
	}
	dir := module(t, map[string]string{
		"go.mod":  "module example.com/tiny\n\ngo 1.26\n\nrequire pgregory.net/rapid " + string(version[1]) + "\n",
		"go.sum":  string(sums),
		"tiny.go": "package tiny\n\nfunc double(n int) int { return 2 * n }\n",
		"tiny_test.go": "package tiny\n\nimport (\n\t\"testing\"\n\n\t\"pgregory.net/rapid\"\n)\n\nfunc TestDouble(t *testing.T) {\n\trapid.Check(t, func(t *rapid.T) {\n" +
			"\t\tif n := rapid.Int().Draw(t, \"n\"); double(n) != n+n {\n\t\t\tt.Fatal(n)\n\t\t}\n\t})\n}\n",
	})
	tiny := tests{root: dir, sound: map[group]bool{}}
	if got := tiny.try(t.Context(), mutant{name: "a wrong product", file: "tiny.go", old: "2 * n", new: "3 * n"}); got.fate != caught {
		t.Errorf("%s %s, want it caught", got.fate, got.by)
	}
	left, err := filepath.Glob(filepath.Join(dir, "testdata", "*", "*", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%v, %v: the checkout must stay as it was", left, err)
	}
}
