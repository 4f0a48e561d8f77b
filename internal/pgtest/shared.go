package pgtest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
)

// keeper is the small shell script that owns the shared server. No test process can own
// it, since none knows that it is the last, and it must not outlive a killed one.
//
// The kernel does the counting: every test process holds the fifo open for writing, in
// whatever way it ends the kernel closes it, and the keeper reads end-of-file once no
// writer is left. A newcomer writes its id and counts as soon as the keeper has answered
// by making the file ack.<id>; one that came too late gets no answer and waits for the
// folder to go away.
//
// A sleep is one more writer, so that the server outlives the gap between two packages
// of one `go test ./...`; the keeper ends after a round in which nobody came. It is no
// reader, or a killed keeper would seem to be alive.
const keeper = `
linger=$1; shift
exec 4<>fifo 3<fifo 4>fifo
"$@" 3<&- 4<&- >>postgresql.log 2>&1 &
server=$!
came=1
while [ "$came" ]; do
	came=
	sleep "$linger" 3<&- &
	exec 4<&-
	while read -r id <&3; do
		: >"ack.$id"
		came=1
	done
	exec 4>fifo
done
kill -QUIT "$server"
wait "$server"
rm -rf data run fifo ack.*
`

const (
	// linger is how long the server waits for another test process: the packages of a
	// `go test ./...` are linked one after the other.
	linger = 4 * time.Second
	// startLimit bounds joining and starting, for a machine that is busy.
	startLimit = 90 * time.Second
	// goneLimit is how long an ending server may take before it counts as orphaned.
	goneLimit = 10 * time.Second
	poll      = 5 * time.Millisecond
)

// errGone means that there is no server to join.
var errGone = errors.New("no shared server is running")

// server is this process's share in the shared server.
type server struct {
	cluster *localpg.Cluster
	// presence is the fifo, open for writing. It is never closed: the kernel does that
	// when the process ends, and that is the point.
	presence *os.File
	// admin creates and drops databases. It is never closed either.
	admin *pgxpool.Pool
	// dir holds the locks by which processes take turns.
	dir string
	// templates are those that this process has seen to; see ensure.
	templates templates
}

// theServer joins the shared server, once for the process, and starts it if there is
// none.
var theServer = sync.OnceValues(func() (*server, error) {
	// Not the context of the test that comes first: the server is for all of them.
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	dir, err := stateDir(ctx)
	if err != nil {
		return nil, err
	}
	return joinOrStart(ctx, dir, linger)
})

// joinOrStart runs under the lock of the state folder, so that of many processes that
// begin together one starts the server and the others join it.
func joinOrStart(ctx context.Context, dir string, linger time.Duration) (*server, error) {
	s := &server{dir: dir}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()

	home := filepath.Join(dir, "server")
	err = s.join(ctx, home)
	if errors.Is(err, errGone) {
		if err := clear(ctx, home); err != nil {
			return nil, err
		}
		if err := start(ctx, home, linger); err != nil {
			return nil, err
		}
		err = s.join(ctx, home)
	}
	if err != nil {
		return nil, err
	}
	if s.admin, err = pgxpool.New(ctx, s.cluster.URL("postgres")); err != nil {
		return nil, fmt.Errorf("connect to the shared test server: %w", err)
	}
	return s, nil
}

// stateDir is the folder by which the processes of one user find each other.
func stateDir(ctx context.Context) (string, error) {
	bin, err := localpg.Find(ctx)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(bin))
	name := fmt.Sprintf("reconciler-pgtest-%d-%s", os.Geteuid(), hex.EncodeToString(sum[:3]))
	dir := filepath.Join(localpg.FastTemp(), name)
	return dir, claim(dir)
}

// claim makes a folder whose name others can guess. If it is there already, it must be
// one of ours that nobody else may write to.
func claim(dir string) error {
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the folder of the shared test server: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("look at the folder of the shared test server: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(stat.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s is not a folder that only uid %d may write to; remove it", dir, os.Geteuid())
	}
	return nil
}

// join announces this process to the keeper and waits until it is counted.
func (s *server) join(ctx context.Context, home string) error {
	fifo, err := openFifo(home)
	if err != nil {
		return err
	}
	s.presence = fifo
	if s.cluster, err = announce(ctx, home, fifo); err != nil {
		return errors.Join(err, fifo.Close())
	}
	return nil
}

// openFifo opens the fifo for writing; errGone says that no keeper reads it.
func openFifo(home string) (*os.File, error) {
	// Without O_NONBLOCK the open would wait for a keeper for ever.
	fifo, err := os.OpenFile(filepath.Join(home, "fifo"), os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENXIO) {
		return nil, errGone
	}
	if err != nil {
		return nil, fmt.Errorf("reach the keeper of the shared test server: %w", err)
	}
	return fifo, nil
}

func announce(ctx context.Context, home string, fifo *os.File) (*localpg.Cluster, error) {
	id := strconv.Itoa(os.Getpid()) + "-" + rand.Text()[:8]
	if _, err := fifo.WriteString(id + "\n"); err != nil {
		return nil, errors.Join(errGone, err)
	}
	// A keeper that is slow to answer, on a busy machine, is not one that is gone.
	gone := false
	err := await(ctx, startLimit, func() error {
		if _, err := os.Stat(filepath.Join(home, "ack."+id)); err == nil {
			return nil
		}
		again, err := openFifo(home)
		if gone = errors.Is(err, errGone); gone {
			return nil
		}
		if err == nil {
			err = errors.Join(errors.New("the keeper of the shared test server does not answer"), again.Close())
		}
		return err
	})
	if gone {
		err = errGone
	}
	if err != nil {
		return nil, err
	}
	cluster, err := localpg.Prepare(ctx, options(home))
	if err != nil {
		return nil, err
	}
	err = await(ctx, startLimit, func() error { return cluster.Answers(ctx) })
	if err != nil {
		return nil, fmt.Errorf("%w; see %s", err, cluster.LogPath())
	}
	return cluster, nil
}

// start makes the server's folder and starts the keeper, as a session of its own, so
// that neither a Ctrl-C nor the end of this process reaches it.
func start(ctx context.Context, home string, linger time.Duration) error {
	cluster, err := localpg.Prepare(ctx, options(home))
	if err != nil {
		return err
	}
	postgres := cluster.Command("postgres", cluster.ServerArgs()...)
	owner := postgres.SysProcAttr.Credential
	if owner != nil {
		if err := os.Chown(home, int(owner.Uid), int(owner.Gid)); err != nil {
			return fmt.Errorf("give the test server its folder: %w", err)
		}
	}
	fifo := filepath.Join(home, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		return fmt.Errorf("make the keeper's fifo: %w", err)
	}
	if owner != nil {
		if err := os.Chown(fifo, int(owner.Uid), int(owner.Gid)); err != nil {
			return fmt.Errorf("give the keeper its fifo: %w", err)
		}
	}
	seconds := strconv.FormatFloat(linger.Seconds(), 'f', 0, 64)
	args := append([]string{"-c", keeper, "reconciler-pgtest-keeper", seconds}, postgres.Args...)
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir, cmd.Env = home, postgres.Env
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: owner, Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the keeper of the shared test server: %w", err)
	}
	// The keeper is there once it has the fifo open.
	return await(ctx, startLimit, func() error {
		f, err := openFifo(home)
		if err != nil {
			return err
		}
		return f.Close()
	})
}

// clear removes a server's folder whose keeper has ended or is ending.
func clear(ctx context.Context, home string) error {
	if _, err := os.Stat(home); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	pidFile := filepath.Join(home, "data", "postmaster.pid")
	err := await(ctx, goneLimit, func() error {
		if _, err := os.Stat(pidFile); err == nil {
			return errors.New("the server of an earlier run is still there")
		}
		return nil
	})
	if err != nil {
		// Its keeper was killed too. A server that does not answer, or whose folder was
		// half made, leaves nothing that anybody wants.
		if cluster, err := localpg.Prepare(ctx, options(home)); err == nil {
			_ = cluster.EndOrphan(ctx)
		}
	}
	if err := os.RemoveAll(home); err != nil {
		return fmt.Errorf("remove the folder of an earlier test server: %w", err)
	}
	return nil
}

func options(home string) localpg.Options {
	return localpg.Options{Dir: home, Throwaway: true}
}

// lock takes an exclusive lock and waits for it.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of the shared test server: %w", err)
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
	}
}

// await calls ready until it returns nil, and returns its last error if that takes
// longer than limit.
func await(ctx context.Context, limit time.Duration, ready func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %v: %w", limit, err)
		case <-time.After(poll):
		}
	}
}
