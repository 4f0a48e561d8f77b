//go:build e2e

package restore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/internal/localpg"
)

// database is the name of the ledger's database, on whichever server.
const database = "reconciler"

// newServer starts an empty server, with roles of its own.
func newServer(t *testing.T) *localpg.Server {
	t.Helper()
	s, err := localpg.Start(t.Context(), localpg.Options{Throwaway: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask gives the rows of a query, each as one text.
func ask(t *testing.T, url, sql string, args ...any) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return all
}

// do runs a statement and gives its error.
func do(t *testing.T, url, sql string, args ...any) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), sql, args...)
	return err
}

func must(t *testing.T, url, sql string, args ...any) {
	t.Helper()
	if err := do(t, url, sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// as is the same address for another login.
func as(login, url string) string {
	return strings.Replace(url, "postgres://postgres@", "postgres://"+login+"@", 1)
}

// content is every row of every table of the ledger: how many, and a digest of them all.
func content(t *testing.T, url string) map[string]string {
	t.Helper()
	tables := map[string]string{}
	for _, name := range ask(t, url, `SELECT relname::text FROM pg_class WHERE relnamespace = 'reconciler'::regnamespace AND relkind = 'r'`) {
		tables[name] = ask(t, url, fmt.Sprintf(`SELECT count(*) || ' rows, ' || md5(coalesce(string_agg(x::text, E'\n' ORDER BY x::text COLLATE "C"), ''))
			FROM reconciler.%s x`, pgx.Identifier{name}.Sanitize()))[0]
	}
	return tables
}

// roles are the logins and groups, who is in which, and what is set for them.
func roles(t *testing.T, url string) []string {
	t.Helper()
	return ask(t, url, `
		SELECT concat_ws(' ', r.rolname, r.rolcanlogin, r.rolsuper, r.rolconfig, (SELECT array_agg(g.rolname ORDER BY g.rolname)
			FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid))
		FROM pg_roles r WHERE r.rolname NOT LIKE 'pg\_%' ORDER BY r.rolname`)
}
