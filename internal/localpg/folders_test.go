package localpg

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestOnlyAbandonedThrowawayFoldersAreRemoved(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	old := time.Now().Add(-time.Hour)
	add := func(name string, locked time.Time) string {
		lock := filepath.Join(base, name, "lock")
		if err := os.Mkdir(filepath.Dir(lock), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(lock, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(lock, locked, locked); err != nil {
			t.Fatal(err)
		}
		return lock
	}
	abandoned := add(throwawayPrefix+"abandoned", old)
	held := add(throwawayPrefix+"held", old)
	fresh := add(throwawayPrefix+"fresh", time.Now())
	foreign := add("somebody-elses", old)
	lock, err := tryLock(held)
	if err != nil || lock == nil {
		t.Fatal(lock, err)
	}
	defer lock.Close()

	removeAbandoned(base)

	for path, want := range map[string]bool{abandoned: false, held: true, fresh: true, foreign: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: there is %v, want %v", path, err == nil, want)
		}
	}
}

func TestSocketPathHasALimit(t *testing.T) {
	t.Parallel()
	longest := make([]byte, socketLimit()-len("/"+socketFile))
	for i := range longest {
		longest[i] = 'a'
	}
	if !socketFits(string(longest)) {
		t.Error("the longest path that fits is refused")
	}
	if socketFits(string(longest) + "a") {
		t.Error("a path that is one byte too long is taken")
	}
}
