package migrations

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Behind says that the database's schema is older than this program, or not there.
type Behind struct {
	Have, Want int64  // versions; Have is 0 when there is no schema
	Function   string // one that is missing at the wanted version; else empty
}

func (e *Behind) Error() string {
	if e.Have == 0 {
		return "the database has no reconciler schema: run `reconciler migrate up`"
	}
	if e.Function != "" {
		return fmt.Sprintf("the database has no function reconciler.%s, which this program needs: run `reconciler migrate up`", e.Function)
	}
	return fmt.Sprintf("the database's schema is version %d and this program needs %d: run `reconciler migrate up`", e.Have, e.Want)
}

// Newer says that the database's schema was made by a newer program. Working on it
// could close operations by rules that no longer hold, so it is refused.
type Newer struct {
	Have, Want int64
}

func (e *Newer) Error() string {
	return fmt.Sprintf("the database's schema is version %d and this program knows only %d: use the newer program; nothing was changed", e.Have, e.Want)
}

// Encoding says that the database keeps texts otherwise than in UTF-8, in which alone ids
// and keys are kept byte by byte, references compared and requests hashed.
type Encoding struct {
	Have string
}

func (e *Encoding) Error() string {
	return fmt.Sprintf("the database's encoding is %s, and texts, keys and hashes need UTF8: make another one with "+
		"CREATE DATABASE … ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0; nothing was changed", e.Have)
}

func compareEncoding(have string) error {
	if have != "UTF8" {
		return &Encoding{have}
	}
	return nil
}

// Querier is a connection, a pool or a transaction of pgx.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Check reports whether the database has exactly the schema that this program knows, and
// every function of it: nil, *Encoding, *Behind or *Newer.
func Check(ctx context.Context, conn Querier) error {
	want, err := newest()
	if err != nil {
		return err
	}
	// to_regclass first: naming a table that is not there is an error of its own.
	var encoding string
	var exists bool
	const ask = `SELECT current_setting('server_encoding'), to_regclass('reconciler.schema_version') IS NOT NULL`
	if err := conn.QueryRow(ctx, ask).Scan(&encoding, &exists); err != nil {
		return fmt.Errorf("look for the schema's version: %w", err)
	}
	if err := compareEncoding(encoding); err != nil {
		return err
	}
	if !exists {
		return &Behind{Want: want}
	}
	var have int64
	if err := conn.QueryRow(ctx, versionQuery).Scan(&have); err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if err := compare(have, want); err != nil {
		return err
	}
	return checkFunctions(ctx, conn, want)
}

// checkFunctions finds what an earlier program of the same version did not know.
func checkFunctions(ctx context.Context, conn Querier, version int64) error {
	files, err := fs.Glob(FS, "functions/*.sql")
	if err != nil {
		return fmt.Errorf("list the functions: %w", err)
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(path.Base(file), ".sql"))
	}
	var missing string
	err = conn.QueryRow(ctx, `
		SELECT coalesce(min(f.name), '')
		FROM unnest($1::text[]) AS f (name)
		WHERE NOT EXISTS (
			SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
			WHERE n.nspname = 'reconciler' AND p.proname = f.name)`, names).Scan(&missing)
	switch {
	case err != nil:
		return fmt.Errorf("look for the schema's functions: %w", err)
	case missing != "":
		return &Behind{Have: version, Want: version, Function: missing}
	}
	return nil
}

const versionQuery = `SELECT coalesce(max(version_id), 0) FROM reconciler.schema_version WHERE is_applied`

func compare(have, want int64) error {
	switch {
	case have < want:
		return &Behind{Have: have, Want: want}
	case have > want:
		return &Newer{Have: have, Want: want}
	}
	return nil
}

func refuseNewer(ctx context.Context, db *sql.DB) error {
	want, err := newest()
	if err != nil {
		return err
	}
	exists, err := hasVersionTable(ctx, db)
	if err != nil || !exists {
		return err
	}
	var have int64
	if err := db.QueryRowContext(ctx, versionQuery).Scan(&have); err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if have > want {
		return &Newer{Have: have, Want: want}
	}
	return nil
}

func hasVersionTable(ctx context.Context, db *sql.DB) (bool, error) {
	var exists bool
	if err := db.QueryRowContext(ctx, `SELECT to_regclass('reconciler.schema_version') IS NOT NULL`).Scan(&exists); err != nil {
		return false, fmt.Errorf("look for the schema's version: %w", err)
	}
	return exists, nil
}

// known lists the migrations in order, with the versions that their names begin with.
func known() ([]Applied, error) {
	names, err := fs.Glob(FS, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("list the migrations: %w", err)
	}
	all := make([]Applied, 0, len(names))
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s: its name must begin with its number", name)
		}
		all = append(all, Applied{Version: version, Name: name})
	}
	return all, nil
}

func newest() (int64, error) {
	all, err := known()
	if err != nil || len(all) == 0 {
		return 0, err
	}
	return all[len(all)-1].Version, nil
}
