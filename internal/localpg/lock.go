package localpg

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// tryLock takes the exclusive lock of a file, which the kernel gives back when the
// process ends in whatever way. It returns nil and no error when another process has
// it. The file stays: removing a lock file would let two processes hold "the" lock.
func tryLock(path string) (*os.File, error) {
	// os.OpenFile sets O_CLOEXEC, so that no program we start inherits the lock.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	if closeErr := f.Close(); closeErr != nil {
		return nil, fmt.Errorf("close the lock: %w", closeErr)
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}
