package localpg

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOnlyALocalPostgreSQLThatNobodyUsesIsDiscarded(t *testing.T) {
	t.Parallel()
	folder := func(files ...string) string {
		dir := t.TempDir()
		for _, name := range files {
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	held := folder("lock", "data/PG_VERSION")
	lock, err := tryLock(filepath.Join(held, "lock"))
	if err != nil || lock == nil {
		t.Fatal(lock, err)
	}
	defer lock.Close()
	for name, c := range map[string]struct {
		dir  string
		had  bool
		says string // in the error; the folder stays
	}{
		"a server's":                     {folder("lock", "data/PG_VERSION", "postgresql.log", "socket.old"), true, ""},
		"none":                           {filepath.Join(folder(), "none"), false, ""},
		"an empty one":                   {folder(), false, ""},
		"somebody's":                     {folder("invoices.csv"), false, "it holds invoices.csv: nothing was removed"},
		"a server's with something else": {folder("lock", "data/PG_VERSION", "notes.txt"), false, "it holds notes.txt"},
		"one without our lock":           {folder("data/PG_VERSION"), false, "it holds data"},
		"one in use":                     {held, false, "in use by another process"},
	} {
		had, err := Discard(c.dir)
		if had != c.had || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v; want %v, %q", name, had, err, c.had, c.says)
		}
		if _, err := os.Stat(c.dir); (err == nil) != (c.says != "") {
			t.Errorf("%s: is there afterwards: %v", name, err == nil)
		}
	}
}
