package migrations_test

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

var start = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// actor calls the functions as a program in any language does, on a clock that stands
// still unless the test moves it.
type actor struct {
	t    testing.TB
	pool *pgxpool.Pool
}

func newActor(t testing.TB) actor {
	t.Helper()
	return actor{t: t, pool: pgtest.Pool(t, pgtest.SimulatedTime(start))}
}

// object is a JSON object.
type object map[string]any

func (o object) with(more object) object {
	all := maps.Clone(o)
	maps.Copy(all, more)
	for k, v := range more {
		if v == nil {
			delete(all, k)
		}
	}
	return all
}

func (o object) text(name string) string {
	s, _ := o[name].(string)
	return s
}

// policy is that of a refund which may be repeated under its key.
func policy() recon.Policy {
	p := recon.DefaultPolicy()
	p.Action, p.Source, p.Effect, p.Class = "refund.create", "stripe-main", "refund", recon.Irreversible
	p.Repeat = recon.RepeatSameKey
	p.KeyLifetime = recon.Duration(24 * time.Hour)
	p.Marker = "op_id"
	p.Accounts = []recon.Account{{Account: "acct_1", Mode: "live"}}
	return p
}

func (a actor) policy(p recon.Policy) {
	a.t.Helper()
	body, err := json.Marshal(p)
	must(a.t, err)
	exec(a.t, a.pool, `UPDATE reconciler.policies SET active = false WHERE action = $1`, p.Action)
	exec(a.t, a.pool, `INSERT INTO reconciler.policies (tenant, action, version, body, created_at)
		SELECT 'default', $1, coalesce(max(version), 0) + 1, $2::jsonb, now() FROM reconciler.policies WHERE action = $1`, p.Action, body)
}

func (a actor) try(function string, in object) (object, error) {
	a.t.Helper()
	return call(a.t, a.pool, function, in)
}

func call(t testing.TB, q querier, function string, in object) (object, error) {
	t.Helper()
	given, err := json.Marshal(in)
	must(t, err)
	var answer []byte
	if err := q.QueryRow(t.Context(), `SELECT reconciler.`+function+`($1::jsonb)`, string(given)).Scan(&answer); err != nil {
		return nil, err
	}
	var out object
	must(t, json.Unmarshal(answer, &out))
	return out, nil
}

func (a actor) call(function string, in object) object {
	a.t.Helper()
	out, err := a.try(function, in)
	if err != nil {
		a.t.Fatalf("%s(%v): %v", function, in, err)
	}
	return out
}

var refund = object{"action": "refund.create", "target": "order:1", "amount": 4200, "currency": "EUR",
	"parent": "ch_A", "request": object{"charge": "ch_A", "amount": 4200}}

// open opens the refund with changes; a nil value takes a field away.
func (a actor) open(changes object) object {
	a.t.Helper()
	return a.call("open_operation", refund.with(changes))
}

func (a actor) claim(id string, changes object) object {
	a.t.Helper()
	return a.call("claim_operation", object{"operation_id": id, "holder": "worker"}.with(changes))
}

func (a actor) finish(id, token, class string, changes object) object {
	a.t.Helper()
	return a.call("finish_attempt", object{"operation_id": id, "token": token, "class": class}.with(changes))
}

// attempt claims and finishes.
func (a actor) attempt(id, class string, changes object) object {
	a.t.Helper()
	c := a.claim(id, nil)
	if c["claimed"] != true {
		a.t.Fatalf("claim of %s: %v", id, c)
	}
	return a.finish(id, c.text("token"), class, changes)
}

func (a actor) advance(d time.Duration) {
	a.t.Helper()
	exec(a.t, a.pool, `UPDATE reconciler.simulated_time SET at = at + $1::interval`, d)
}

func (a actor) now() (at time.Time) {
	a.t.Helper()
	scan(a.t, a.pool, `SELECT reconciler.clock()`, &at)
	return at.UTC()
}

// row reads one column of one operation, as text.
func (a actor) row(id, column string) (value string) {
	a.t.Helper()
	must(a.t, a.pool.QueryRow(a.t.Context(), `SELECT coalesce((SELECT o.`+column+`::text FROM reconciler.operations o
		WHERE o.tenant = 'default' AND o.operation_id = $1), 'null')`, id).Scan(&value))
	return value
}

func (a actor) nextCheck(id string) (at time.Time) {
	a.t.Helper()
	must(a.t, a.pool.QueryRow(a.t.Context(), `SELECT next_check FROM reconciler.checks
		WHERE tenant = 'default' AND operation_id = $1`, id).Scan(&at))
	return at.UTC()
}

// checkChains computes every chain again.
func (a actor) checkChains() {
	a.t.Helper()
	var broken int
	scan(a.t, a.pool, `
		SELECT count(*) FROM (
			SELECT j.hash, lag(j.hash, 1, ''::bytea) OVER w AS prev, j.body, j.seq, row_number() OVER w AS place
			FROM reconciler.journal j WINDOW w AS (PARTITION BY j.tenant, j.operation_id ORDER BY j.seq)) j
		WHERE j.hash <> sha256(j.prev || convert_to(j.body, 'UTF8')) OR j.seq <> j.place`, &broken)
	var headless int
	scan(a.t, a.pool, `
		SELECT count(*) FROM reconciler.operations o
		LEFT JOIN reconciler.journal j ON j.tenant = o.tenant AND j.operation_id = o.operation_id AND j.seq = o.chain_seq
		WHERE j.hash IS DISTINCT FROM o.chain_head`, &headless)
	if broken+headless > 0 {
		a.t.Errorf("%d entries break their chain, %d operations have another head", broken, headless)
	}
}

// refused checks that err is a fault of the input which says what to do.
func refused(t *testing.T, err error, sqlState string) {
	t.Helper()
	var pe *pgconn.PgError
	if !errors.As(err, &pe) || pe.Code != sqlState {
		t.Fatalf("got %v, want SQLSTATE %s", err, sqlState)
	}
	if sqlState == "22023" && pe.Hint == "" {
		t.Errorf("%q does not say what to do", pe.Message)
	}
}
