package sqldb_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/sqldb"
)

func TestWhatShouldBeOtherwiseIsToldOfRoleAndTables(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	for name, test := range map[string]struct {
		spoil  string
		change func(*sqldb.Settings)
		lacks  []string
	}{
		"nothing":            {"", nil, nil},
		"no index":           {"DROP INDEX {S}.payouts_op_idx", nil, []string{"column op of {S}.payouts has no index"}},
		"an index of a part": {"DROP INDEX {S}.payouts_op_idx; CREATE INDEX ON {S}.payouts (op) WHERE live", nil, []string{"column op of {S}.payouts has no index"}},
		"no order":           {"DROP INDEX {S}.payouts_made_id_idx", nil, []string{"column made of {S}.payouts has no index"}},
		"a view":             {"ALTER TABLE {S}.payouts RENAME TO kept; CREATE VIEW {S}.payouts AS SELECT * FROM {S}.kept; GRANT SELECT ON {S}.payouts TO {R}", nil, nil},
		"it may write":       {"GRANT UPDATE ON {S}.payouts TO {R}", nil, []string{"the role may write to {S}.payouts"}},
		"a superuser": {"", func(s *sqldb.Settings) {
			s.URL = recon.NewSecret(strings.NewReplacer(srv.reader+"@", "postgres@").Replace(s.URL.Reveal()))
		}, []string{"the role may write to {S}.payouts"}},
		"not the ledger's": {"", func(s *sqldb.Settings) { s.OwnWrite = true }, []string{"own_write is set, and the ledger does not stand in this database"}},
	} {
		s := newShop(t, srv, test.change)
		names := strings.NewReplacer("{S}", s.schema, "{R}", s.reader)
		if test.spoil != "" {
			for statement := range strings.SplitSeq(test.spoil, "; ") {
				s.exec(t, names.Replace(statement))
			}
		}
		src := s.open(t, sqldb.Options{})
		if told := src.Access(); len(told) != 0 {
			t.Errorf("%s: told before anything was asked: %+v", name, told)
		}
		if err := src.Probe(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		told := src.Access()
		if len(told) != 1 || len(told[0].Lacks) != len(test.lacks) || told[0].Account != home {
			t.Errorf("%s: told %+v, want %q", name, told, test.lacks)
			continue
		}
		if (told[0].Is != "") != (len(test.lacks) == 0) {
			t.Errorf("%s: it says that all is well, %q, beside %q", name, told[0].Is, told[0].Lacks)
		}
		for _, lack := range test.lacks {
			if !slices.ContainsFunc(told[0].Lacks, func(s string) bool { return strings.Contains(s, names.Replace(lack)) }) {
				t.Errorf("%s: told %q, want %q", name, told[0].Lacks, lack)
			}
		}
	}
	hidden := newShop(t, srv, nil)
	hidden.exec(t, "REVOKE SELECT ON "+hidden.table()+" FROM "+hidden.reader)
	if err := hidden.open(t, sqldb.Options{}).Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "permission denied for table") {
		t.Errorf("a table that the role may not read: %v", err)
	}
	own := newShop(t, srv, func(s *sqldb.Settings) { s.OwnWrite = true })
	srv.exec(t, "CREATE SCHEMA reconciler")
	srv.exec(t, "CREATE TABLE reconciler.operations ()")
	src := own.open(t, sqldb.Options{})
	if err := src.Probe(t.Context()); err != nil || len(src.Access()[0].Lacks) != 0 {
		t.Errorf("in the ledger's own database: %v, %+v", err, src.Access())
	}
}
