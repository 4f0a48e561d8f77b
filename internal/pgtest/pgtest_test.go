package pgtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/migrations"
)

func TestEveryTestHasItsOwnDatabase(t *testing.T) {
	t.Parallel()
	one, two := EmptyPool(t), EmptyPool(t)
	if _, err := one.Exec(t.Context(), "CREATE TABLE mine (id int)"); err != nil {
		t.Fatal(err)
	}
	if exists(t, two, "SELECT to_regclass('mine') IS NOT NULL") {
		t.Error("a table of one database is seen in the other")
	}
}

func TestDatabaseIsDroppedWhenItsTestEnds(t *testing.T) {
	t.Parallel()
	var url string
	t.Run("the test that ends", func(t *testing.T) {
		url = EmptyURL(t)
		// Left open on purpose: a test that fails leaves connections too.
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := pgx.Connect(t.Context(), url); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("connecting to it gives: %v", err)
	}
}

func TestSchemaIsTheNewest(t *testing.T) {
	t.Parallel()
	if err := migrations.Check(t.Context(), Pool(t)); err != nil {
		t.Error(err)
	}
	if exists(t, EmptyPool(t), "SELECT to_regnamespace('reconciler') IS NOT NULL") {
		t.Error("an empty database has the schema")
	}
}

func TestClockIsSimulatedWhereItIsAskedFor(t *testing.T) {
	t.Parallel()
	start := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	for name, test := range map[string]struct {
		options []Option
		want    bool
	}{
		"with SimulatedTime":    {[]Option{SimulatedTime(start)}, true},
		"without SimulatedTime": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var now time.Time
			if err := Pool(t, test.options...).QueryRow(t.Context(), "SELECT reconciler.clock()").Scan(&now); err != nil {
				t.Fatal(err)
			}
			if got := now.Equal(start); got != test.want {
				t.Errorf("the clock says %v", now)
			}
		})
	}
}

func TestTemplateThatWasLeftHalfMadeIsMadeAgain(t *testing.T) {
	t.Parallel()
	s, err := theServer()
	if err != nil {
		t.Fatal(err)
	}
	name := "tpl_half_" + strings.ToLower(t.Name())
	_, err = s.admin.Exec(t.Context(), "CREATE DATABASE "+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, statement := range []string{"ALTER DATABASE " + name + " IS_TEMPLATE false", "DROP DATABASE " + name} {
			if _, err := s.admin.Exec(ctx, statement); err != nil {
				t.Error(err)
			}
		}
	})
	tpl := template{name: name, fill: func(ctx context.Context, url string) error {
		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()
		_, err = pool.Exec(ctx, "CREATE TABLE filled (id int)")
		return err
	}}
	pool := connect(t, create(t, tpl))
	if !exists(t, pool, "SELECT to_regclass('filled') IS NOT NULL") {
		t.Error("the copy has not what the template was filled with")
	}
}

func exists(t *testing.T, pool *pgxpool.Pool, question string) bool {
	t.Helper()
	var yes bool
	if err := pool.QueryRow(t.Context(), question).Scan(&yes); err != nil {
		t.Fatal(err)
	}
	return yes
}
