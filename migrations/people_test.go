package migrations_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// people is the list of these tests: ana logs in at the database and clicks in Slack.
const people = `{"people": [{"name": "ana", "role": "approver", "slack": "T1/U1"}, {"name": "ana", "role": "approver", "db_role": "%ana%"},
	{"name": "bob", "role": "approver"}, {"name": "olga", "role": "operator"}, {"name": "vera", "role": "viewer"}],
	"approve_above": {"EUR": 5000}}`

// raise puts a finding on an operation into the ledger.
func (a actor) raise(id, kind string, operations ...string) {
	a.t.Helper()
	exec(a.t, a.pool, `INSERT INTO reconciler.findings (tenant, finding_id, fingerprint, kind, certainty, state, source,
			operation_ids, reason, amount, currency, opened_at)
		SELECT 'default', $1, $1, $2, 'proof', 'open', 'stripe-main', $3, 'For the test.', max(o.amount), max(o.currency), $4
		FROM reconciler.operations o WHERE o.operation_id = ANY ($3)`, id, kind, append([]string{}, operations...), start)
}

// lost opens an operation whose answer was lost, and a finding on it of the same name.
func (a actor) lost(id string, changes object) {
	a.t.Helper()
	a.open(object{"id": id}.with(changes))
	a.attempt(id, "indeterminate", nil)
	a.raise("f_"+id, "unresolved", id)
}

// login makes a role that logs in with the rights of a group, and a connection as it.
func (a actor) login(group string) (name string, conn *pgx.Conn) {
	a.t.Helper()
	name = "person_" + strings.ToLower(rand.Text()[:12])
	exec(a.t, a.pool, `CREATE ROLE `+name+` LOGIN`)
	exec(a.t, a.pool, `GRANT `+group+` TO `+name)
	conn, err := pgx.ConnectConfig(a.t.Context(), a.pool.Config().ConnConfig.Copy())
	must(a.t, err)
	a.t.Cleanup(func() {
		ctx := context.WithoutCancel(a.t.Context())
		_, _ = conn.Exec(ctx, `RESET SESSION AUTHORIZATION`) // a broken connection is closed below
		_, err := conn.Exec(ctx, `DROP ROLE `+name)
		if err != nil {
			a.t.Error(err)
		}
		_ = conn.Close(ctx)
	})
	// What a login does: session_user is who authenticated, and no SET ROLE changes it.
	exec(a.t, conn, `SET SESSION AUTHORIZATION `+name)
	return name, conn
}

func settle(id string, more object) object {
	return object{"finding_id": id, "verb": "did-not-happen", "reason": "asked the bank"}.with(more)
}

func TestPeopleMayDoWhatTheirRoleSaysAndNothingElse(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	const act, approve = `SELECT reconciler.act('{}')`, `SELECT reconciler.approve('{}')`
	for role, may := range map[string]map[string]bool{
		"reconciler_agent":    {act: false, approve: false},
		"reconciler_viewer":   {act: false, approve: false},
		"reconciler_operator": {act: true, approve: false},
		"reconciler_approver": {act: false, approve: true},
		"reconciler_daemon":   {act: true, approve: true},
	} {
		for statement, may := range may {
			err := asRole(a, role, statement)
			want := "42501"
			if may {
				want = "22023" // it is called, and complains of its input
			}
			var pe *pgconn.PgError
			if !errors.As(err, &pe) || pe.Code != want {
				t.Errorf("%s: %s: %v, want SQLSTATE %s", role, statement, err, want)
			}
		}
	}
	for _, role := range []string{"reconciler_operator", "reconciler_approver"} {
		for _, statement := range []string{
			`UPDATE reconciler.findings SET state = 'settled'`, `UPDATE reconciler.operations SET state = 'failed'`,
			`INSERT INTO reconciler.people (tenant, body, applied_at) VALUES ('default', '{}', now())`,
			`DELETE FROM reconciler.person_actions`, `SELECT reconciler.settle(NULL, NULL, NULL, NULL, NULL, NULL)`,
			`SELECT reconciler.save_seen('default', '{}', '{}', now())`,
		} {
			var pe *pgconn.PgError
			if err := asRole(a, role, statement); !errors.As(err, &pe) || pe.Code != "42501" {
				t.Errorf("%s: %s: %v, want permission denied", role, statement, err)
			}
		}
	}
}

func TestAPersonIsWhoLoggedInAndOnlyTheDaemonNamesAnother(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	a.lost("op_1", nil)
	a.lost("op_2", object{"target": "order:2"})
	name, ana := a.login("reconciler_approver")
	exec(t, a.pool, `INSERT INTO reconciler.people (tenant, body, applied_at) VALUES ('default', $1::jsonb, now())`,
		strings.ReplaceAll(people, "%ana%", name))

	_, err := call(t, ana, "approve", settle("f_op_1", object{"person": "bob"}))
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || pe.Code != "42501" || pe.Hint == "" {
		t.Errorf("an approver names somebody else: %v", err)
	}
	if _, err = call(t, ana, "act", object{"finding_id": "f_op_1", "verb": "check_now"}); !errors.As(err, &pe) || pe.Code != "42501" {
		t.Errorf("an approver acts as an operator: %v", err)
	}
	got, err := call(t, ana, "approve", settle("f_op_1", nil))
	if must(t, err); got["outcome"] != "done" || got["person"] != "ana" {
		t.Errorf("who logged in is told %v", got)
	}
	var role string
	scan(t, a.pool, `SELECT details ->> 'role' FROM reconciler.person_actions`, &role)
	if role != name {
		t.Errorf("the role that logged in is kept as %q", role)
	}

	_, daemon := a.login("reconciler_daemon")
	for person, want := range map[string]string{"eve": "refused", "vera": "refused", "olga": "refused", "bob": "done"} {
		got, err := call(t, daemon, "approve", settle("f_op_2", object{"person": person}))
		if must(t, err); person != "bob" && (got["outcome"] != want || got["next"] == nil) {
			t.Errorf("%s approves: %v", person, got)
		}
	}
	got, err = call(t, daemon, "act", object{"finding_id": "f_op_2", "verb": "check_now", "person": "eve"})
	if must(t, err); got["outcome"] != "refused" {
		t.Errorf("somebody who is not on the list acts: %v", got)
	}
	a.checkChains()
}

// The same human being with an account in the database and one in Slack is one person.
func TestNobodyApprovesWhatTheyProposedByWhicheverWay(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	a.lost("op_1", object{"amount": 9900})
	name, ana := a.login("reconciler_approver")
	_, daemon := a.login("reconciler_daemon")
	exec(t, a.pool, `INSERT INTO reconciler.people (tenant, body, applied_at) VALUES ('default', $1::jsonb, now())`,
		strings.ReplaceAll(people, "%ana%", name))

	try := func(by *pgx.Conn, more object) object {
		t.Helper()
		got, err := call(t, by, "approve", settle("f_op_1", more))
		must(t, err)
		return got
	}
	for who, got := range map[string]object{
		"ana at the database":           try(ana, nil),
		"ana in Slack":                  try(daemon, object{"person": "ana"}),
		"ana at the database once more": try(ana, object{"reason": "still so"}),
	} {
		if got["outcome"] != "proposed" || got["two"] != "amount" || a.row("op_1", "state") != "unknown" {
			t.Errorf("%s: %v", who, got)
		}
	}
	// The same once more writes nothing, by whichever way it comes; other words do.
	count := func() (written string) {
		t.Helper()
		must(t, a.pool.QueryRow(t.Context(), `SELECT 'version ' || f.version || ', actions ' || (SELECT count(*) FROM reconciler.person_actions)
			|| ', entries ' || (SELECT count(*) FROM reconciler.journal) FROM reconciler.findings f WHERE f.finding_id = 'f_op_1'`).Scan(&written))
		return written
	}
	try(ana, object{"reason": "the bank has nothing"})
	before := count()
	for _, by := range []func() object{
		func() object { return try(ana, object{"reason": "the bank has nothing"}) },
		func() object { return try(daemon, object{"person": "ana", "reason": "the bank has nothing"}) },
	} {
		if got := by(); got["outcome"] != "proposed" || got["repeated"] != true || got["two"] != "amount" || count() != before {
			t.Errorf("ana says the same once more: %v, %s before and %s now", got, before, count())
		}
	}
	if got := try(ana, object{"reason": "and so says the customer"}); got["repeated"] != nil || count() == before {
		t.Errorf("ana gives another reason: %v", got)
	}
	// Another answer is another proposal, also about the same operation.
	for _, verb := range []string{"release", "accept"} {
		if got := try(daemon, object{"person": "bob", "verb": verb}); got["outcome"] != "proposed" || a.row("op_1", "state") != "unknown" {
			t.Errorf("bob answers otherwise, %s: %v", verb, got)
		}
		try(ana, nil) // and ana says the first once more
	}
	// What was rejected counts no more, and nothing is rejected twice.
	if got := try(ana, object{"verb": "reject", "version": 999}); got["outcome"] != "changed_meanwhile" {
		t.Errorf("ana rejects what she has not seen: %v", got)
	}
	if got := try(ana, object{"verb": "reject"}); got["outcome"] != "done" || got["state"] != "open" || a.row("op_1", "state") != "unknown" {
		t.Errorf("ana rejects it: %v", got)
	}
	if got := try(ana, object{"verb": "reject"}); got["outcome"] != "refused" || got["reason"] != "nothing is proposed" {
		t.Errorf("ana rejects it again: %v", got)
	}
	if got := try(daemon, object{"person": "olga", "verb": "reject"}); got["outcome"] != "refused" {
		t.Errorf("an operator rejects: %v", got)
	}
	if got := try(daemon, object{"person": "bob", "verb": "accept"}); got["outcome"] != "proposed" {
		t.Errorf("bob proposes it anew: %v", got)
	}
	got := try(ana, object{"verb": "accept"})
	if got["outcome"] != "done" || got["proposed_by"] != "bob" || got["person"] != "ana" {
		t.Errorf("ana agrees with bob: %v", got)
	}
	a.checkChains()
}

// A login that the list gives nobody may be anybody of the list.
func TestALoginThatIsNobodysIsNoSecondPerson(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	a.lost("op_1", object{"amount": 9900})
	a.lost("op_2", object{"target": "order:2"})
	_, stray := a.login("reconciler_approver")
	_, daemon := a.login("reconciler_daemon")
	exec(t, a.pool, `INSERT INTO reconciler.people (tenant, body, applied_at) VALUES ('default', $1::jsonb, now())`, people)
	got, err := call(t, daemon, "approve", settle("f_op_1", object{"person": "ana"}))
	if must(t, err); got["outcome"] != "proposed" {
		t.Fatalf("ana in Slack: %v", got)
	}
	got, err = call(t, stray, "approve", settle("f_op_1", nil))
	if must(t, err); got["outcome"] != "refused" || got["next"] == nil || a.row("op_1", "state") != "unknown" {
		t.Errorf("a login that is nobody's ends what ana proposed: %v", got)
	}
	got, err = call(t, stray, "approve", settle("f_op_2", nil))
	if must(t, err); got["outcome"] != "done" {
		t.Errorf("where one word is enough: %v", got)
	}
	got, err = call(t, daemon, "approve", settle("f_op_1", object{"person": "bob"}))
	if must(t, err); got["outcome"] != "done" || got["proposed_by"] != "ana" {
		t.Errorf("bob in Slack: %v", got)
	}
	a.checkChains()
}

func TestWhatPeopleGiveWronglyIsRefusedWithTheNextStep(t *testing.T) {
	t.Parallel()
	a := newActor(t)
	a.policy(policy())
	a.lost("op_1", nil)
	for name, c := range map[string]struct {
		function string
		in       object
	}{
		"no finding":             {"approve", settle("f_1", nil)},
		"no reason":              {"approve", settle("f_op_1", object{"reason": nil})},
		"an empty reason":        {"approve", settle("f_op_1", object{"reason": ""})},
		"no such verb":           {"approve", settle("f_op_1", object{"verb": "maybe"})},
		"an operator's verb":     {"approve", settle("f_op_1", object{"verb": "snooze"})},
		"a field misspelt":       {"approve", settle("f_op_1", object{"efect_id": "re_1"})},
		"an effect without look": {"approve", settle("f_op_1", object{"effect_id": "re_1", "effect": object{"id": "re_1"}})},
		"a look for another one": {"approve", settle("f_op_1", object{"effect_id": "re_1", "look": object{"effect_id": "re_2"}})},
		"snooze without end":     {"act", object{"finding_id": "f_op_1", "verb": "snooze"}},
		"an end that is no time": {"act", object{"finding_id": "f_op_1", "verb": "snooze", "until": "soon"}},
		"assign to nobody":       {"act", object{"finding_id": "f_op_1", "verb": "assign"}},
		"not an object":          {"act", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := a.try(c.function, c.in)
			refused(t, err, "22023")
		})
	}
	a.call("approve", settle("f_op_1", object{"action_key": "click 1"}))
	_, err := a.try("approve", settle("f_op_1", object{"action_key": "click 1", "verb": "accept"}))
	refused(t, err, "22023")
}
