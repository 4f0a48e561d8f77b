package localpg

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// socketDirPrefix begins the name of a socket's folder that did not fit below the
// cluster's own folder.
const socketDirPrefix = "reconciler-pg-"

// makeDir makes the folder and those above it. Root's folder may be entered (not listed)
// by others, since the programs run as another user; an ordinary user's is closed.
// It returns the absolute path.
func makeDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("a local PostgreSQL needs a folder to live in")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("folder of the local PostgreSQL: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", fmt.Errorf("make the folder above the local PostgreSQL: %w", err)
	}
	err = os.Mkdir(dir, 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		return dir, nil
	case err != nil:
		return "", fmt.Errorf("make the folder of the local PostgreSQL: %w", err)
	case os.Geteuid() == 0:
		return dir, os.Chmod(dir, 0o711)
	}
	return dir, nil
}

// throwawayPrefix begins the name of a throwaway server's folder.
const throwawayPrefix = "reconciler-throwaway-"

// makeTempDir makes a folder for a throwaway server, where the user that will run it can
// reach it, and removes those that killed processes left.
func makeTempDir() (string, error) {
	base := FastTemp()
	removeAbandoned(base)
	dir, err := os.MkdirTemp(base, throwawayPrefix)
	if err != nil {
		return "", fmt.Errorf("make a temporary folder: %w", err)
	}
	if os.Geteuid() == 0 {
		return dir, os.Chmod(dir, 0o711)
	}
	return dir, nil
}

// removeAbandoned removes throwaway folders that nobody holds. One that was made just
// now may not be locked yet, so it must have some age.
func removeAbandoned(base string) {
	const age = 10 * time.Minute
	dirs, _ := filepath.Glob(filepath.Join(base, throwawayPrefix+"*")) // the pattern is a good one
	for _, dir := range dirs {
		info, err := os.Stat(filepath.Join(dir, "lock"))
		if err != nil || time.Since(info.ModTime()) < age {
			continue
		}
		lock, err := tryLock(filepath.Join(dir, "lock"))
		if err != nil || lock == nil {
			continue // another user's, or in use
		}
		os.RemoveAll(dir)
		lock.Close()
	}
}

// FastTemp is a folder for data that may be lost: in memory where there is plenty, since
// a database is 300 files and making them takes 10 ms there and 100 ms and more on a busy
// disk; else [ReachableTemp].
func FastTemp() string {
	const memory, plenty = "/dev/shm", 2 << 30
	var stat syscall.Statfs_t
	err := syscall.Statfs(memory, &stat)
	if err == nil && stat.Bavail*uint64(stat.Bsize) >= plenty && syscall.Access(memory, 2) == nil {
		return memory
	}
	return ReachableTemp()
}

// ReachableTemp is the folder for temporary files; for root it is /tmp instead, if TMPDIR
// is one that the user who runs PostgreSQL cannot enter.
func ReachableTemp() string {
	if os.Geteuid() != 0 {
		return os.TempDir()
	}
	a, err := chooseAccount(filepath.Join(os.TempDir(), "no such data"), "")
	if err != nil || a.closedFolder(os.TempDir()) != "" {
		return "/tmp"
	}
	return os.TempDir()
}

// makeSocketDir makes the folder of the socket. A socket's path has a hard limit (107
// bytes on Linux, 103 on macOS), so a deep folder gets a short one elsewhere, under a
// name that nobody can make first.
func (c *Cluster) makeSocketDir() (string, error) {
	dir := filepath.Join(c.dir, "run")
	if !socketFits(dir) {
		base := shortBase()
		if base == "" {
			return "", fmt.Errorf("no folder is short enough for a socket (%d bytes); set TMPDIR to a short path", socketLimit())
		}
		made, err := os.MkdirTemp(base, socketDirPrefix)
		if err != nil {
			return "", fmt.Errorf("make the socket's folder: %w", err)
		}
		return made, c.account.own(made)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make the socket's folder: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return "", fmt.Errorf("close the socket's folder: %w", err)
	}
	return dir, c.account.own(dir)
}

// retireSocketNote takes away the note that a killed process left, so that nobody joins
// the server that is ending with it. The name stays known until that server has ended,
// since it may have to be asked to.
func (c *Cluster) retireSocketNote() error {
	err := os.Rename(c.socketNote(), c.socketNote()+".old")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("take away the note of a server that has ended: %w", err)
	}
	return nil
}

// removeRetiredSocket removes what is left of the socket that a retired note names.
func (c *Cluster) removeRetiredSocket() {
	old, err := readSocketNote(c.socketNote() + ".old")
	if err != nil {
		return
	}
	if old != c.socketDir {
		removeSocketDir(old)
	}
	os.Remove(c.socketNote() + ".old")
}

// removeSocketDir removes a short socket folder with the two files that PostgreSQL keeps
// in it. It removes nothing else: the name was read from a file.
func removeSocketDir(dir string) {
	if !strings.HasPrefix(filepath.Base(dir), socketDirPrefix) {
		return
	}
	os.Remove(filepath.Join(dir, socketFile))
	os.Remove(filepath.Join(dir, socketFile+".lock"))
	os.Remove(dir)
}

// socketNote is the file that says where the socket is while the server is ready.
func (c *Cluster) socketNote() string { return filepath.Join(c.dir, "socket") }

func readSocketNote(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read where the socket is: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// writeSocketNote is atomic, so that a reader sees a whole path or none.
func (c *Cluster) writeSocketNote() error {
	fresh := c.socketNote() + ".new"
	if err := os.WriteFile(fresh, []byte(c.socketDir+"\n"), 0o644); err != nil {
		return fmt.Errorf("note where the socket is: %w", err)
	}
	if err := os.Rename(fresh, c.socketNote()); err != nil {
		return fmt.Errorf("note where the socket is: %w", err)
	}
	return nil
}

const socketFile = ".s.PGSQL." + port

// socketLimit is the longest path of a socket: sun_path less its final zero byte.
func socketLimit() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103
}

func socketFits(dir string) bool {
	return len(dir)+len("/"+socketFile) <= socketLimit()
}

// shortBase is a folder in which a short socket folder can be made, or "".
func shortBase() string {
	for _, base := range []string{ReachableTemp(), "/tmp"} {
		if socketFits(filepath.Join(base, socketDirPrefix+"0123456789")) {
			return base
		}
	}
	return ""
}
