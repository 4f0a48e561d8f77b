package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/migrations"
)

func newMigrateCommand(a *app) *cobra.Command {
	return group("migrate", "Bring the database schema up or down, or say where it stands",
		&cobra.Command{
			Use: "up", Short: "Bring the schema to the version of this program", Args: exactly(),
			RunE: a.verb(func(ctx context.Context, _ []string) error { return a.migrate(ctx, migrations.Up) }),
		},
		&cobra.Command{
			Use: "status", Short: "List the migrations and when each was applied", Args: exactly(),
			RunE: a.verb(func(ctx context.Context, _ []string) error { return a.migrate(ctx, nil) }),
		},
		&cobra.Command{
			Use: "down", Short: "Take the newest migration back, with what it holds", Args: exactly(),
			RunE: a.verb(func(ctx context.Context, _ []string) error { return a.migrate(ctx, migrations.Down) }),
		},
	)
}

type migrationStatus struct {
	Version   int64      `json:"version"`
	Name      string     `json:"name"`
	AppliedAt *time.Time `json:"applied_at"`
}

type migrateAnswer struct {
	Migrations []migrationStatus `json:"migrations"`
	// ForAdministrator are statements that the database user may not run itself.
	ForAdministrator []string `json:"for_administrator"`
}

// migrate changes the schema, if there is a change, and says where it stands.
func (a *app) migrate(ctx context.Context, change func(context.Context, string) error) error {
	c, err := a.maybeConfig()
	if err != nil {
		return err
	}
	url, err := a.database(c)
	if err != nil {
		return err
	}
	if direct := c.Database.DirectURL; direct != "" && url == c.Database.URL {
		url = direct // a pooler cannot carry a migration's locks
	}
	url, stop, err := a.server(ctx, url)
	if err != nil {
		return err
	}
	defer stop()
	answer := migrateAnswer{Migrations: []migrationStatus{}, ForAdministrator: []string{}}
	if change != nil {
		if err := change(ctx, url); err != nil {
			return err
		}
		statements, err := migrations.RoleStatements(ctx, url)
		if err != nil {
			return err
		}
		answer.ForAdministrator = append(answer.ForAdministrator, statements...)
	}
	all, err := migrations.Status(ctx, url)
	if err != nil {
		return err
	}
	for _, m := range all {
		s := migrationStatus{Version: m.Version, Name: m.Name}
		if !m.At.IsZero() {
			s.AppliedAt = &m.At
		}
		answer.Migrations = append(answer.Migrations, s)
	}
	return a.print(answer, answer.text)
}

func (m migrateAnswer) text(w io.Writer) error {
	for _, one := range m.Migrations {
		at := "not applied"
		if one.AppliedAt != nil {
			at = "applied " + one.AppliedAt.UTC().Format(time.RFC3339)
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", one.Name, at); err != nil {
			return err
		}
	}
	if len(m.ForAdministrator) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w, "an administrator must still run, and then `reconciler migrate up` again:"); err != nil {
		return err
	}
	for _, s := range m.ForAdministrator {
		if _, err := fmt.Fprintln(w, "  "+s+";"); err != nil {
			return err
		}
	}
	return nil
}
