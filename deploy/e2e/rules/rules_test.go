// Package rules holds the alerts to their tests, with the real promtool.
package rules

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/daemon"
)

// TestMain runs the tests where the rules are.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../prometheus"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

const rulesFile = "reconciler.rules.yml"

// promtool runs it and gives what it said.
func promtool(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatalf("%v: run `make deps`, or tools/prometheus, which names the command that installs it", err)
	}
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Stdout, cmd.Stderr = &said, &said
	err = cmd.Run()
	return said.String(), err
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func alertNames(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)$`).FindAllStringSubmatch(read(t, rulesFile), -1) {
		names = append(names, m[1])
	}
	return names
}

func TestTheRulesAndTheExamplesAreValid(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"check", "rules", rulesFile, "thresholds.example.yml"},
		{"check", "config", "prometheus.example.yml"},
	} {
		if said, err := promtool(t, args...); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, said)
		}
	}
}

// Each alert's file has it firing, not firing, resolving, and going on while the daemon is
// dead and while it runs again without its database.
func TestB95_EveryAlertFiresStaysWhileTheDaemonIsDeadAndResolves(t *testing.T) {
	t.Parallel()
	names := alertNames(t)
	if len(names) < 11 {
		t.Fatalf("alerts %v", names)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join("tests", name+".test.yml")
			if said, err := promtool(t, "test", "rules", file); err != nil {
				t.Errorf("%v\n%s", err, said)
			}
			if !strings.Contains(read(t, file), "exp_annotations") {
				t.Errorf("%s does not say what people read", file)
			}
		})
	}
}

func TestAnAlertThatDoesNotFireFailsItsTest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	never := strings.ReplaceAll(read(t, rulesFile), `kind=~"conflict|reversed"`, `kind="none"`)
	for name, text := range map[string]string{
		rulesFile:           never,
		"tests/it.test.yml": read(t, "tests/ReconcilerWrongClose.test.yml"),
	} {
		if err := os.MkdirAll(filepath.Join(dir, "tests"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if said, err := promtool(t, "test", "rules", filepath.Join(dir, "tests/it.test.yml")); err == nil {
		t.Errorf("it passes:\n%s", said)
	}
}

func TestTheRulesReadMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	page := daemon.MetricsPage()
	var named []string
	for _, m := range regexp.MustCompile(`\breconciler_\w+`).FindAllString(read(t, rulesFile), -1) {
		if !slices.Contains(named, m) {
			named = append(named, m)
		}
		if !strings.Contains(page, "`"+m+"`") {
			t.Errorf("the program shows no %s", m)
		}
	}
	if len(named) < 9 {
		t.Errorf("the rules read %v", named)
	}
}
