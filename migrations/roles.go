package migrations

import (
	"context"
	"database/sql"
)

func applyRoles(ctx context.Context, db *sql.DB) error { return nil }
