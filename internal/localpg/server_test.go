package localpg

import (
	"context"
	"os"
	"testing"
	"time"
)

func TestSmoke(t *testing.T) {
	t0 := time.Now()
	s, err := Start(t.Context(), Options{Dir: home(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(s.URL("x"), time.Since(t0))
	if err := s.CreateDatabase(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	t0 = time.Now()
	if err := s.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(t0))
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
