//go:build e2e

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ahead is how much later than everybody else one process of a whole soak believes it is.
const ahead = "600" // seconds

// buildAhead builds the program with a clock that is ten minutes ahead. No product code
// knows of it: the one line of the standard library with which Go reads the wall clock is
// changed for this build alone. Timers and durations go by the monotonic clock, which is
// right, as it is on a machine whose clock is wrong.
func buildAhead(t *testing.T, dir string) string {
	t.Helper()
	const reads = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {"
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(strings.TrimSpace(string(root)), "src/time/time.go")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), reads); n != 1 {
		t.Fatalf("%s reads the clock in %d places as this test knows it, want one", file, n)
	}
	changed := filepath.Join(dir, "time.go")
	later := strings.Replace(string(text), reads, "\tsec, nsec, mono := runtimeNow()\n\tsec += "+ahead+"\n\tif mono == 0 {", 1)
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	plan, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "reconciler-ahead")
	for name, text := range map[string]string{changed: later, plan: string(overlay)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if said, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", plan, "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the program with another clock: %v\n%s", err, said)
	}
	return program
}
