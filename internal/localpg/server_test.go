package localpg

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRowsAreKeptOverStopAndStart(t *testing.T) {
	t.Parallel()
	dir := withData(t, home(t))
	first := start(t, Options{Dir: dir})
	if err := first.CreateDatabase(t.Context(), "ledger"); err != nil {
		t.Fatal(err)
	}
	exec1(t, first.URL("ledger"), "CREATE TABLE kept AS SELECT 'yes' AS word")
	pid := postmaster(t, dir)
	stop(t, first)
	awaitGone(t, pid)

	second := start(t, Options{Dir: dir})
	if err := second.CreateDatabase(t.Context(), "ledger"); err != nil {
		t.Fatalf("a database that exists is not an error: %v", err)
	}
	if got := query(t, second.URL("ledger"), "SELECT word FROM kept"); got != "yes" {
		t.Errorf("the row reads %q", got)
	}
}

func TestAnEmptiedSchemaKeepsOneTableAndWhatThePlannerKnows(t *testing.T) {
	t.Parallel()
	s := start(t, Options{Throwaway: true})
	url := s.URL("postgres")
	exec1(t, url, `CREATE SCHEMA a; CREATE TABLE a.kept AS SELECT 1 AS n; CREATE TABLE a.emptied AS SELECT g AS n FROM generate_series(1, 1000) g;
		CREATE FUNCTION a.never() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''append only''; END';
		CREATE TRIGGER never BEFORE TRUNCATE ON a.emptied EXECUTE FUNCTION a.never(); ANALYZE`)
	if err := s.EmptySchema(t.Context(), "postgres", "a", "kept"); err != nil {
		t.Fatal(err)
	}
	const left = `SELECT (SELECT count(*) FROM a.kept) || ' ' || (SELECT count(*) FROM a.emptied) || ' ' ||
		(SELECT n_distinct FROM pg_stats WHERE schemaname = 'a' AND tablename = 'emptied')`
	if got := query(t, url, left); got != "1 0 -1" {
		t.Errorf("rows kept, rows left and what the planner knows: %s", got)
	}
}

func TestKeptServerIsSafeAndClosed(t *testing.T) {
	t.Parallel()
	dir := home(t)
	s := start(t, Options{Dir: dir})
	for name, want := range map[string]string{
		"data_checksums":     "on",
		"fsync":              "on",
		"full_page_writes":   "on",
		"listen_addresses":   "",
		"lc_collate":         "C",
		"server_encoding":    "UTF8",
		"synchronous_commit": "on",
		"timezone":           "UTC",
	} {
		if got := query(t, s.URL("postgres"), "SHOW "+name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "run"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the socket's folder has mode %v, want 0700: its folder is the only lock on the door", info.Mode().Perm())
	}
	if log, err := os.ReadFile(s.LogPath()); err != nil || !strings.Contains(string(log), "ready to accept connections") {
		t.Errorf("the log file does not hold the server's log: %v %s", err, log)
	}
}

func TestThrowawayServerLeavesNothing(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{Throwaway: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := query(t, s.URL("postgres"), "SHOW fsync"); got != "off" {
		t.Errorf("fsync of a throwaway server is %q", got)
	}
	pid := postmaster(t, s.dir)
	stop(t, s)
	awaitGone(t, pid)
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("its folder is still there: %v", err)
	}
}

func TestRestartRightAfterACrashWaitsForTheDyingServer(t *testing.T) {
	t.Parallel()
	dir := withData(t, home(t))
	owner := startChild(t, dir)
	exec1(t, owner.url(t), "CREATE TABLE kept AS SELECT 'yes' AS word")
	old := postmaster(t, dir)
	owner.kill9(t)

	s := start(t, Options{Dir: dir})
	if got := query(t, s.URL("postgres"), "SELECT word FROM kept"); got != "yes" {
		t.Errorf("the row reads %q", got)
	}
	if now := postmaster(t, dir); now == old {
		t.Error("the server of the killed process was taken for ours")
	}
}

// The server is stopped (SIGSTOP), so that it is surely still there when the next start
// comes, and continues a second later.
func TestStartWaitsForAServerThatIsSlowToDie(t *testing.T) {
	t.Parallel()
	dir := withData(t, home(t))
	owner := startChild(t, dir)
	owner.url(t)
	old := postmaster(t, dir)
	if err := syscall.Kill(old, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	owner.kill9(t)
	time.AfterFunc(time.Second, func() { _ = syscall.Kill(old, syscall.SIGCONT) })

	s := start(t, Options{Dir: dir})
	query(t, s.URL("postgres"), "SELECT 'it answers'")
	awaitGone(t, old)
}

func TestKilledProcessLeavesNoServer(t *testing.T) {
	t.Parallel()
	dir := withData(t, home(t))
	owner := startChild(t, dir)
	owner.url(t)
	pid := postmaster(t, dir)
	owner.kill9(t)
	if runtime.GOOS == "linux" {
		awaitGone(t, pid)
	}
	// Elsewhere the next start ends it.
	stop(t, start(t, Options{Dir: dir}))
	awaitGone(t, pid)
}

func TestServerOutlivesTheThreadThatStartedIt(t *testing.T) {
	t.Parallel()
	dir := withData(t, home(t))
	type result struct {
		s      *Server
		err    error
		thread int
	}
	results := make(chan result)
	var work func()
	work = func() {
		// Locked and never unlocked: the thread ends with this goroutine.
		runtime.LockOSThread()
		if threadID() == os.Getpid() {
			// But for the first one of the process, which never ends.
			go work()
			return
		}
		s, err := Start(t.Context(), Options{Dir: dir})
		results <- result{s, err, threadID()}
	}
	go work()
	got := <-results
	if got.err != nil {
		t.Fatal(got.err)
	}
	t.Cleanup(func() { stop(t, got.s) })
	awaitThreadGone(t, got.thread)

	// A server that had been told would be gone well within this time.
	time.Sleep(500 * time.Millisecond)
	query(t, got.s.URL("postgres"), "SELECT 'still here'")
}

func TestManyProcessesShareOneServer(t *testing.T) {
	t.Parallel()
	dir := withData(t, home(t))
	var children []*child
	for range 4 {
		children = append(children, startChild(t, dir))
	}
	for _, c := range children {
		url := c.url(t)
		if got, want := query(t, url, "SHOW data_directory"), filepath.Join(dir, "data"); got != want {
			t.Errorf("a process reached the server of %s, want %s", got, want)
		}
	}
	pid := postmaster(t, dir)
	for _, c := range children {
		c.end(t)
	}
	awaitGone(t, pid)
}

func TestStopOfAJoinedServerStopsNothing(t *testing.T) {
	t.Parallel()
	dir := withData(t, home(t))
	owner := start(t, Options{Dir: dir})
	joined := start(t, Options{Dir: dir})
	stop(t, joined)
	query(t, owner.URL("postgres"), "SELECT 'still here'")
}

func TestServerThatNobodyOwnsIsEndedByTheNextStart(t *testing.T) {
	t.Parallel()
	dir := withData(t, home(t))
	c, err := Prepare(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	// As after a kill where no system tells the server: it runs, and nobody has the lock.
	out, err := runBounded(t.Context(), c.Command("pg_ctl", "-D", c.data(), "-l", filepath.Join(c.data(), "orphan.log"),
		"-o", strings.Join(c.ServerArgs()[2:], " ")+" -c listen_addresses=''", "-w", "start"))
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	orphan := postmaster(t, dir)

	s := start(t, Options{Dir: dir})
	query(t, s.URL("postgres"), "SELECT 'it answers'")
	awaitGone(t, orphan)
}

func TestStopWithoutTimeStillStops(t *testing.T) {
	t.Parallel()
	dir := withData(t, home(t))
	s := start(t, Options{Dir: dir})
	exec1(t, s.URL("postgres"), "CREATE TABLE kept AS SELECT 'yes' AS word")
	pid := postmaster(t, dir)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Stop(over); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, pid)

	again := start(t, Options{Dir: dir})
	if got := query(t, again.URL("postgres"), "SELECT word FROM kept"); got != "yes" {
		t.Errorf("the row reads %q", got)
	}
}

func TestStartEndsWhatItBeganWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	dir := home(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if s, err := Start(ctx, Options{Dir: dir}); err == nil {
		stop(t, s)
		t.Fatal("a first start within 50 ms is not believable")
	}
	s := start(t, Options{Dir: dir})
	query(t, s.URL("postgres"), "SELECT 'it answers'")
}
