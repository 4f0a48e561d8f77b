package main

import (
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// startOn starts a program on the k-th of the processors that this process may use. What it
// starts stays there too.
func startOn(c *exec.Cmd, k int) error {
	runtime.LockOSThread() // what is started may use what the thread may that starts it
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	k %= all.Count() // it may be fewer than they were
	for cpu := 0; one.Count() == 0; cpu++ {
		if !all.IsSet(cpu) {
			continue
		}
		if k--; k < 0 {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	started := c.Start()
	if err := unix.SchedSetaffinity(0, &all); err != nil {
		return err
	}
	return started
}
