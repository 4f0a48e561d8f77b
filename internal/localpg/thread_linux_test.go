package localpg

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

func threadID() int { return syscall.Gettid() }

// awaitThreadGone waits until the kernel has ended a thread of ours.
func awaitThreadGone(t *testing.T, thread int) {
	t.Helper()
	path := fmt.Sprintf("/proc/self/task/%d", thread)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(poll) {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("thread %d did not end, so the test shows nothing", thread)
		}
	}
}
