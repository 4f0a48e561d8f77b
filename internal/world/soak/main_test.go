package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestMain is this command where a test's run of it starts its parts.
func TestMain(m *testing.M) {
	if os.Getenv(partOfSoak) != "" {
		main()
	}
	os.Exit(m.Run())
}

func TestAFewWorldsGoRight(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "soak.json")
	var out, progress bytes.Buffer
	if code := run(t.Context(), []string{"-seeds", "2", "-operations", "15", "-processes", "2", "-json", file}, &out, &progress); code != 0 {
		t.Fatalf("exit code %d: %s\n%s", code, &progress, &out)
	}
	for _, row := range []string{
		`(?m)^ *2  worlds$`, `(?m)^ *3\d  operations$`, `(?m)^ *24  of them imported, from before the product$`, `(?m)^ *0  WRONG: wrong close$`,
		`(?m)^ *0  WRONG: missed finding$`, `(?m)^ *0  WRONG: false finding$`, `processor time`,
	} {
		if !regexp.MustCompile(row).Match(out.Bytes()) {
			t.Errorf("no row like %s in\n%s", row, &out)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var told struct {
		Numbers struct {
			Worlds, Imported int
			Wrong            map[string]int
		}
		Seconds float64
	}
	if err := json.Unmarshal(text, &told); err != nil || told.Numbers.Worlds != 2 || told.Numbers.Imported != 24 || len(told.Numbers.Wrong) != 0 || told.Seconds <= 0 {
		t.Errorf("%v: %s", err, text)
	}
}

func TestWhatCannotBeAskedIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-operations", "0"}, 1, "-operations 0: give a number between 1 and"},
		{[]string{"-seeds", "1", "-operations", "5", "-intents", "3;4"}, 1, `"3;4" is no list of numbers such as 3,17`},
		{[]string{"-worlds", "3"}, 2, "-worlds"},
	} {
		var out, progress bytes.Buffer
		if code := run(t.Context(), tt.args, &out, &progress); code != tt.code || !strings.Contains(progress.String(), tt.says) {
			t.Errorf("%v: exit code %d: %s", tt.args, code, &progress)
		}
	}
}

// A product that names no evidence is built, and lived through: the world is told, made
// small, and printed with the command that repeats it and as a case for a test.
func TestAWorldThatGoesWrongIsToldWithWhatRepeatsIt(t *testing.T) {
	t.Parallel()
	program := faulty(t, "rules/rules.go", "d.LookIDs = v.lookIDs(d)", "_ = v.lookIDs(d)")
	var out, progress bytes.Buffer
	soak := exec.CommandContext(t.Context(), program, "-seeds", "1", "-first", "3", "-operations", "15")
	soak.Stdout, soak.Stderr = &out, &progress
	var exit *exec.ExitError
	if err := soak.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(progress.String(), "1 of 1 worlds went wrong") {
		t.Fatalf("it ended with %v: %s\n%s", err, &progress, &out)
	}
	const unfounded = "nothing closes without a look, a definite answer or a person"
	for _, line := range []string{
		`(?m)^seed 3 went wrong:\n  ` + unfounded + `: op_3_\d+`,
		`(?m)^again: go run ./internal/world/soak -seeds 1 -first 3 -operations 15 -intents \d+ -troubles none$`,
		`(?m)^\tWhat: "` + unfounded + `: .*\n\tSeed: 3, Operations: 15, Intents: \[\]int\{\d+\}, Troubles: \[\]int\{\},\n\tDigest: "[0-9a-f]{16}",$`,
		`(?m)^ *[1-9]\d*  WRONG: ` + unfounded + `$`,
	} {
		if !regexp.MustCompile(line).Match(out.Bytes()) {
			t.Errorf("no line like %s in\n%s", line, &out)
		}
	}
}

// One part dies; what the others found is told all the same.
func TestWhatOtherPartsFoundIsToldWhenOneDies(t *testing.T) {
	t.Parallel()
	program := faulty(t, "internal/world/soak/main.go", "began := time.Now()\n", "began := time.Now()\n\tif o.sum != \"\" && o.first == 2 {\n\t\tos.Exit(3)\n\t}\n")
	var out, progress bytes.Buffer
	soak := exec.CommandContext(t.Context(), program, "-seeds", "2", "-operations", "15", "-processes", "2")
	soak.Stdout, soak.Stderr = &out, &progress
	var exit *exec.ExitError
	if err := soak.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(progress.String(), "part 2 of 2: exit status 3") {
		t.Fatalf("it ended with %v: %s\n%s", err, &progress, &out)
	}
	if !regexp.MustCompile(`(?m)^ *1  worlds$`).Match(out.Bytes()) {
		t.Errorf("the other part is lost:\n%s", &out)
	}
}

// faulty builds this command with one text of the product changed.
func faulty(t *testing.T, file, old, other string) (program string) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil || strings.Count(string(text), old) != 1 {
		t.Fatalf("%q stands not once in %s (%v)", old, file, err)
	}
	dir := t.TempDir()
	changed := filepath.Join(dir, filepath.Base(file))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, file): changed}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{
		changed: []byte(strings.Replace(string(text), old, other, 1)), filepath.Join(dir, "overlay.json"): overlay,
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program = filepath.Join(dir, "soak")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, ".")
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return program
}
