package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Group roles without login. People and services are made members of them.
const (
	ownerRole    = "reconciler_owner"    // owns the schema; the functions run as it
	agentRole    = "reconciler_agent"    // acts: the three functions, and no table but the schema's version
	daemonRole   = "reconciler_daemon"   // sweeps: reads all, writes what is not evidence, adds evidence
	viewerRole   = "reconciler_viewer"   // reads, but not the providers' raw objects
	operatorRole = "reconciler_operator" // a viewer who works on findings
	approverRole = "reconciler_approver" // a viewer who settles them
)

var roles = []string{ownerRole, agentRole, daemonRole, viewerRole, operatorRole, approverRole}

// grants is all that each role may do. Operators and approvers are viewers besides.
var grants = map[string][]string{
	agentRole: {
		`GRANT USAGE ON SCHEMA reconciler TO reconciler_agent`,
		`GRANT EXECUTE ON FUNCTION reconciler.open_operation(jsonb), reconciler.claim_operation(jsonb),
			reconciler.finish_attempt(jsonb) TO reconciler_agent`,
		// So that a program finds out first whether it knows this schema.
		`GRANT SELECT ON reconciler.schema_version TO reconciler_agent`,
	},
	daemonRole: {
		`GRANT USAGE ON SCHEMA reconciler TO reconciler_daemon`,
		`GRANT EXECUTE ON FUNCTION reconciler.open_operation(jsonb), reconciler.claim_operation(jsonb),
			reconciler.finish_attempt(jsonb), reconciler.act(jsonb), reconciler.approve(jsonb), reconciler.clock(),
			reconciler.appeared(text, timestamptz, integer) TO reconciler_daemon`,
		`GRANT EXECUTE ON FUNCTION reconciler.receive_events(text, text[], text[], text[], text[], text[], text[], text[], text[],
			boolean[], integer[], timestamptz[], timestamptz[], bytea[], bytea[], bytea[]) TO reconciler_daemon`,
		`GRANT SELECT ON ALL TABLES IN SCHEMA reconciler TO reconciler_daemon`,
		`GRANT INSERT ON reconciler.journal, reconciler.looks, reconciler.effect_changes TO reconciler_daemon`,
		// So that personal data is erased from them too.
		`GRANT UPDATE (before, after) ON reconciler.effect_changes TO reconciler_daemon`,
		`GRANT INSERT, UPDATE ON reconciler.policies, reconciler.operations, reconciler.checks, reconciler.effects,
			reconciler.findings, reconciler.notices, reconciler.incidents, reconciler.runs, reconciler.source_state, reconciler.blobs,
			reconciler.events, reconciler.feeds, reconciler.audit_lists TO reconciler_daemon`,
		`GRANT INSERT, UPDATE ON reconciler.people, reconciler.tallies, reconciler.tally_marks TO reconciler_daemon`,
		`GRANT INSERT ON reconciler.coverage TO reconciler_daemon`,
		`GRANT INSERT, UPDATE ON reconciler.matches TO reconciler_daemon`,
		`GRANT INSERT, UPDATE, DELETE ON reconciler.allocations, reconciler.wanted TO reconciler_daemon`,
		`GRANT DELETE ON reconciler.repeats, reconciler.runs TO reconciler_daemon`,
		`REVOKE SELECT ON reconciler.schema_lock FROM reconciler_daemon`,
	},
	viewerRole: {
		`GRANT USAGE ON SCHEMA reconciler TO reconciler_viewer`,
		`GRANT EXECUTE ON FUNCTION reconciler.clock() TO reconciler_viewer`,
		`GRANT SELECT ON ALL TABLES IN SCHEMA reconciler TO reconciler_viewer`,
		`REVOKE SELECT ON reconciler.blobs, reconciler.schema_lock FROM reconciler_viewer`,
	},
	operatorRole: {
		`GRANT EXECUTE ON FUNCTION reconciler.act(jsonb) TO reconciler_operator`,
	},
	approverRole: {
		`GRANT EXECUTE ON FUNCTION reconciler.approve(jsonb) TO reconciler_approver`,
	},
}

// RoleStatements lists what an administrator must still run because the migrating
// user may not make roles; run [Up] again afterwards, which gives them their
// privileges. It is empty when nothing is missing.
func RoleStatements(ctx context.Context, url string) ([]string, error) {
	var statements []string
	err := withDatabase(ctx, url, func(db *sql.DB) error {
		missing, err := missingRoles(ctx, db)
		if err != nil {
			return err
		}
		for _, role := range missing {
			statements = append(statements, "CREATE ROLE "+role+" NOLOGIN")
		}
		var user string
		var member bool
		const ask = `
			SELECT current_user, coalesce((SELECT pg_has_role(current_user, r.oid, 'USAGE')
				FROM pg_roles r WHERE r.rolname = $1), false)`
		if err := db.QueryRowContext(ctx, ask, ownerRole).Scan(&user, &member); err != nil {
			return fmt.Errorf("look for membership in %s: %w", ownerRole, err)
		}
		if !member {
			statements = append(statements, "GRANT "+ownerRole+" TO "+pgx.Identifier{user}.Sanitize())
		}
		for _, role := range []string{operatorRole, approverRole} {
			const viewer = `SELECT EXISTS (SELECT 1 FROM pg_roles v, pg_roles r
				WHERE v.rolname = $1 AND r.rolname = $2 AND pg_has_role(r.oid, v.oid, 'USAGE'))`
			if err := db.QueryRowContext(ctx, viewer, viewerRole, role).Scan(&member); err != nil {
				return fmt.Errorf("look whether %s is a viewer: %w", role, err)
			}
			if !member {
				statements = append(statements, "GRANT "+viewerRole+" TO "+role)
			}
		}
		return nil
	})
	return statements, err
}

// applyRoles makes the roles that are missing, where it may, hands the schema to the
// owner role and gives every role its privileges.
func applyRoles(ctx context.Context, db *sql.DB) error {
	missing, err := missingRoles(ctx, db)
	if err != nil {
		return err
	}
	for _, role := range missing {
		if err := createRole(ctx, db, role); err != nil {
			return err
		}
	}
	if err := handOver(ctx, db); err != nil {
		return err
	}
	missing, err = missingRoles(ctx, db)
	if err != nil {
		return err
	}
	return grantAll(ctx, db, missing)
}

func missingRoles(ctx context.Context, db *sql.DB) ([]string, error) {
	rows, err := db.QueryContext(ctx, `SELECT rolname FROM pg_roles WHERE rolname LIKE 'reconciler\_%'`)
	if err != nil {
		return nil, fmt.Errorf("list roles: %w", err)
	}
	defer rows.Close()
	have := map[string]bool{}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("list roles: %w", err)
		}
		have[name] = true
	}
	var missing []string
	for _, role := range roles {
		if !have[role] {
			missing = append(missing, role)
		}
	}
	return missing, rows.Err()
}

// createRole makes one role. Roles belong to the whole server, so a migration of
// another database may make it at the same moment; and not every user may make them,
// which [RoleStatements] tells.
func createRole(ctx context.Context, db *sql.DB, role string) error {
	_, err := db.ExecContext(ctx, "CREATE ROLE "+role+" NOLOGIN")
	if err != nil && !sqlState(err, "42710", "23505", "42501") {
		return fmt.Errorf("create role %s: %w", role, err)
	}
	if err != nil || role != ownerRole {
		return nil
	}
	// Who makes a role is not a member of it by that, unless a superuser, who needs not be.
	_, err = db.ExecContext(ctx, "GRANT "+ownerRole+" TO CURRENT_USER")
	if err != nil && !concurrent(err) {
		return fmt.Errorf("join role %s: %w", ownerRole, err)
	}
	return nil
}

// handOver gives schema, tables and functions to the owner role, so that the
// functions, which run with their owner's rights, have no more than they need. A user
// who is no member of it keeps them.
func handOver(ctx context.Context, db *sql.DB) error {
	const member = `SELECT EXISTS (SELECT 1 FROM pg_roles r
		WHERE r.rolname = $1 AND pg_has_role(current_user, r.oid, 'USAGE'))`
	var may bool
	if err := db.QueryRowContext(ctx, member, ownerRole).Scan(&may); err != nil {
		return fmt.Errorf("look for membership in %s: %w", ownerRole, err)
	}
	if !may {
		return nil
	}
	rows, err := db.QueryContext(ctx, foreignObjects, ownerRole)
	if err != nil {
		return fmt.Errorf("list objects of schema reconciler: %w", err)
	}
	defer rows.Close()
	var statements []string
	for rows.Next() {
		var object string
		if err := rows.Scan(&object); err != nil {
			return fmt.Errorf("list objects of schema reconciler: %w", err)
		}
		statements = append(statements, "ALTER "+object+" OWNER TO "+ownerRole)
	}
	if err := rows.Err(); err != nil || len(statements) == 0 {
		return err
	}
	if _, err := db.ExecContext(ctx, strings.Join(statements, ";\n")); err != nil {
		return fmt.Errorf("hand schema reconciler to %s: %w", ownerRole, err)
	}
	return nil
}

// The schema first, for its owner must be able to create in it. Sequences follow
// their tables.
const foreignObjects = `
	SELECT object FROM (
		SELECT 0 AS place, 'SCHEMA reconciler' AS object, n.nspowner AS owner
		FROM pg_namespace n WHERE n.nspname = 'reconciler'
		UNION ALL
		SELECT 1, 'TABLE ' || c.oid::regclass::text, c.relowner
		FROM pg_class c WHERE c.relnamespace = 'reconciler'::regnamespace AND c.relkind IN ('r', 'p')
		UNION ALL
		SELECT 2, 'FUNCTION ' || p.oid::regprocedure::text, p.proowner
		FROM pg_proc p WHERE p.pronamespace = 'reconciler'::regnamespace
	) o WHERE owner <> (SELECT r.oid FROM pg_roles r WHERE r.rolname = $1)
	ORDER BY place, object`

// grantAll gives every role that is there its privileges and takes all others from it, so
// that what an older version gave, or somebody by hand, does not stay. That is one
// transaction: nobody meets a role that has less than its part, or more.
func grantAll(ctx context.Context, db *sql.DB, missing []string) error {
	var there []string
	for _, role := range roles {
		if !slices.Contains(missing, role) && role != ownerRole {
			there = append(there, role)
		}
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("grant privileges: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after the commit it does nothing
	for _, role := range there {
		for _, statement := range append(revocations(role), grants[role]...) {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("grant privileges of %s: %w", role, err)
			}
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("grant privileges: %w", err)
	}
	return joinViewers(ctx, db, there)
}

// revocations takes from a role what it has in the schema.
func revocations(role string) []string {
	return []string{
		"REVOKE ALL ON SCHEMA reconciler FROM " + role,
		"REVOKE ALL ON ALL TABLES IN SCHEMA reconciler FROM " + role,
		"REVOKE ALL ON ALL SEQUENCES IN SCHEMA reconciler FROM " + role,
		"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA reconciler FROM " + role,
	}
}

// joinViewers makes operators and approvers viewers. Membership of roles belongs to the
// whole server: another database's migration may change it at the same moment, to the
// same, and not every user may change it, which needs not be told where it is so already.
func joinViewers(ctx context.Context, db *sql.DB, there []string) error {
	if !slices.Contains(there, viewerRole) {
		return nil
	}
	for _, role := range []string{operatorRole, approverRole} {
		if !slices.Contains(there, role) {
			continue
		}
		_, err := db.ExecContext(ctx, "GRANT "+viewerRole+" TO "+role)
		if err != nil && !concurrent(err) && !sqlState(err, "42501") {
			return fmt.Errorf("make %s a viewer: %w", role, err)
		}
	}
	return nil
}

func sqlState(err error, codes ...string) bool {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return false
	}
	for _, c := range codes {
		if pe.Code == c {
			return true
		}
	}
	return false
}

// concurrent reports whether another session changed the same shared catalog row.
func concurrent(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && (pe.Code == "23505" || pe.Code == "XX000" && strings.Contains(pe.Message, "concurrently updated"))
}
