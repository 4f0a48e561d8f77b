package sqldb

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// catalogue is what was seen of the tables while they were asked.
type catalogue struct {
	mu     sync.Mutex // guards what follows
	lacks  map[string][]string
	stands bool // what own_write says was looked for, and is so
}

// ledgerSQL asks whether the ledger's tables stand in this database.
const ledgerSQL = `
SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
	WHERE n.nspname = 'reconciler' AND c.relname = 'operations')`

// note keeps what should be otherwise about a table: a role that may write, and columns that
// are looked for without an index. What own_write says is held against the database.
func (a *asking) note(ctx context.Context, t tx, r *relation, roles []role) error {
	var lacks []string
	if r.writable {
		lacks = append(lacks, fmt.Sprintf("the role may write to %s; nothing here needs that: give it a role of its own, and GRANT SELECT ON %s alone", r.spelt(), r.spelt()))
	}
	for _, role := range roles {
		searched := role.type_ == sought || role.name == "created_at"
		if !searched || r.columns[role.column].indexed || r.view {
			continue // whether a view is fast, its tables must tell
		}
		lacks = append(lacks, fmt.Sprintf("column %s of %s has no index that begins with it, and effects are looked for by it: until it has one, a look reads the whole table", role.column, r.spelt()))
	}
	stands := true
	if a.settings.OwnWrite {
		if err := t.QueryRow(ctx, ledgerSQL).Scan(&stands); err != nil {
			return err
		}
	}
	a.seen.mu.Lock()
	defer a.seen.mu.Unlock()
	if a.seen.lacks == nil {
		a.seen.lacks = map[string][]string{}
	}
	a.seen.lacks[r.spelt()+" "+strings.Join(lacks, "")] = lacks
	a.seen.stands = stands
	return nil
}

// Access tells what should be otherwise about the role and the tables that were asked. It is
// the same for all accounts, and told of the first.
func (s *Source) Access() []sources.Access {
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	if len(s.seen.lacks) == 0 {
		return nil // nothing was asked
	}
	access := sources.Access{Account: s.sheet.Accounts[0]}
	for _, about := range slices.Sorted(maps.Keys(s.seen.lacks)) {
		access.Lacks = append(access.Lacks, s.seen.lacks[about]...)
	}
	slices.Sort(access.Lacks)
	access.Lacks = slices.Compact(access.Lacks)
	if s.settings.OwnWrite && !s.seen.stands {
		access.Lacks = append(access.Lacks, "own_write is set, and the ledger does not stand in this database: a change there does not commit with its record")
	}
	if len(access.Lacks) == 0 {
		access.Is = "the role can only read, and what is looked for is indexed"
	}
	return []sources.Access{access}
}
