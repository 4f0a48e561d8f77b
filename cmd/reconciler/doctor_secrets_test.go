package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

func TestDoctorTellsWhatEverybodyMayReadOfSecrets(t *testing.T) {
	t.Parallel()
	root, err := os.MkdirTemp("/tmp", "secrets") // folders above let everybody in, as those of tests do not
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	put := func(dir string, folder fs.FileMode, file string, mode fs.FileMode) string {
		dir, path := filepath.Join(root, dir), filepath.Join(root, dir, file)
		for _, err := range []error{os.MkdirAll(dir, 0o755), os.WriteFile(path, []byte("x"), 0o600), os.Chmod(path, mode), os.Chmod(dir, folder), os.Chmod(root, 0o755)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(put("linked", 0o755, "key", 0o644), link); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		file string
		want string // empty: nobody else may
	}{
		"ours alone":           {put("a", 0o755, "own", 0o600), ""},
		"of a group":           {put("b", 0o755, "group", 0o660), ""},
		"read by everybody":    {put("c", 0o755, "open", 0o644), "may be read by every user of this machine: let nobody but the user that runs `reconciler serve` read it"},
		"changed by everybody": {put("d", 0o755, "wide", 0o666), "may be changed by every user"},
		"in a closed folder":   {put("e", 0o750, "inside", 0o644), ""},
		"behind a link":        {link, "may be read by every user"},
		"gone meanwhile":       {filepath.Join(root, "gone"), "cannot be told"},
	} {
		advice := secretAdvice([]string{tt.file})
		if len(advice) != 1 || (advice[0].Level == ledger.Warning) != (tt.want != "") || !strings.Contains(advice[0].Text, tt.want) {
			t.Errorf("%s: %v", name, advice)
		}
	}
	if advice := secretAdvice(nil); advice != nil {
		t.Errorf("without files: %v", advice)
	}
}
