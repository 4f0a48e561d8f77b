package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// secretFile is where the examples say that a secret is, as compose and systemd put it there.
var secretFile = regexp.MustCompile(`(/run/secrets|\$\{CREDENTIALS_DIRECTORY\})/([a-z_0-9]+)`)

// Every configuration that people are given to begin with is right, and is named on the
// page about them.
func TestTheExamplesOfConfigurationsAreRight(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/configurations/*.yaml")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d examples were found, %v", len(files), err)
	}
	page, err := os.ReadFile("../../examples/configurations/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, "../../deploy/compose/reconciler.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if in := filepath.Base(filepath.Dir(file)) == "configurations"; in && !bytes.Contains(page, []byte("]("+filepath.Base(file)+")")) {
				t.Errorf("README.md does not name %s", file)
			}
			dir := t.TempDir()
			for _, name := range secretFile.FindAllStringSubmatch(string(text), -1) {
				write(t, dir, name[2], "whsec_TESTONLYTESTONLYTESTONLYTESTONLY\n")
			}
			config := write(t, dir, "reconciler.yaml", strings.ReplaceAll(string(text), "/run/secrets/", dir+"/"))
			environ := []string{"CREDENTIALS_DIRECTORY=" + dir, "STRIPE_API_KEY=rk_live_TESTONLY",
				"RECONCILER_DATABASE_URL=postgres://pooler.example/r", "RECONCILER_DIRECT_URL=postgres://db.example/r"}
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"config", "check", "--config", config}, environ, streams{in: strings.NewReader(""), out: &out, err: &errs})
			if code != exitDone || strings.Contains(out.String(), "note:") {
				t.Errorf("exit %d\n%s%s", code, &out, &errs)
			}
		})
	}
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
