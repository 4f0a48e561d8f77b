package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
)

// sharerDir, when it is set, makes the test binary a process that shares the server of
// that folder, says who it is, and waits for its end.
const sharerDir = "RECONCILER_PGTEST_TEST_DIR"

// lingerVariable says how long that server lingers, if not for shortLinger.
const (
	lingerVariable = "RECONCILER_PGTEST_TEST_LINGER"
	shortLinger    = time.Second
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(sharerDir); dir != "" {
		if err := share(context.Background(), dir); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func share(ctx context.Context, dir string) error {
	linger := shortLinger
	if text := os.Getenv(lingerVariable); text != "" {
		var err error
		if linger, err = time.ParseDuration(text); err != nil {
			return err
		}
	}
	s, err := joinOrStart(ctx, dir, linger)
	if err != nil {
		return err
	}
	for {
		pid, err := serverPID(ctx, s)
		if err != nil {
			return err
		}
		fmt.Println("server", pid)
		// Every line asks once more.
		if _, err := fmt.Scanln(); err != nil {
			return nil
		}
	}
}

// serverPID asks the server itself, so that it shows that it answers.
func serverPID(ctx context.Context, s *server) (int, error) {
	var text string
	err := s.admin.QueryRow(ctx, "SELECT split_part(pg_read_file('postmaster.pid'), E'\n', 1)").Scan(&text)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

type sharer struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
}

func startSharer(t *testing.T, dir string) *sharer {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), sharerDir+"="+dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &sharer{cmd: cmd, in: in, out: bufio.NewReader(out)}
	t.Cleanup(s.kill)
	return s
}

// server reads which server the process shares.
func (s *sharer) server(t *testing.T) int {
	t.Helper()
	line, err := s.out.ReadString('\n')
	text, ok := strings.CutPrefix(strings.TrimSpace(line), "server ")
	if err != nil || !ok {
		t.Fatalf("the process said %q: %v", line, err)
	}
	pid, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// again asks once more.
func (s *sharer) again(t *testing.T) int {
	t.Helper()
	if _, err := fmt.Fprintln(s.in); err != nil {
		t.Fatal(err)
	}
	return s.server(t)
}

// kill ends the process without a chance to say goodbye, as the end of a test binary
// that ran into its time limit.
func (s *sharer) kill() {
	_ = s.cmd.Process.Kill() // It may have been killed before.
	_ = s.cmd.Wait()
}

// stateOf is a state folder for one test.
func stateOf(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(localpg.FastTemp(), "reconciler-pgtest-test-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The processes were killed just now; their keeper ends a little later.
		fifo := filepath.Join(dir, "server", "fifo")
		err := await(context.WithoutCancel(t.Context()), 30*time.Second, func() error {
			if _, err := os.Stat(fifo); err == nil {
				return fmt.Errorf("%s is still there", fifo)
			}
			return nil
		})
		if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func alive(pid int) bool {
	return exec.Command("ps", "-p", strconv.Itoa(pid)).Run() == nil
}

func awaitGone(t *testing.T, pid int) {
	t.Helper()
	err := await(context.WithoutCancel(t.Context()), 30*time.Second, func() error {
		if alive(pid) {
			return fmt.Errorf("process %d is still there", pid)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestServerIsSharedAndEndsAfterItsLastProcess(t *testing.T) {
	t.Parallel()
	dir := stateOf(t)
	var all []*sharer
	for range 4 {
		all = append(all, startSharer(t, dir))
	}
	pid := all[0].server(t)
	for _, s := range all[1:] {
		if other := s.server(t); other != pid {
			t.Errorf("one process has server %d, another %d", pid, other)
		}
	}

	// Three are killed; the last one keeps it alive for longer than it lingers. The one
	// that started the server is among the killed ones, or else is nothing special.
	for _, s := range all[:3] {
		s.kill()
	}
	time.Sleep(2 * shortLinger)
	if now := all[3].again(t); now != pid {
		t.Errorf("the server changed from %d to %d under a living process", pid, now)
	}
	all[3].kill()
	awaitGone(t, pid)
}

func TestProcessThatComesSoonGetsTheSameServer(t *testing.T) {
	// Longer than a busy machine needs to start a process.
	t.Setenv(lingerVariable, "10m")
	dir := stateOf(t)
	first := startSharer(t, dir)
	pid := first.server(t)
	keeperPID, err := parentOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Nobody waits ten minutes: the keeper leads a group with its server and its sleep.
		if err := syscall.Kill(-keeperPID, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		awaitGone(t, pid)
		err := await(context.WithoutCancel(t.Context()), 30*time.Second, func() error {
			return os.RemoveAll(filepath.Join(dir, "server"))
		})
		if err != nil {
			t.Error(err)
		}
	})
	first.kill()
	if got := startSharer(t, dir).server(t); got != pid {
		t.Errorf("the second process has server %d, the first had %d", got, pid)
	}
}

func TestProcessThatComesLateGetsANewServer(t *testing.T) {
	t.Parallel()
	dir := stateOf(t)
	first := startSharer(t, dir)
	pid := first.server(t)
	first.kill()
	awaitGone(t, pid)
	if got := startSharer(t, dir).server(t); got == pid {
		t.Errorf("server %d is both gone and there", pid)
	}
}

func TestKilledKeeperIsReplaced(t *testing.T) {
	t.Parallel()
	dir := stateOf(t)
	first := startSharer(t, dir)
	pid := first.server(t)
	keeperPID, err := parentOf(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command("kill", "-9", strconv.Itoa(keeperPID)).Run(); err != nil {
		t.Fatal(err)
	}
	first.kill()
	awaitGone(t, keeperPID)

	if got := startSharer(t, dir).server(t); got == pid {
		t.Errorf("the orphan %d was taken for the server", pid)
	}
	awaitGone(t, pid)
}

func parentOf(pid int) (int, error) {
	out, err := exec.Command("ps", "-o", "ppid=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

func TestStateFolderOfAnotherIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := filepath.Join(dir, "anyone")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{open, link} {
		if err := claim(bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("claim(%s) = %v", bad, err)
		}
	}
	if err := claim(filepath.Join(dir, "fresh")); err != nil {
		t.Error(err)
	}
}
