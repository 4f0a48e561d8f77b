package main

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

// What the permissions of a file or folder give to everybody.
const (
	everybodyReads  fs.FileMode = 0o004
	everybodyWrites fs.FileMode = 0o002
	everybodyEnters fs.FileMode = 0o001
)

// secretAdvice tells which files of secrets every user of this machine may read or change.
// It is no fault: containers give theirs to everybody who is inside, and that is the daemon alone.
func secretAdvice(files []string) []ledger.Advice {
	const about = "secrets"
	// Not a chmod alone: where another user owns the file, that would shut the daemon out.
	const alone = "let nobody but the user that runs `reconciler serve` read it, or leave it in a container that runs nothing else"
	var open []ledger.Advice
	for _, file := range files {
		may, err := openToAll(file)
		switch {
		case err != nil:
			open = append(open, warning(about, "%s: who may read it cannot be told (%v): look at it yourself", file, err))
		case may&everybodyWrites != 0:
			open = append(open, warning(about, "%s may be changed by every user of this machine: %s, and take a new secret", file, alone))
		case may != 0:
			open = append(open, warning(about, "%s may be read by every user of this machine: %s; where others log in, take a new secret", file, alone))
		}
	}
	if len(files) > 0 && len(open) == 0 {
		return []ledger.Advice{good(about, "%s, which not everybody on this machine may read", count(len(files), "file"))}
	}
	return open
}

// openToAll gives what everybody may do with a file: nothing where a folder above it, links
// followed, does not let everybody in.
func openToAll(file string) (fs.FileMode, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return 0, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	may := info.Mode() & (everybodyReads | everybodyWrites)
	for dir := filepath.Dir(path); may != 0; dir = filepath.Dir(dir) {
		above, err := os.Stat(dir)
		if err != nil {
			return 0, err
		}
		if above.Mode()&everybodyEnters == 0 {
			return 0, nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return may, nil
}
