package localpg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// startLimit bounds a start, initdb and crash recovery of a trial ledger included.
	startLimit = 2 * time.Minute
	// poll is how often a start looks whether the server is ready.
	poll = 10 * time.Millisecond
	// A start waits for a server that a killed process left. One that was told to end
	// takes well under a second; one that is there after toldLimit was not told, and is
	// asked. One that neither ends nor answers until dyingLimit is told to a person.
	toldLimit  = 5 * time.Second
	dyingLimit = 45 * time.Second
)

// errBusy means that another server still uses the data folder.
var errBusy = errors.New("another PostgreSQL server is using the data folder")

// Server is a running local PostgreSQL, ours or that of another process.
type Server struct {
	*Cluster
	// lock is nil when another process holds the folder and runs the server.
	lock *os.File
	cmd  *exec.Cmd
	// exited is closed after the server's process ended; exitErr is set before.
	exited    chan struct{}
	exitErr   error
	removeDir bool
	stopOnce  sync.Once
	stopErr   error
}

// Start runs the server of a folder and returns when it takes connections. If another
// process runs it already, that one's server is returned and belongs to it still: Stop
// then stops nothing, and the server goes when its owner does.
func Start(ctx context.Context, opt Options) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()

	removeDir := false
	if opt.Dir == "" && opt.Throwaway {
		dir, err := makeTempDir()
		if err != nil {
			return nil, err
		}
		opt.Dir, removeDir = dir, true
	}
	s, err := startOrJoin(ctx, opt)
	if err != nil {
		if removeDir {
			err = errors.Join(err, os.RemoveAll(opt.Dir))
		}
		return nil, err
	}
	s.removeDir = removeDir
	return s, nil
}

// Stop ends the server that this process started, and returns when it has ended. Clients
// are disconnected; what they committed is kept. When ctx ends first, the server is
// ended without a last checkpoint, and the next start recovers. A second Stop does
// nothing and returns what the first one did.
func (s *Server) Stop(ctx context.Context) error {
	if s.lock != nil {
		s.stopOnce.Do(func() { s.stopErr = s.stop(ctx) })
	}
	return s.stopErr
}

func (s *Server) stop(ctx context.Context) error {
	defer s.lock.Close()

	// The note goes first: nobody should join a server that is ending.
	err := os.Remove(s.socketNote())
	// SIGINT is PostgreSQL's "fast" shutdown, SIGQUIT its "immediate" one.
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT}
	if s.throwaway {
		signals = signals[1:]
	}
	for _, signal := range signals {
		if signalErr := s.cmd.Process.Signal(signal); signalErr != nil && !errors.Is(signalErr, os.ErrProcessDone) {
			err = errors.Join(err, fmt.Errorf("end the local PostgreSQL: %w", signalErr))
		}
		select {
		case <-s.exited:
		case <-ctx.Done():
			continue
		}
		break
	}
	<-s.exited // An immediate shutdown does not wait for anybody.

	removeSocketDir(s.socketDir)
	if s.removeDir {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	return err
}

// startOrJoin takes the lock and runs the server, or joins the one of whoever has the
// lock. It goes on trying both: the holder may not be ready yet, or may be ending.
func startOrJoin(ctx context.Context, opt Options) (*Server, error) {
	dir, err := makeDir(opt.Dir)
	if err != nil {
		return nil, err
	}
	for {
		lock, err := tryLock(filepath.Join(dir, "lock"))
		if err != nil {
			return nil, err
		}
		if lock != nil {
			s, err := startHeld(ctx, opt)
			if err != nil {
				return nil, errors.Join(err, lock.Close())
			}
			s.lock = lock
			return s, nil
		}
		c := &Cluster{dir: dir, throwaway: opt.Throwaway}
		if c.socketDir, err = readSocketNote(c.socketNote()); err == nil {
			if err = c.Answers(ctx); err == nil {
				return &Server{Cluster: c}, nil
			}
		}
		if waitErr := sleep(ctx, poll); waitErr != nil {
			return nil, fmt.Errorf("another process holds %s/lock, but its server does not answer (see %s): %w", dir, c.LogPath(), err)
		}
	}
}

// startHeld runs the server; the caller has the lock.
func startHeld(ctx context.Context, opt Options) (*Server, error) {
	c, err := Prepare(ctx, opt)
	if err != nil {
		return nil, err
	}
	if err := c.retireSocketNote(); err != nil {
		return nil, err
	}
	// We have the lock, so a server that still uses the data belongs to nobody: its
	// process was killed, and it is ending (or, not on Linux, it has not noticed).
	began := time.Now()
	for {
		s, err := c.run(ctx)
		if err == nil {
			c.removeRetiredSocket()
			return s, c.writeSocketNote()
		}
		if !errors.Is(err, errBusy) {
			return nil, err
		}
		if waited := time.Since(began); waited > toldLimit {
			if err := c.EndOrphan(ctx); err != nil && waited > dyingLimit {
				return nil, err
			}
		}
		if err := sleep(ctx, 10*poll); err != nil {
			return nil, fmt.Errorf("start the local PostgreSQL in %s: %w", c.dir, errBusy)
		}
	}
}

// run starts the postgres program once and waits until it takes connections or ends.
func (c *Cluster) run(ctx context.Context) (*Server, error) {
	log, err := os.OpenFile(c.LogPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of the local PostgreSQL: %w", err)
	}
	defer log.Close()
	offset, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("open the log of the local PostgreSQL: %w", err)
	}

	s := &Server{Cluster: c, cmd: c.Command("postgres", c.ServerArgs()...), exited: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	// The server ends by itself when we are killed. A group of its own keeps a Ctrl-C in
	// the terminal from ending it under our feet.
	onDeath := syscall.SIGINT
	if c.throwaway {
		onDeath = syscall.SIGQUIT
	}
	s.cmd.SysProcAttr = c.account.attributes(onDeath)
	s.cmd.SysProcAttr.Setpgid = true

	started := make(chan error)
	go s.supervise(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", s.cmd.Path, err)
	}
	if err := s.awaitReady(ctx); err != nil {
		s.kill()
		return nil, c.explain(err, offset)
	}
	return s, nil
}

// supervise starts the process and waits for its end, on a thread that lives as long as
// the process: the kernel's "tell the child that its parent died" is about the thread,
// and Go ends threads at its own discretion (go.dev/issue/27505). The thread is never
// unlocked, so it ends with this goroutine.
func (s *Server) supervise(started chan<- error) {
	runtime.LockOSThread()
	err := s.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	s.exitErr = s.cmd.Wait()
	close(s.exited)
}

func (s *Server) awaitReady(ctx context.Context) error {
	for {
		select {
		case <-s.exited:
			return fmt.Errorf("it ended at once: %w", s.exitErr)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
		if s.saysReady() && s.Answers(ctx) == nil {
			return nil
		}
	}
}

// saysReady reads the status that PostgreSQL keeps in its postmaster.pid. It must be our
// own child's: until that has written its own, the file may be that of a server which is
// ending. Asking the file costs nothing, where each early connection costs a process. One
// that follows another server says "standby" once it answers questions.
func (s *Server) saysReady() bool {
	lines, err := s.postmasterFile()
	if err != nil || len(lines) < 8 || lines[0] != strconv.Itoa(s.cmd.Process.Pid) {
		return false
	}
	status := strings.TrimSpace(lines[7])
	return status == "ready" || status == "standby"
}

func (s *Server) kill() {
	// An error means that it has ended already, and then exited is closed as well.
	_ = s.cmd.Process.Signal(syscall.SIGQUIT)
	<-s.exited
}

// explain turns the end of a start into an error that shows what the server said.
func (c *Cluster) explain(err error, offset int64) error {
	said, readErr := os.ReadFile(c.LogPath())
	if readErr != nil {
		return fmt.Errorf("start the local PostgreSQL in %s: %w", c.dir, errors.Join(err, readErr))
	}
	text := string(said[min(offset, int64(len(said))):])
	if strings.Contains(text, "already exists") && strings.Contains(text, "postmaster.pid") ||
		strings.Contains(text, "pre-existing shared memory block") ||
		strings.Contains(text, socketFile+".lock") {
		err = errBusy
	}
	return fmt.Errorf("start the local PostgreSQL in %s: %w; its log %s ends with: %s", c.dir, err, c.LogPath(), lastLines(text, 4))
}

// EndOrphan ends a server that outlived the process that ran it. The process id in
// PostgreSQL's own file may long belong to somebody else, so the server must first say
// itself that it serves this folder.
func (c *Cluster) EndOrphan(ctx context.Context) error {
	lines, err := c.postmasterFile()
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(lines) < 5 {
		return fmt.Errorf("%w, and its postmaster.pid is not complete; see %s", errBusy, c.LogPath())
	}
	orphan := &Cluster{dir: c.dir, socketDir: lines[4]}
	conn, err := pgx.Connect(ctx, orphan.URL(superuser))
	if err != nil {
		return fmt.Errorf("%w as process %s, which does not answer: %w; if it is a PostgreSQL, end it: kill -INT %s", errBusy, lines[0], err, lines[0])
	}
	defer conn.Close(ctx)
	var serves string
	if err := conn.QueryRow(ctx, "SHOW data_directory").Scan(&serves); err != nil {
		return fmt.Errorf("ask process %s which folder it serves: %w", lines[0], err)
	}
	if serves != c.data() {
		return fmt.Errorf("process %s serves %s, not %s; see %s", lines[0], serves, c.data(), c.LogPath())
	}
	out, err := runBounded(ctx, c.Command("pg_ctl", "-D", c.data(), "-m", "fast", "-w", "stop"))
	if err != nil {
		return fmt.Errorf("end the server that a killed process left: %w: %s", err, lastLines(out, 3))
	}
	return nil
}

// postmasterFile is the file in which PostgreSQL says who serves a data folder: process
// id, folder, start, port, socket's folder, network address, memory, status.
func (c *Cluster) postmasterFile() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if err != nil {
		return nil, fmt.Errorf("look who uses the data folder: %w", err)
	}
	return strings.Split(string(text), "\n"), nil
}

// runBounded runs a program to its end and returns what it said. Its thread is kept, for
// the reason given at supervise.
func runBounded(ctx context.Context, cmd *exec.Cmd) (string, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	err := cmd.Wait()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out.String(), err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// lastLines is the end of a text, for an error message.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}

// isDuplicate is true of the two errors with which two creations of one database meet.
func isDuplicate(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pgErr.Code == "42P04" || pgErr.Code == "23505")
}
