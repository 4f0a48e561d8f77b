package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// programEnvironment are the secrets that the configurations of these tests name.
var programEnvironment = []string{"KEY=sk_live_TESTONLY", "HOOK=whsec_TESTONLY", "TOKEN=xoxb-TESTONLY"}

// program is reconciler in a process of its own.
type program struct {
	testing.TB
	cmd *exec.Cmd
}

// newProgram names the program with its arguments; nothing runs yet. This test's own
// program is reconciler when it is called so. It outlives the test's context, because
// how it ends is what tests want to see.
func newProgram(t testing.TB, log io.Writer, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self, args...)
	cmd.Args[0] = "reconciler"
	cmd.Env = append(os.Environ(), programEnvironment...)
	cmd.Stderr = log
	return &program{t, cmd}
}

// startProgram starts the program, and kills it with the test.
func startProgram(t testing.TB, log io.Writer, args ...string) *program {
	t.Helper()
	p := newProgram(t, log, args...)
	p.start()
	return p
}

func (p *program) start() {
	p.Helper()
	if err := p.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(p.kill)
}

// kill ends the program without a word, unless it has ended.
func (p *program) kill() {
	p.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	p.signal(syscall.SIGKILL)
	_ = p.cmd.Wait() // it was killed, which is an error
}

func (p *program) signal(sig syscall.Signal) {
	p.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.Error(err)
	}
}

// stop asks for an orderly end, and says how long it took and how it ended.
func (p *program) stop() (took time.Duration, err error) {
	began := time.Now()
	p.signal(syscall.SIGTERM)
	err = p.cmd.Wait()
	return time.Since(began), err
}

// peak is the most memory that the running program held at once so far, in MiB. What the
// kernel tells of an ended child may be its parent's: a new process begins with the memory
// of whoever started it.
func (p *program) peak() float64 {
	p.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kb float64
		if _, err := fmt.Sscanf(line, "VmHWM: %f kB", &kb); err == nil {
			return kb / 1024
		}
	}
	p.Fatalf("no VmHWM in:\n%s", text)
	return 0
}
