package localpg

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestDataOfAnotherMajorVersionIsRefused(t *testing.T) {
	t.Parallel()
	dir := home(t)
	writeData(t, dir, "PG_VERSION", "9\n")
	_, err := Start(t.Context(), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "data is of PostgreSQL 9") {
		t.Fatalf("error: %v", err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "data"))
	if err != nil || len(entries) != 1 {
		t.Errorf("the data was touched: %v %v", entries, err)
	}
}

func TestFolderWithForeignFilesIsRefused(t *testing.T) {
	t.Parallel()
	dir := home(t)
	writeData(t, dir, "thesis.txt", "years of work")
	_, err := Start(t.Context(), Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "no PG_VERSION") {
		t.Fatalf("error: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "data", "thesis.txt")); err != nil || string(text) != "years of work" {
		t.Errorf("the file was touched: %q %v", text, err)
	}
}

func writeData(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestUnfinishedInitdbIsDoneAgain(t *testing.T) {
	t.Parallel()
	dir := home(t)
	if err := os.Mkdir(filepath.Join(dir, "data.new"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data.new", "PG_VERSION"), []byte("15\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := start(t, Options{Dir: dir})
	query(t, s.URL("postgres"), "SELECT 'it answers'")
}

func TestDeepFolderGetsAShortSocket(t *testing.T) {
	t.Parallel()
	root := home(t)
	dir := withData(t, filepath.Join(root, strings.Repeat("deep/", 30), "pg"))
	s := start(t, Options{Dir: dir})
	query(t, s.URL("postgres"), "SELECT 'it answers'")
	short := s.socketDir
	if !socketFits(short) || strings.HasPrefix(short, root) {
		t.Errorf("the socket is in %s", short)
	}
	joined := start(t, Options{Dir: dir})
	query(t, joined.URL("postgres"), "SELECT 'it answers'")

	stop(t, s)
	if _, err := os.Stat(short); !os.IsNotExist(err) {
		t.Errorf("the socket's folder is still there: %v", err)
	}
}

func TestShortSocketFolderOfAKilledProcessIsRemoved(t *testing.T) {
	t.Parallel()
	dir := withData(t, filepath.Join(home(t), strings.Repeat("deep/", 30), "pg"))
	owner := startChild(t, dir)
	owner.url(t)
	left, err := readSocketNote(filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	owner.kill9(t)
	start(t, Options{Dir: dir})
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the socket's folder is still there: %v", err)
	}
}

// PostgreSQL would say "permission denied" and no more.
func TestFolderThatTheUserCannotEnterIsNamed(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(home(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "pg")
	s, err := Start(t.Context(), Options{Dir: dir})
	if os.Geteuid() != 0 {
		// Our own closed folder is no obstacle to ourselves.
		if err != nil {
			t.Fatal(err)
		}
		stop(t, s)
		return
	}
	if err == nil {
		stop(t, s)
		t.Fatal("another user entered a closed folder")
	}
	if !strings.Contains(err.Error(), "cannot enter "+closed+" ") {
		t.Errorf("error does not name the folder: %v", err)
	}
}

func TestFolderIsNeeded(t *testing.T) {
	t.Parallel()
	if _, err := Start(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "needs a folder") {
		t.Errorf("error: %v", err)
	}
}

// Root may have data that an ordinary user made, and the other way round.
func TestDataStaysWithItsOwner(t *testing.T) {
	t.Parallel()
	dir := home(t)
	options := Options{Dir: dir}
	want := uint32(os.Geteuid())
	if want == 0 {
		options.User = "nobody"
		nobody, err := lookupAccount("nobody")
		if err != nil {
			t.Fatal(err)
		}
		want = nobody.uid
	}
	stop(t, start(t, options))
	s := start(t, Options{Dir: dir})
	query(t, s.URL("postgres"), "SELECT 'it answers'")
	info, err := os.Stat(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Sys().(*syscall.Stat_t).Uid; got != want || s.account.uid != want {
		t.Errorf("the data belongs to uid %d and is served by %d, want %d", got, s.account.uid, want)
	}
}

func TestUnknownUserIsAnError(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"no-such-user", "root"} {
		if got, err := lookupAccount(name); err == nil {
			t.Errorf("user %s became %+v", name, got)
		}
	}
}
