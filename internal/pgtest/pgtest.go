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

// EncodedURL is EmptyURL for a database that keeps its texts in an encoding of that name,
// such as LATIN1.
func EncodedURL(t testing.TB, encoding string) string {
	t.Helper()
	s, err := theServer()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return s.create(t, "ENCODING '"+encoding+"' LOCALE 'C' TEMPLATE template0")
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
	// FILE_COPY, since with fsync off its two checkpoints cost little: 12 ms a database
	// where WAL_LOG takes 40 ms and leaves every page of the copy to be written later.
	return s.create(t, "STRATEGY FILE_COPY TEMPLATE "+pgx.Identifier{tpl.name}.Sanitize())
}

// create makes a database that lives as long as the test.
func (s *server) create(t testing.TB, options string) string {
	t.Helper()
	name := "t_" + strings.ToLower(rand.Text()[:16])
	statement := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize() + " " + options
	if _, err := s.admin.Exec(t.Context(), statement); err != nil {
		t.Fatalf("pgtest: create a database with %s: %v", options, err)
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
