// Package migrations makes and checks the database schema `reconciler`: numbered
// goose files for tables, indexes and triggers, and functions/*.sql, one function a
// file, which are applied again after them at every [Up].
//
// It promises that two [Up]s at the same moment are one, that a failed migration
// leaves nothing behind, and that no program works on a schema it does not know
// ([Check]). It refuses to touch a schema that is newer than itself.
//
// The functions that are not entry points are callable by their owner only, so they
// need neither SECURITY DEFINER nor a search path of their own: they run under that
// of the function which calls them.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// FS holds the numbered migrations at its root, and functions/ beside them.
//
//go:embed *.sql functions/*.sql
var FS embed.FS

const (
	versionTable = "reconciler.schema_version"
	lockTable    = "reconciler.schema_lock"

	// A dead migrator's lock is free after lockLease; a live one renews it three times
	// in that span. Others try for lockTries steps of lockPause, about two minutes.
	lockLease = 30 * time.Second
	lockPause = 100 * time.Millisecond
	lockTries = 1200

	oldestServer = 150000
)

// Applied is one migration and when it was applied; a zero time means not yet.
type Applied struct {
	Version int64
	Name    string
	At      time.Time
}

// Up brings the schema to the newest version, applies the functions and the group
// roles with their privileges. It is safe to run at any time and by many at once.
// Where the database user may not create roles everything else is done, and the
// statements for an administrator are told by [RoleStatements].
//
// The url must lead to the server itself, not to a pooler.
func Up(ctx context.Context, url string) error {
	return withDatabase(ctx, url, func(db *sql.DB) error {
		if err := createSchema(ctx, db); err != nil {
			return err
		}
		return locked(ctx, db, func() error { return up(ctx, db) })
	})
}

func up(ctx context.Context, db *sql.DB) error {
	if err := refuseNewer(ctx, db); err != nil {
		return err
	}
	p, err := provider(db)
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate up: %w", err)
	}
	if err := applyFunctions(ctx, db); err != nil {
		return err
	}
	return applyRoles(ctx, db)
}

// Down takes back the newest migration. What it drops is gone, evidence included.
func Down(ctx context.Context, url string) error {
	return withDatabase(ctx, url, func(db *sql.DB) error {
		if err := createSchema(ctx, db); err != nil {
			return err
		}
		return locked(ctx, db, func() error {
			if err := refuseNewer(ctx, db); err != nil {
				return err
			}
			p, err := provider(db)
			if err != nil {
				return err
			}
			if _, err := p.Down(ctx); err != nil {
				if errors.Is(err, goose.ErrNoNextVersion) {
					return errors.New("migrate down: there is no migration to take back")
				}
				return fmt.Errorf("migrate down: %w", err)
			}
			return nil
		})
	})
}

// Status lists every migration that this program knows, in order. It changes nothing.
func Status(ctx context.Context, url string) ([]Applied, error) {
	var all []Applied
	err := withDatabase(ctx, url, func(db *sql.DB) error {
		at, err := appliedAt(ctx, db)
		if err != nil {
			return err
		}
		all, err = known()
		for i := range all {
			all[i].At = at[all[i].Version]
		}
		return err
	})
	return all, err
}

func appliedAt(ctx context.Context, db *sql.DB) (map[int64]time.Time, error) {
	at := map[int64]time.Time{}
	exists, err := hasVersionTable(ctx, db)
	if err != nil || !exists {
		return at, err
	}
	// goose writes its times without a zone, in the zone of the session that migrated;
	// ours is UTC.
	rows, err := db.QueryContext(ctx, `
		SELECT version_id, tstamp AT TIME ZONE 'UTC'
		FROM reconciler.schema_version WHERE is_applied AND version_id > 0`)
	if err != nil {
		return nil, fmt.Errorf("read applied migrations: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var v int64
		var t time.Time
		if err := rows.Scan(&v, &t); err != nil {
			return nil, fmt.Errorf("read applied migrations: %w", err)
		}
		at[v] = t.UTC()
	}
	return at, rows.Err()
}

// withDatabase opens one short-lived handle. Its errors never hold the URL, which may
// contain a password.
func withDatabase(ctx context.Context, url string, use func(*sql.DB) error) error {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return errors.New("database URL: not a PostgreSQL connection string; write it like postgres://user@host:5432/name")
	}
	c.RuntimeParams["timezone"] = "UTC"
	c.RuntimeParams["application_name"] = "reconciler migrate"
	db := stdlib.OpenDB(*c)
	defer db.Close()
	if err := db.PingContext(ctx); err != nil {
		return fmt.Errorf("connect to database %s on %s: %w; check that it runs and that the URL is right", c.Database, c.Host, plain(err))
	}
	return use(db)
}

// plain cuts a connection error down to what the server or the network said: pgx's
// own error repeats the user and the host in a long sentence.
func plain(err error) error {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s (SQLSTATE %s)", pe.Message, pe.Code)
	}
	var ce *pgconn.ConnectError
	if errors.As(err, &ce) && ce.Unwrap() != nil {
		err = ce.Unwrap()
	}
	// The first try's own cause: there is one for each address, with and without TLS.
	var name *net.DNSError
	var dial *net.OpError
	switch {
	case errors.As(err, &name):
		return name
	case errors.As(err, &dial):
		return dial.Err
	}
	return err
}

// createSchema makes the schema before anything else, because the version table and
// the lock live in it. Two at once may race past IF NOT EXISTS; then one of them
// meets the other's row, and the schema is there.
func createSchema(ctx context.Context, db *sql.DB) error {
	var version int
	var encoding string
	const ask = `SELECT current_setting('server_version_num')::int, current_setting('server_encoding')`
	if err := db.QueryRowContext(ctx, ask).Scan(&version, &encoding); err != nil {
		return fmt.Errorf("read the server's version: %w", err)
	}
	if version < oldestServer {
		return fmt.Errorf("the server is PostgreSQL %d: 15 or later is needed", version/10000)
	}
	if err := compareEncoding(encoding); err != nil {
		return err
	}
	var user, owner string
	var may bool
	const existing = `SELECT current_user, pg_get_userbyid(n.nspowner), pg_has_role(current_user, n.nspowner, 'USAGE')
		FROM pg_namespace n WHERE n.nspname = 'reconciler'`
	err := db.QueryRowContext(ctx, existing).Scan(&user, &owner, &may)
	switch {
	case err == nil && may:
		return nil
	case err == nil: // else the lock below would be tried for as long as another's is waited for
		return fmt.Errorf("schema reconciler belongs to %s, and the database role %s is no member of it: migrate with a login that is", owner, user)
	case !errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("look for schema reconciler: %w", err)
	}
	_, err = db.ExecContext(ctx, `CREATE SCHEMA IF NOT EXISTS reconciler`)
	var pe *pgconn.PgError
	if errors.As(err, &pe) && (pe.Code == "23505" || pe.Code == "42P06") {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create schema reconciler: %w; the migrating user needs CREATE on the database", err)
	}
	return nil
}

// locked runs fn while no other migrator runs. A table holds the lock, because a
// session's advisory lock is lost behind a pooler and unknown to other nodes.
func locked(ctx context.Context, db *sql.DB, fn func() error) (err error) {
	l, err := lock.NewPostgresTableLocker(
		lock.WithTableName(lockTable),
		lock.WithTableLeaseDuration(lockLease),
		lock.WithTableHeartbeatInterval(lockLease/3),
		lock.WithTableLockTimeout(lockPause, lockTries),
		lock.WithTableLogger(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		return fmt.Errorf("make the migration lock: %w", err)
	}
	if err := l.Lock(ctx, db); err != nil {
		return fmt.Errorf("take the migration lock in %s: %w; another migration is running, wait for it", lockTable, err)
	}
	defer func() { err = errors.Join(err, l.Unlock(ctx, db)) }()
	return fn()
}

func provider(db *sql.DB) (*goose.Provider, error) {
	p, err := goose.NewProvider(goose.DialectPostgres, db, FS,
		goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true),
		goose.WithSlog(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return p, nil
}

// applyFunctions replaces every function in one transaction, so that no caller ever
// meets half of a new set.
func applyFunctions(ctx context.Context, db *sql.DB) error {
	files, err := fs.Glob(FS, "functions/*.sql")
	if err != nil {
		return fmt.Errorf("list the functions: %w", err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("apply functions: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after the commit it does nothing
	for _, name := range files {
		text, err := FS.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if _, err := tx.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("apply %s: %w", name, err)
		}
	}
	if _, err := tx.ExecContext(ctx, `REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA reconciler FROM PUBLIC`); err != nil {
		return fmt.Errorf("revoke functions from PUBLIC: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("apply functions: %w", err)
	}
	return nil
}
