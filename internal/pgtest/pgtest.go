package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// dropLimit bounds the removal of a test's database.
const dropLimit = 30 * time.Second

// EmptyURL makes a database without a schema and returns how to connect to it as its
// superuser. The database is dropped when the test ends, whoever is still connected.
func EmptyURL(t testing.TB) string {
	t.Helper()
	return create(t, empty)
}

// EmptyPool is a pool on a database without a schema; see [EmptyURL].
func EmptyPool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return connect(t, EmptyURL(t))
}

func connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatalf("pgtest: open a pool on %s: %v", url, err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// create copies a template into a new database that lives as long as the test.
func create(t testing.TB, tpl template) string {
	t.Helper()
	s, err := theServer()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	if err := s.ensure(t.Context(), tpl); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	name := "t_" + strings.ToLower(rand.Text()[:16])
	// FILE_COPY, since with fsync off its two checkpoints cost little: 12 ms a database
	// where WAL_LOG takes 40 ms and leaves every page of the copy to be written later.
	statement := fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s STRATEGY FILE_COPY",
		pgx.Identifier{name}.Sanitize(), pgx.Identifier{tpl.name}.Sanitize())
	if _, err := s.admin.Exec(t.Context(), statement); err != nil {
		t.Fatalf("pgtest: create a database from %s: %v", tpl.name, err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), dropLimit)
		defer cancel()
		statement := fmt.Sprintf("DROP DATABASE %s WITH (FORCE)", pgx.Identifier{name}.Sanitize())
		err := s.awaitUnused(ctx, name)
		if err == nil {
			_, err = s.admin.Exec(ctx, statement)
		}
		if err != nil {
			t.Errorf("pgtest: drop database %s: %v", name, err)
		}
	})
	return s.cluster.URL(name)
}
