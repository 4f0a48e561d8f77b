package pgtest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/migrations"
)

// Option changes the database that a test gets.
type Option func(*config)

type config struct {
	simulatedFrom time.Time
}

// SimulatedTime gives the database a clock (reconciler.clock()) that stands at start
// until the test moves it; see migrations.SimulateTime.
func SimulatedTime(start time.Time) Option {
	return func(c *config) { c.simulatedFrom = start }
}

// URL makes a database with the newest schema and returns how to connect to it as its
// superuser. The database is dropped when the test ends, whoever is still connected.
func URL(t testing.TB, options ...Option) string {
	t.Helper()
	tpl, err := migrated()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	url := create(t, tpl)
	var c config
	for _, option := range options {
		option(&c)
	}
	if !c.simulatedFrom.IsZero() {
		if err := migrations.SimulateTime(t.Context(), url, c.simulatedFrom); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
	}
	return url
}

// Pool is a pool on a database with the newest schema; see [URL]. It is closed when the
// test ends.
func Pool(t testing.TB, options ...Option) *pgxpool.Pool {
	t.Helper()
	return connect(t, URL(t, options...))
}

// migrated is the template with the newest schema. The hash covers the SQL, and, where
// the sources are at hand, the Go code that applies it.
var migrated = sync.OnceValues(func() (template, error) {
	sum := sha256.New()
	add := func(fsys fs.FS, patterns ...string) error {
		for _, pattern := range patterns {
			names, err := fs.Glob(fsys, pattern)
			if err != nil {
				return err
			}
			for _, name := range names {
				text, err := fs.ReadFile(fsys, name)
				if err != nil {
					return err
				}
				fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
			}
		}
		return nil
	}
	err := add(migrations.FS, "*.sql", "functions/*.sql")
	if root := sourceRoot(); root != "" {
		err = errors.Join(err, add(os.DirFS(filepath.Join(root, "migrations")), "*.go"))
	}
	if err != nil {
		return template{}, fmt.Errorf("hash the migrations: %w", err)
	}
	return template{name: "tpl_" + hex.EncodeToString(sum.Sum(nil))[:16], fill: migrations.Up}, nil
})

// sourceRoot is the folder of go.mod above the one that the test runs in, or "" for a
// test binary that was taken elsewhere.
func sourceRoot() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}
