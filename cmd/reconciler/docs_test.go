package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheGeneratedPagesAreCurrent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out, err bytes.Buffer
	if code := run(t.Context(), []string{"docs", "--dir", dir}, nil, streams{out: &out, err: &err}); code != exitDone {
		t.Fatalf("exit %d: %s", code, &err)
	}
	for _, name := range []string{"cli.md", "config.md", "metrics.md"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("docs/%s is old; run `make generate` (-program +file):\n%s", name, diff)
		}
	}
}
