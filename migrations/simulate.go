package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// SimulateTime gives a database a clock that stands still until somebody moves it,
// for the demo and for tests. It is refused once operations were recorded: leases
// judged by a clock that stands still would never end. Set the time with
// ledger.SetSimulatedTime.
func SimulateTime(ctx context.Context, url string, start time.Time) error {
	return withDatabase(ctx, url, func(db *sql.DB) error {
		var used bool
		if err := db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM reconciler.operations)`).Scan(&used); err != nil {
			return fmt.Errorf("look for operations: %w; run `reconciler migrate up` first", err)
		}
		if used {
			return errors.New("simulated time: the database already holds operations; make a new one for the simulation")
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return fmt.Errorf("simulate time: %w", err)
		}
		defer func() { _ = tx.Rollback() }() // after the commit it does nothing
		if _, err := tx.ExecContext(ctx, createSimulatedTime); err != nil {
			return fmt.Errorf("simulate time: %w", err)
		}
		if _, err := tx.ExecContext(ctx, `
			INSERT INTO reconciler.simulated_time (one, at) VALUES (true, $1)
			ON CONFLICT (one) DO UPDATE SET at = excluded.at`, start.UTC()); err != nil {
			return fmt.Errorf("simulate time: %w", err)
		}
		if err := tx.Commit(); err != nil {
			return fmt.Errorf("simulate time: %w", err)
		}
		return applyRoles(ctx, db) // the clock reads the new table as the schema's owner
	})
}

// The table's presence is what makes reconciler.clock() a simulated one.
const createSimulatedTime = `
	CREATE TABLE IF NOT EXISTS reconciler.simulated_time (
		one boolean PRIMARY KEY DEFAULT true,
		at  timestamptz NOT NULL,
		CONSTRAINT simulated_time_one_row CHECK (one)
	)`
