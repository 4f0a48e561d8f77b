package migrations_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/migrations"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const insertBare = `
	INSERT INTO reconciler.operations (tenant, operation_id, source, action, target, state, created_at, mode,
		policy_version, lease_until, unknown_since)
	VALUES ('default', $1, 's', 'a', 't', $2, '2026-01-01Z', 'live', 1, '2026-01-01Z', '2026-01-01Z')`

func TestTheTriggerAllowsExactlyTheTransitionsOfTheVocabulary(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	legal := 0
	for _, from := range recon.States {
		for _, to := range recon.States {
			id := fmt.Sprintf("%s to %s", from, to)
			exec(t, conn, insertBare, id, string(from))
			_, err := conn.Exec(t.Context(), `UPDATE reconciler.operations SET state = $2
				WHERE tenant = 'default' AND operation_id = $1`, id, string(to))
			if got, want := err == nil, recon.Legal(from, to); got != want {
				t.Errorf("%s: the database allows it: %v (%v), recon.Legal: %v", id, got, err, want)
			}
			if err == nil {
				legal++
				continue
			}
			var pe *pgconn.PgError
			if !errors.As(err, &pe) || pe.Code != "23514" || !strings.Contains(pe.Message, string(from)+" may not become "+string(to)) {
				t.Errorf("%s is refused with %v", id, err)
			}
		}
	}
	if want := 6 + 22; legal != want { // every state to itself, and the rows of the table
		t.Errorf("%d of 36 pairs are legal, want %d", legal, want)
	}
}

func TestEvidenceIsAppendOnlyAlsoWhereNoRowIsHitAndForASuperuser(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	exec(t, conn, insertBare, "op", "pending")
	exec(t, conn, `INSERT INTO reconciler.journal (tenant, operation_id, seq, kind, at, body, hash)
		VALUES ('default', 'op', 1, 'opened', now(), '{}', sha256('{}'))`)
	exec(t, conn, `INSERT INTO reconciler.looks (tenant, look_id, source, method, outcome, at, complete)
		VALUES ('default', 'l', 's', 'list', 'absent', now(), true) ON CONFLICT DO NOTHING`)
	for _, statement := range []string{
		`UPDATE reconciler.journal SET body = '{"x":1}'`,
		`UPDATE reconciler.journal SET body = '{"x":1}' WHERE tenant = 'nobody'`,
		`DELETE FROM reconciler.journal`,
		`DELETE FROM reconciler.journal WHERE false`,
		`TRUNCATE reconciler.journal`,
		`UPDATE reconciler.looks SET outcome = 'found'`,
		`UPDATE reconciler.looks SET outcome = 'found' WHERE tenant = 'nobody'`,
		`DELETE FROM reconciler.looks`,
		`DELETE FROM reconciler.looks WHERE false`,
		`TRUNCATE reconciler.looks`,
		`INSERT INTO reconciler.looks (tenant, look_id, source, method, outcome, at, complete)
			VALUES ('default', 'l', 's', 'list', 'found', now(), true)
			ON CONFLICT (tenant, look_id) DO UPDATE SET outcome = excluded.outcome`,
	} {
		_, err := conn.Exec(t.Context(), statement)
		var pe *pgconn.PgError
		if !errors.As(err, &pe) || pe.Code != "42501" || !strings.Contains(pe.Message, "append-only") {
			t.Errorf("%s: %v, want a refusal", statement, err)
		}
	}
}

func TestTheDatabaseRefusesRowsThatSayTheImpossible(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	exec(t, conn, insertBare, "op", "pending")
	for name, c := range map[string]struct{ set, constraint string }{
		"a state that is no state":                {`state = 'done'`, "operations_state_known"},
		"an amount of nothing":                    {`amount = 0, currency = 'EUR'`, "operations_amount_positive"},
		"an amount without currency":              {`amount = 1`, "operations_amount_has_currency"},
		"a currency in lower case":                {`currency = 'eur'`, "operations_currency_is_code"},
		"in progress without an end of the lease": {`state = 'in_progress', lease_until = NULL`, "operations_lease_ends"},
		"a token outside a lease":                 {`lease_token = 'x'`, "operations_token_in_progress"},
		"unknown since never":                     {`state = 'unknown', unknown_since = NULL`, "operations_unknown_since"},
		"a closed operation that holds a slot":    {`state = 'failed', slot = 'x'`, "operations_slot_is_open"},
		"a release of a closed operation":         {`state = 'failed', released = true`, "operations_released_is_open"},
		"an infinite instant":                     {`created_at = 'infinity'`, "operations_created_in_range"},
		"an instant in the year 40000":            {`sent_at = '40000-01-01Z'`, "operations_sent_in_range"},
	} {
		_, err := conn.Exec(t.Context(), `UPDATE reconciler.operations SET `+c.set+` WHERE tenant = 'default' AND operation_id = 'op'`)
		var pe *pgconn.PgError
		// The transition trigger comes first for what is no state.
		if !errors.As(err, &pe) || pe.Code != "23514" || pe.ConstraintName != c.constraint && c.constraint != "operations_state_known" {
			t.Errorf("%s: %v, want constraint %s", name, err, c.constraint)
		}
	}
	_, err := conn.Exec(t.Context(), insertBare, "other", "done")
	if err == nil || !strings.Contains(err.Error(), "operations_state_known") {
		t.Errorf("inserting a state that is no state: %v", err)
	}
}

func TestOnlyTheEntryPointsCanBeCalledByOthersAndTheyRunSafely(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	rows, err := conn.Query(t.Context(), `
		SELECT p.proname, p.prosecdef AND p.proconfig = ARRAY['search_path=reconciler, pg_temp'],
			has_function_privilege('public', p.oid, 'EXECUTE'),
			has_function_privilege('reconciler_agent', p.oid, 'EXECUTE'),
			pg_get_userbyid(p.proowner)
		FROM pg_proc p WHERE p.pronamespace = 'reconciler'::regnamespace`)
	must(t, err)
	agent := map[string]bool{}
	var name, owner string
	var safe, byPublic, byAgent bool
	_, err = pgx.ForEachRow(rows, []any{&name, &safe, &byPublic, &byAgent, &owner}, func() error {
		if byPublic {
			t.Errorf("%s: anybody may call it", name)
		}
		if byAgent {
			agent[name] = true
			if !safe {
				t.Errorf("%s is called by others, but is not SECURITY DEFINER with a fixed search path", name)
			}
		}
		if owner != "reconciler_owner" {
			t.Errorf("%s belongs to %s", name, owner)
		}
		return nil
	})
	must(t, err)
	for _, want := range []string{"open_operation", "claim_operation", "finish_attempt"} {
		if !agent[want] {
			t.Errorf("an agent may not call %s", want)
		}
		delete(agent, want)
	}
	if len(agent) > 0 {
		t.Errorf("an agent may also call %v", agent)
	}
}

func TestRolesMayDoWhatTheirNameSaysAndNoMore(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	const open = `SELECT reconciler.open_operation('{"action":"refund.create","target":"t","request":{}}')`
	const look = `INSERT INTO reconciler.looks (tenant, look_id, source, method, outcome, at, complete)
		VALUES ('default', 'l', 's', 'list', 'found', now(), true)`
	for _, c := range []struct {
		role, statement string
		may             bool
	}{
		{"reconciler_agent", open, true},
		{"reconciler_agent", `SELECT 1 FROM reconciler.operations`, false},
		{"reconciler_agent", `SELECT reconciler.current_tenant()`, false},
		{"reconciler_daemon", open, true},
		{"reconciler_daemon", `SELECT reconciler.clock()`, true},
		{"reconciler_daemon", look, true},
		{"reconciler_daemon", `UPDATE reconciler.looks SET outcome = 'absent'`, false},
		{"reconciler_daemon", `UPDATE reconciler.events SET state = 'done'`, true},
		{"reconciler_daemon", `DELETE FROM reconciler.events`, false},
		{"reconciler_daemon", `DELETE FROM reconciler.wanted`, true},
		{"reconciler_daemon", `UPDATE reconciler.effect_changes SET before = '{}'`, true},
		{"reconciler_daemon", `UPDATE reconciler.effect_changes SET at = now()`, false},
		{"reconciler_viewer", `SELECT 1 FROM reconciler.events`, true},
		{"reconciler_viewer", `UPDATE reconciler.events SET state = 'new'`, false},
		{"reconciler_daemon", `DELETE FROM reconciler.journal`, false},
		{"reconciler_daemon", `TRUNCATE reconciler.looks`, false},
		{"reconciler_daemon", `DELETE FROM reconciler.operations`, false},
		{"reconciler_daemon", `SELECT 1 FROM reconciler.operations FOR UPDATE`, true},
		{"reconciler_viewer", `SELECT 1 FROM reconciler.operations`, true},
		{"reconciler_viewer", `SELECT 1 FROM reconciler.blobs`, false},
		{"reconciler_viewer", open, false},
		{"reconciler_viewer", look, false},
		{"reconciler_operator", `SELECT 1 FROM reconciler.findings`, true},
		{"reconciler_operator", `UPDATE reconciler.findings SET state = 'settled'`, false},
		{"reconciler_approver", `SELECT 1 FROM reconciler.findings`, true},
	} {
		err := asRole(a, c.role, c.statement)
		if c.may && err != nil {
			t.Errorf("%s: %s: %v", c.role, c.statement, err)
		}
		var pe *pgconn.PgError
		if !c.may && (!errors.As(err, &pe) || pe.Code != "42501") {
			t.Errorf("%s: %s: %v, want permission denied", c.role, c.statement, err)
		}
	}
}

func asRole(a actor, role, statement string) error {
	tx, err := a.pool.Begin(a.t.Context())
	must(a.t, err)
	defer func() { _ = tx.Rollback(context.WithoutCancel(a.t.Context())) }()
	if _, err := tx.Exec(a.t.Context(), "SET LOCAL ROLE "+role); err != nil {
		return err
	}
	_, err = tx.Exec(a.t.Context(), statement)
	return err
}

func TestAnOrdinaryUserMigratesAndIsToldWhatAnAdministratorMustRun(t *testing.T) {
	t.Parallel()
	pgtest.URL(t) // somebody made the group roles of this server
	url := pgtest.EmptyURL(t)
	admin := connect(t, url)
	user := "migrator_" + strings.ToLower(rand.Text()[:12])
	var database string
	scan(t, admin, `SELECT current_database()`, &database)
	exec(t, admin, `CREATE ROLE `+user)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		admin, err := pgx.Connect(ctx, url)
		must(t, err)
		for _, statement := range []string{`DROP OWNED BY ` + user + ` CASCADE`, `DROP ROLE ` + user} {
			if _, err := admin.Exec(ctx, statement); err != nil {
				t.Error(err)
			}
		}
		must(t, admin.Close(ctx))
	})
	exec(t, admin, `GRANT CREATE ON DATABASE `+database+` TO `+user)
	asUser := url + map[bool]string{true: "&", false: "?"}[strings.Contains(url, "?")] + "options=-c%20role%3D" + user

	must(t, migrations.Up(t.Context(), asUser))
	must(t, migrations.Up(t.Context(), asUser))
	must(t, migrations.Check(t.Context(), admin))
	var owner string
	scan(t, admin, `SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'reconciler.operations'::regclass`, &owner)
	if owner != user {
		t.Errorf("the tables belong to %s, want %s: who is no member of the owner role keeps them", owner, user)
	}
	statements, err := migrations.RoleStatements(t.Context(), asUser)
	must(t, err)
	if want := []string{`GRANT reconciler_owner TO "` + user + `"`}; !slices.Equal(statements, want) {
		t.Fatalf("statements %q, want %q", statements, want)
	}
	exec(t, admin, statements[0])
	must(t, migrations.Up(t.Context(), asUser))
	scan(t, admin, `SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = 'reconciler.operations'::regclass`, &owner)
	if owner != "reconciler_owner" {
		t.Errorf("the tables belong to %s after the statements were run", owner)
	}
	if statements, err = migrations.RoleStatements(t.Context(), asUser); err != nil || len(statements) != 0 {
		t.Errorf("still to be run: %q, %v", statements, err)
	}
}
