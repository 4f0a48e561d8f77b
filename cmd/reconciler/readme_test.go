package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The sessions that the README shows are run here: each line between its fences
// stands in the output, in that order; … leaves lines out.
func TestTheSessionsOfTheReadmeAreTrue(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	for _, command := range []string{"go run ./cmd/reconciler compare", "make demo"} {
		session := sessionOf(t, string(readme), command)
		args := strings.Fields(strings.TrimPrefix(session[0], "$ go run ./cmd/reconciler "))
		if command == "make demo" {
			args = []string{"demo"}
		}
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, os.Environ(), streams{in: strings.NewReader(""), out: &out, err: &errs}); code != exitDone {
			t.Fatalf("%s: exit %d: %s", session[0], code, errs.String())
		}
		rest := out.String()
		for _, line := range session[1:] {
			line, _, cut := strings.Cut(line, "…")
			at := strings.Index(rest, line)
			if at < 0 || !cut && !strings.HasPrefix(rest[at+len(line):], "\n") {
				t.Fatalf("%s does not print this line, or not there: %q", session[0], line)
			}
			rest = rest[at+len(line):]
		}
	}
}

// sessionOf gives the fenced block that begins with a prompt and the command.
func sessionOf(t *testing.T, readme, command string) []string {
	t.Helper()
	_, block, ok := strings.Cut(readme, "```\n$ "+command)
	if !ok {
		t.Fatalf("the README shows no session of %q", command)
	}
	block, _, _ = strings.Cut("$ "+command+block, "\n```")
	return strings.Split(block, "\n")
}
