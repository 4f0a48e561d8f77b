package localpg

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
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// childDir, when it is set, makes the test binary a process that only runs a server.
const childDir = "RECONCILER_LOCALPG_TEST_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := serve(context.Background(), dir); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if pattern.dir != "" {
		os.RemoveAll(pattern.dir)
	}
	os.Exit(code)
}

// serve runs a server until its standard input ends.
func serve(ctx context.Context, dir string) error {
	s, err := Start(ctx, Options{Dir: dir})
	if err != nil {
		return err
	}
	fmt.Println(s.URL("postgres"))
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return s.Stop(ctx)
}

// child is another process that runs, or joined, the server of a folder.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
}

func startChild(t *testing.T, dir string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // It has ended already, unless the test failed.
		_ = cmd.Wait()
	})
	return &child{cmd: cmd, stdin: stdin, out: bufio.NewReader(stdout)}
}

// url waits until the child's server is ready.
func (c *child) url(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "postgres://") {
		t.Fatalf("the child process said %q: %v", line, err)
	}
	return strings.TrimSpace(line)
}

// end asks the child to stop and waits for it.
func (c *child) end(t *testing.T) {
	t.Helper()
	if err := c.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("the child process ended with %v", err)
	}
}

func (c *child) kill9(t *testing.T) {
	t.Helper()
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait() // "signal: killed", which is what was asked for.
}

// home is a folder for one server that another user may enter; those of t.TempDir are
// closed to all but root, when root runs the tests.
func home(t *testing.T) string {
	t.Helper()
	dir, err := makeTempDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// pattern is a folder whose data is made once, since initdb is most of what a first
// start costs, and most tests are not about it.
var pattern struct {
	once sync.Once
	dir  string
	err  error
}

// withData puts fresh data into a folder, as a first start would, and returns the folder.
func withData(t *testing.T, dir string) string {
	t.Helper()
	pattern.once.Do(func() {
		if pattern.dir, pattern.err = makeTempDir(); pattern.err == nil {
			_, pattern.err = Prepare(t.Context(), Options{Dir: pattern.dir, Throwaway: true})
		}
	})
	if pattern.err != nil {
		t.Fatal(pattern.err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// -p keeps owner and mode, which a server insists on.
	if out, err := exec.Command("cp", "-Rp", filepath.Join(pattern.dir, "data"), dir).CombinedOutput(); err != nil {
		t.Fatalf("copy the data: %v: %s", err, out)
	}
	return dir
}

// start runs a server for the length of the test.
func start(t *testing.T, opt Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *Server) {
	t.Helper()
	if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

// query runs a statement on a connection of its own and returns its single text.
func query(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var got string
	if err := conn.QueryRow(t.Context(), sql).Scan(&got); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return got
}

func exec1(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// postmaster is the process id of the server that uses a folder's data.
func postmaster(t *testing.T, dir string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// awaitGone fails the test unless the process ends soon.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return
		}
		time.Sleep(poll)
	}
	t.Errorf("process %d is still there", pid)
}
