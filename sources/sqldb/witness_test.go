package sqldb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/sourcetest"
	"github.com/seed-1c4f4dc2/reconciler/sources/sqldb"
)

// orders is a shop whose orders say what became of them.
func orders(t *testing.T, srv *server, change func(*sqldb.WitnessSettings)) *shop {
	t.Helper()
	s := newShop(t, srv, func(set *sqldb.Settings) {
		w := sqldb.WitnessSettings{
			Name: "orders", Schema: set.Effects[0].Schema, Table: "orders", Prefix: "order:", Unit: "minor",
			Columns: sqldb.WitnessColumnSettings{Target: "id", Status: "status", Amount: "refunded", Currency: "currency"},
			Says:    map[string]string{"refunded": "done", "paid": "not_done", "new": "nothing"},
		}
		if change != nil {
			change(&w)
		}
		set.Effects, set.Accounts, set.Witnesses = nil, nil, []sqldb.WitnessSettings{w}
	})
	table := s.schema + ".orders"
	s.exec(t, "CREATE TABLE "+table+" (id bigint, pi text, op text, status text, refunded bigint, currency text)")
	s.exec(t, "INSERT INTO "+table+` VALUES (4417, 'pi_1', 'op-1', 'refunded', 4200, 'eur'), (4418, 'pi_2', 'op-2', 'paid', 0, 'eur'), (4419, 'pi_3', 'op-3', 'new', NULL, NULL),
		(4420, 'pi_4', 'op-4', 'odd', 1, 'eur'), (4421, 'pi_5', 'op-5', 'paid', 1, NULL), (4422, 'pi_6', 'op-6', 'paid', 0, 'eur'), (4422, 'pi_7', 'op-7', 'refunded', 100, 'eur')`)
	s.exec(t, "GRANT SELECT ON "+table+" TO "+s.reader)
	return s
}

// testify asks about operations with targets and parents of the same number.
func (s *shop) testify(t *testing.T, questions ...sources.Question) map[recon.OperationID]recon.Testimony {
	t.Helper()
	src := s.open(t, sqldb.Options{})
	if names := src.Witnesses(); len(names) != 1 || names[0] != "orders" {
		t.Fatalf("witnesses are %v", names)
	}
	list, err := src.Testify(t.Context(), "orders", questions, s.Now)
	if err != nil {
		t.Fatal(err)
	}
	said := map[recon.OperationID]recon.Testimony{}
	for _, told := range list {
		if told.Look.ID == "" || told.Look.At.IsZero() || told.Look.Source != "erp" || !told.Look.IsTestimony() {
			t.Errorf("the evidence is %+v", told.Look)
		}
		said[told.Operation] = told
	}
	return said
}

func about(op, target string) sources.Question {
	return sources.Question{Operation: recon.OperationID(op), Target: target, Account: "shop", Mode: "live"}
}

func TestAWitnessSaysWhatItsObjectShows(t *testing.T) {
	t.Parallel()
	s := orders(t, newServer(t), nil)
	said := s.testify(t,
		about("refunded", "order:4417"), about("again", "order:4417"), about("paid", "order:4418"), about("new", "order:4419"), about("odd", "order:4420"),
		about("bare", "order:4421"), about("twice", "order:4422"), about("gone", "order:9"), about("no number", "order:x'; DROP TABLE orders; --"), about("customer", "customer:4417"))
	if all, writes := s.Requests(); all != 1 || writes != 0 {
		t.Errorf("%d requests, %d of which could write; want one for all", all, writes)
	}
	for op, want := range map[string]struct {
		outcome recon.Outcome
		says    recon.Word
		detail  string
	}{
		"refunded":  {recon.Found, recon.SaysDone, "refunded, 42.00 EUR"},
		"again":     {recon.Found, recon.SaysDone, "refunded, 42.00 EUR"},
		"paid":      {recon.Found, recon.SaysNotDone, "paid, 0 EUR"},
		"new":       {recon.Found, recon.SaysNothing, "new"},
		"odd":       {recon.Blind, recon.SaysNothing, "holds a word that says does not name"},
		"bare":      {recon.Blind, recon.SaysNothing, "columns.amount"},
		"twice":     {recon.Blind, recon.SaysNothing, "several rows stand for one object"},
		"gone":      {recon.Absent, recon.SaysNothing, "it knows no such object"},
		"no number": {recon.Blind, recon.SaysNothing, "cannot hold what the operation names"},
	} {
		got, asked := said[recon.OperationID(op)]
		if !asked || got.Look.Outcome != want.outcome || got.Says != want.says || !strings.Contains(got.Look.Detail, want.detail) {
			t.Errorf("%s: %+v, want %+v", op, got, want)
		}
	}
	if _, asked := said["customer"]; asked {
		t.Error("a target of something else was asked for")
	}
}

func TestAWitnessIsFoundByWhatItsColumnsHold(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	q := about("op-1", "order:7")
	q.Parent, q.Key = "pi_2", "pi_3"
	for name, test := range map[string]struct {
		columns sqldb.WitnessColumnSettings
		says    recon.Word
	}{
		"the operation's id": {sqldb.WitnessColumnSettings{Reference: "op", Status: "status"}, recon.SaysDone},
		"its parent":         {sqldb.WitnessColumnSettings{Parent: "pi", Status: "status"}, recon.SaysNotDone},
		"its key":            {sqldb.WitnessColumnSettings{Key: "pi", Status: "status"}, recon.SaysNothing},
		"an amount alone":    {sqldb.WitnessColumnSettings{Reference: "op", Amount: "refunded", Currency: "currency"}, recon.SaysDone},
		"an amount of 0":     {sqldb.WitnessColumnSettings{Parent: "pi", Amount: "refunded", Currency: "currency"}, recon.SaysNotDone},
	} {
		s := orders(t, srv, func(w *sqldb.WitnessSettings) {
			w.Columns, w.Prefix = test.columns, ""
			if test.columns.Status == "" {
				w.Says = nil
			}
			if test.columns.Amount == "" {
				w.Unit = ""
			}
		})
		if said := s.testify(t, q)["op-1"]; said.Look.Outcome != recon.Found || said.Says != test.says {
			t.Errorf("%s: %+v, want %s", name, said, test.says)
		}
	}
}

// An object that the column names in another way than the operation was not looked for.
func TestAnObjectNamedInAnotherWayIsNotAbsent(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	for column, test := range map[string]struct{ held, named string }{
		"numeric(30)": {"12345678901234567890", "12345678901234567890"},
		"uuid":        {"018f6b1e-7c9a-7def-8abc-0123456789ab", "018f6b1e7c9a7def8abc0123456789ab"},
		"bigint":      {"4417", "4417 "},
	} {
		s := orders(t, srv, nil)
		s.exec(t, "ALTER TABLE "+s.schema+".orders ALTER id TYPE "+column+" USING NULL")
		s.exec(t, "UPDATE "+s.schema+".orders SET id = $1::text::"+column+" WHERE pi = 'pi_1'", test.held)
		if got := s.testify(t, about("op", "order:"+test.named))["op"]; got.Heard() {
			t.Errorf("%s: the order is there, and the witness is %s: %s", column, got.Look.Outcome, got.Look.Detail)
		}
	}
}

func TestAWitnessThatCannotBeAskedIsBlind(t *testing.T) {
	t.Parallel()
	s := orders(t, newServer(t), nil)
	for _, fault := range []sourcetest.Fault{sourcetest.Broken, sourcetest.Closes, sourcetest.NoKey, sourcetest.Hangs} {
		s.Break(fault, 0)
		said := s.testify(t, about("op-1", "order:4417"))
		s.Mend()
		if got := said["op-1"]; got.Look.Outcome != recon.Blind || got.Heard() || got.Says != recon.SaysNothing {
			t.Errorf("%s: %+v, want blind", fault, got)
		}
	}
	s.exec(t, "ALTER TABLE "+s.schema+".orders DROP COLUMN status")
	if got := s.testify(t, about("op-1", "order:4417"))["op-1"]; got.Look.Fault != string(sources.Malformed) || !strings.Contains(got.Look.Detail, `has no column "status"`) {
		t.Errorf("%+v, want blind: the column is gone", got)
	}
	if _, err := s.open(t, sqldb.Options{}).Testify(t.Context(), "nobody", nil, s.Now); err == nil {
		t.Error("a witness that is not configured testifies")
	}
}

func TestAWitnessThatCannotBeReadIsToldAndKeepsNoSourceBlind(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	for spoil, want := range map[string]struct {
		kind sources.Kind
		says string
	}{
		"":                                     {},
		"REVOKE SELECT ON {S}.orders FROM {R}": {sources.BadCredentials, "permission denied for table orders"},
		"REVOKE SELECT ON {S}.orders FROM {R}; GRANT SELECT (id, status, refunded) ON {S}.orders TO {R}": {sources.BadCredentials, "permission denied"},
		"REVOKE USAGE ON SCHEMA {S} FROM {R}":              {sources.BadCredentials, "permission denied for schema"},
		"ALTER TABLE {S}.orders ENABLE ROW LEVEL SECURITY": {sources.BadCredentials, "row-level security"},
		"DROP TABLE {S}.orders":                            {sources.Malformed, `there is no table or view "orders"`},
	} {
		s := orders(t, srv, nil)
		for statement := range strings.SplitSeq(spoil, "; ") {
			s.exec(t, strings.NewReplacer("{S}", s.schema, "{R}", s.reader).Replace(statement))
		}
		src := s.open(t, sqldb.Options{})
		err := src.ProbeWitness(t.Context(), "orders")
		var fault *sources.Error
		if errors.As(err, &fault) != (spoil != "") || fault != nil && (fault.Kind != want.kind || !strings.Contains(err.Error(), want.says)) {
			t.Errorf("after %q: %v, want %s, %q", spoil, err, want.kind, want.says)
		}
		if err := src.Probe(t.Context()); err != nil {
			t.Errorf("after %q the source is blind: %v", spoil, err)
		}
	}
	if err := orders(t, srv, nil).open(t, sqldb.Options{}).ProbeWitness(t.Context(), "nobody"); err == nil {
		t.Error("a witness that is not configured can be heard")
	}
}
