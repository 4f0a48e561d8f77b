package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	newestPoliciesSQL = `
SELECT p.action, p.version, p.active, p.body
FROM reconciler.policies p
JOIN (SELECT n.tenant, n.action, max(n.version) AS version FROM reconciler.policies n WHERE n.tenant = $1
	GROUP BY n.tenant, n.action) n ON n.tenant = p.tenant AND n.action = p.action AND n.version = p.version
WHERE p.tenant = $1
ORDER BY p.action`

	retirePolicySQL = `UPDATE reconciler.policies p SET active = false WHERE p.tenant = $1 AND p.action = $2 AND p.active`

	insertPolicySQL = `
INSERT INTO reconciler.policies (tenant, action, version, body, active, created_at) VALUES ($1, $2, $3, $4::jsonb, true, $5)`

	activePoliciesSQL = `
SELECT p.action, p.version, p.body FROM reconciler.policies p WHERE p.tenant = $1 AND p.active ORDER BY p.action`
)

// policyRow is the newest version of one action's policy.
type policyRow struct {
	version int
	active  bool
	body    []byte
}

// ApplyPolicies makes exactly these policies the ones in force, in one transaction, and
// gives them back with their versions. An action whose policy says the same as before
// keeps its version; one that is no longer named has no policy in force, so nothing new
// is opened or sent for it, while what was begun still ends.
func (l *Ledger) ApplyPolicies(ctx context.Context, policies []recon.Policy, now time.Time) ([]recon.Policy, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	sorted := slices.Clone(policies)
	slices.SortFunc(sorted, func(a, b recon.Policy) int { return strings.Compare(a.Action, b.Action) })
	for i, p := range sorted {
		if p.Action == "" || p.Source == "" || p.Effect == "" || p.Class == "" {
			return nil, &UsageError{fmt.Sprintf("policy of action %q: source, effect and class are needed", p.Action)}
		}
		if i > 0 && sorted[i-1].Action == p.Action {
			return nil, &UsageError{fmt.Sprintf("policy of action %q is given twice", p.Action)}
		}
	}
	// Two daemons that start together apply the same: the second finds the first's rows.
	var err error
	for range actTries {
		err = l.inTx(ctx, func(tx pgx.Tx) error { return l.applyPolicies(ctx, tx, sorted, now) })
		var pg *pgconn.PgError
		if !conflicting(err) && (!errors.As(err, &pg) || pg.Code != "23505") {
			break
		}
	}
	return sorted, l.fault("apply policies", err)
}

func (l *Ledger) applyPolicies(ctx context.Context, tx pgx.Tx, sorted []recon.Policy, now time.Time) error {
	newest, err := l.newestPolicies(ctx, tx)
	if err != nil {
		return err
	}
	for i := range sorted {
		p := &sorted[i]
		p.Version = 0 // no part of what a policy says
		body, err := encode(*p)
		if err != nil {
			return err
		}
		row := newest[p.Action]
		delete(newest, p.Action)
		p.Version = row.version
		if row.active && samePolicy(row.body, body) {
			continue
		}
		p.Version++
		if _, err := tx.Exec(ctx, retirePolicySQL, l.tenant, p.Action); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertPolicySQL, l.tenant, p.Action, p.Version, string(body), stored(now)); err != nil {
			return err
		}
	}
	for action, row := range newest {
		if !row.active {
			continue
		}
		if _, err := tx.Exec(ctx, retirePolicySQL, l.tenant, action); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) newestPolicies(ctx context.Context, tx pgx.Tx) (map[string]policyRow, error) {
	rows, err := tx.Query(ctx, newestPoliciesSQL, l.tenant)
	if err != nil {
		return nil, err
	}
	newest := map[string]policyRow{}
	var action string
	var row policyRow
	_, err = pgx.ForEachRow(rows, []any{&action, &row.version, &row.active, &row.body}, func() error {
		newest[action] = policyRow{row.version, row.active, bytes.Clone(row.body)}
		return nil
	})
	return newest, err
}

// samePolicy compares what two policies say, not how they are written.
func samePolicy(a, b []byte) bool {
	var x, y any
	return unmarshalExact(a, &x) == nil && unmarshalExact(b, &y) == nil && reflect.DeepEqual(x, y)
}

// SaySame reports whether two policies say the same, whatever their versions.
func SaySame(a, b recon.Policy) (bool, error) {
	a.Version, b.Version = 0, 0
	x, err := encode(a)
	if err != nil {
		return false, err
	}
	y, err := encode(b)
	return samePolicy(x, y), err
}

// Policies lists the policies in force, by action.
func (l *Ledger) Policies(ctx context.Context) ([]recon.Policy, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	policies, err := l.activePolicies(ctx, l.pool)
	return policies, l.fault("list policies", err)
}

func (l *Ledger) activePolicies(ctx context.Context, q querier) ([]recon.Policy, error) {
	rows, err := q.Query(ctx, activePoliciesSQL, l.tenant)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (recon.Policy, error) {
		p := recon.DefaultPolicy()
		var action string
		var version int
		var body []byte
		if err := row.Scan(&action, &version, &body); err != nil {
			return p, err
		}
		if err := json.Unmarshal(body, &p); err != nil {
			return p, &UsageError{fmt.Sprintf("policy %s version %d in the database cannot be read: %v; run `reconciler policy apply`", action, version, err)}
		}
		p.Action, p.Version = action, version
		return p, nil
	})
}
