package localpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Discard removes the folder of a local PostgreSQL that nobody uses, with all its data,
// and reports whether there was one. It refuses a folder that holds anything else, and
// one whose server runs.
func Discard(dir string) (bool, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look into the folder of a local PostgreSQL: %w", err)
	case len(entries) == 0:
		return false, os.Remove(dir)
	}
	_, err = os.Stat(filepath.Join(dir, "lock"))
	for _, e := range entries {
		if name := e.Name(); err != nil || !ours(name) {
			return false, fmt.Errorf("%s is no folder of a local PostgreSQL alone, it holds %s: nothing was removed; move it away or name another folder", dir, name)
		}
	}
	lock, err := tryLock(filepath.Join(dir, "lock"))
	if err != nil {
		return false, err
	}
	if lock == nil {
		return false, fmt.Errorf("the PostgreSQL in %s is in use by another process: nothing was removed; end that process or name another folder", dir)
	}
	defer lock.Close() // the file is gone by then; this ends the hold
	return true, os.RemoveAll(dir)
}

// ours reports whether a name in the folder of a local PostgreSQL is one that we give.
func ours(name string) bool {
	switch name {
	case "lock", "data", "run", "postgresql.log":
		return true
	}
	return name == "socket" || strings.HasPrefix(name, "socket.")
}
