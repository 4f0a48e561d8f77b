package sqldb_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/sourcetest"
	"github.com/seed-1c4f4dc2/reconciler/sources/sqldb"
)

func (s *shop) pay(t testing.TB, reference string) string {
	t.Helper()
	return s.make(t, sourcetest.Effect{Reference: reference, Money: recon.Money{Minor: 1250, Currency: "EUR"}})
}

// B66: what the table does not show yet is not known; it is never 0.
func TestB66_AnAmountThatIsNullIsNotKnown(t *testing.T) {
	t.Parallel()
	s := newShop(t, newServer(t), nil)
	s.pay(t, "op-1")
	s.exec(t, "UPDATE "+s.table()+" SET total = NULL, cur = NULL")
	_, effects := s.ask(t, s.question("op-1"))
	if len(effects) != 1 || effects[0].ShowsAmount() || effects[0].Fee != nil || effects[0].Status != recon.Completed {
		t.Errorf("effects are %+v, want one whose amount and fee are not known", effects)
	}
	s.exec(t, "UPDATE "+s.table()+" SET total = 0, cur = 'eur'")
	if _, effects = s.ask(t, s.question("op-1")); !effects[0].ShowsAmount() {
		t.Errorf("an amount of nothing that is shown is %+v, want one that is shown", effects[0].Money)
	}
}

// B69: a reference with outer space or in another case is found, and told as it stands; it is
// for matchers to say what it is worth. A look that missed it would say that nothing is there.
func TestB69_AReferenceThatLooksLikeOursIsFoundAsItStands(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	for stands, outcome := range map[string]recon.Outcome{
		"op_1510": recon.Found, " op_1510 ": recon.Found, "OP_1510": recon.Found, "op_1510\n": recon.Found,
		"op_15101": recon.Absent, "op_": recon.Absent,
	} {
		s := newShop(t, srv, nil)
		s.pay(t, stands)
		l, effects := s.ask(t, s.question("op_1510"))
		if l.Outcome != outcome || l.Reference != "op_1510" || len(effects) > 0 && effects[0].Reference != stands {
			t.Errorf("%q: look is %s (%s) with %+v, want %s", stands, l.Outcome, l.Detail, effects, outcome)
		}
	}
	s := newShop(t, srv, nil)
	s.pay(t, "")
	if l, _ := s.ask(t, s.question("op_1510")); l.Outcome != recon.Absent {
		t.Errorf("a reference that is NULL: look is %s, want absent", l.Outcome)
	}
}

// B102: a refund is known by its own id, and hangs under that of its payment.
func TestB102_ARefundHasAnIdOfItsOwn(t *testing.T) {
	t.Parallel()
	s := newShop(t, newServer(t), nil)
	s.Make(t, sourcetest.Effect{Parent: "P2", Reference: "op-1", Money: recon.Money{Minor: 1250, Currency: "EUR"}})
	q := s.question("op-1")
	q.Marks, q.Parent = nil, "P2"
	l, effects := s.ask(t, q)
	if l.Outcome != recon.Found || effects[0].ID != "po_1" || effects[0].Parent != "P2" {
		t.Errorf("look is %s with %+v, want po_1 under P2", l.Outcome, effects)
	}
	q.Parent, q.EffectID = "", "P2"
	if l, effects := s.ask(t, q); l.Outcome != recon.Absent || l.EffectID != "P2" || len(effects) != 0 {
		t.Errorf("by the id of its payment: look is %s with %+v, want absent", l.Outcome, effects)
	}
}

// B104: three decimals, whatever zeros the column's type writes; nothing is rounded.
func TestB104_DecimalsAreThoseOfTheCurrency(t *testing.T) {
	t.Parallel()
	s := newShop(t, newServer(t), nil)
	s.pay(t, "op-1")
	for _, total := range []string{"5.12", "5.120", "5.1200"} {
		s.exec(t, "ALTER TABLE "+s.table()+" ALTER total TYPE text")
		s.exec(t, "UPDATE "+s.table()+" SET total = $1, cur = 'KWD'", total)
		if _, effects := s.ask(t, s.question("op-1")); len(effects) != 1 || effects[0].Money != (recon.Money{Minor: 5120, Currency: "KWD"}) {
			t.Errorf("%s: effects are %+v, want 5.120 KWD", total, effects)
		}
	}
	s.exec(t, "UPDATE "+s.table()+" SET total = '5.1205'")
	l, _ := s.ask(t, s.question("op-1"))
	mustBe(t, l, sources.Malformed, "columns.amount")
}

// B108: a payment with two refunds is one payment: no join multiplies it.
func TestB108_ChildrenAreToldOnceEach(t *testing.T) {
	t.Parallel()
	s := newShop(t, newServer(t), nil)
	charge := s.Make(t, sourcetest.Effect{Reference: "op-0", Money: recon.Money{Minor: 5200, Currency: "EUR"}})
	for range 2 {
		s.Make(t, sourcetest.Effect{Parent: charge, Money: recon.Money{Minor: 450, Currency: "EUR"}})
	}
	q := s.question("op-1")
	q.Marks, q.Parent = nil, charge
	_, effects := s.ask(t, q)
	sum := int64(0)
	for _, e := range effects {
		sum += e.Money.Minor
	}
	if len(effects) != 2 || sum != 900 {
		t.Errorf("%d effects of %d in all, want 2 of 900", len(effects), sum)
	}
}

func TestColumnsOfManyTypesAreLookedForByTheirIndexes(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	const id = "018f6b1e-7c9a-7def-8abc-0123456789ab"
	for name, test := range map[string]struct{ column, value, other string }{
		"uuid":              {"uuid", id, "not-a-uuid"},
		"bigint":            {"bigint", "4417", "op-1"},
		"numeric":           {"numeric(20)", "4417", "4417.5"},
		"character varying": {"varchar(40)", "op-1", "op-2"},
		"character":         {"char(40)", "op-1", "op-2"},
	} {
		s := newShop(t, srv, func(s *sqldb.Settings) { s.Effects[0].Columns.Parent, s.Effects[0].Columns.Key = "", "" })
		s.pay(t, "")
		s.exec(t, "ALTER TABLE "+s.table()+" ALTER op TYPE "+test.column+" USING NULL")
		s.exec(t, "UPDATE "+s.table()+" SET op = $1::text::"+test.column, test.value)
		l, effects := s.ask(t, s.question(test.value))
		if l.Outcome != recon.Found || l.Method != recon.ByReference || effects[0].Reference != test.value {
			t.Errorf("%s: look is %s by %s (%s) with %+v", name, l.Outcome, l.Method, l.Detail, effects)
		}
		// What the column cannot hold was never written there; the list must tell.
		l, effects = s.ask(t, s.question(test.other))
		held := strings.HasPrefix(test.other, "op-2")
		if held && l.Outcome != recon.Absent || !held && (l.Method != recon.ByList || len(effects) != 1) {
			t.Errorf("%s: what it cannot hold is %s by %s with %d effects", name, l.Outcome, l.Method, len(effects))
		}
	}
}

func TestAReferenceInAnotherCaseIsFoundInEveryColumnOfText(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	for _, column := range []string{"text", "varchar(40)", "char(40)"} {
		s := newShop(t, srv, nil)
		s.pay(t, "op-1")
		s.exec(t, "ALTER TABLE "+s.table()+" ALTER op TYPE "+column)
		s.exec(t, "UPDATE "+s.table()+" SET op = ' OP-1'")
		if l, effects := s.ask(t, s.question("op-1")); l.Outcome != recon.Found || len(effects) != 1 {
			t.Errorf("%s: look is %s by %s with %d effects", column, l.Outcome, l.Method, len(effects))
		}
	}
}

func TestATimestampWithoutZoneIsOneOfUTC(t *testing.T) {
	t.Parallel()
	s := newShop(t, newServer(t), nil)
	for i := range 3 {
		s.pay(t, "op-"+string(rune('a'+i)))
		s.Advance(time.Second)
	}
	s.exec(t, "ALTER TABLE "+s.table()+" ALTER made TYPE timestamp USING made AT TIME ZONE 'UTC'")
	s.exec(t, "ALTER ROLE "+s.reader+" SET TimeZone = 'Asia/Kathmandu'")
	q := s.question("op-a")
	q.Marks, q.From = nil, s.Now().Add(-2500*time.Millisecond)
	ans, err := s.open(t, sqldb.Options{PageSize: 1}).Ask(t.Context(), []sources.Question{q}, s.Now)
	if err != nil || len(ans.Effects) != 3 || !ans.Effects[0].CreatedAt.Equal(s.Now().Add(-time.Second)) {
		t.Errorf("effects are %+v, %v; want the three of the last seconds", ans.Effects, err)
	}
}

func TestADeletedRowWasDoneAndTakenBack(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	for name, test := range map[string]struct {
		spoil, state string
		want         recon.EffectStatus
	}{
		"a time":              {"UPDATE {T} SET gone_at = made", "done", recon.Reversed},
		"no time":             {"", "done", recon.Completed},
		"a flag":              {"ALTER TABLE {T} ALTER gone_at TYPE boolean USING true", "done", recon.Reversed},
		"a flag that is not":  {"ALTER TABLE {T} ALTER gone_at TYPE boolean USING false", "done", recon.Completed},
		"before it was done":  {"UPDATE {T} SET gone_at = made", "open", recon.EffectFailed},
		"after it was undone": {"UPDATE {T} SET gone_at = made", "undone", recon.Reversed},
	} {
		s := newShop(t, srv, nil)
		s.pay(t, "op-1")
		s.exec(t, "UPDATE "+s.table()+" SET state = $1", test.state)
		if test.spoil != "" {
			s.exec(t, strings.ReplaceAll(test.spoil, "{T}", s.table()))
		}
		if l, effects := s.ask(t, s.question("op-1")); len(effects) != 1 || effects[0].Status != test.want {
			t.Errorf("%s: %s %+v, want %s", name, l.Detail, effects, test.want)
		}
	}
}

func TestRowsOfAnotherKindAreNone(t *testing.T) {
	t.Parallel()
	s := newShop(t, newServer(t), func(s *sqldb.Settings) { s.Effects[0].Only = map[string]string{"note": "payout' OR true --"} })
	s.pay(t, "op-1")
	if l, _ := s.ask(t, s.question("op-1")); l.Outcome != recon.Absent {
		t.Errorf("a row of no kind is %s, want absent", l.Outcome)
	}
	s.exec(t, "UPDATE "+s.table()+" SET note = $1", "payout' OR true --")
	if l, _ := s.ask(t, s.question("op-1")); l.Outcome != recon.Found {
		t.Errorf("a row of the kind is %s, want found", l.Outcome)
	}
}

// hostile are names and values that would do something if they became part of a statement.
var hostile = []string{
	`payouts"; DROP TABLE canary; --`, `x'; DROP TABLE canary; --`, `") OR (true`, `op" = op OR "op`, `$1`, `%s`, `\'; DROP TABLE canary; --`,
	`U&"\0061"`, `public.payouts`, `"payouts"`, `pg_sleep(60)`, "line\nbreak", `😀`, ` `, `*`, `t.id`, `NULL`, `--`, `/*`,
}

func TestATableThatBearsNamesLikeSQLIsRead(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	for i, name := range hostile {
		s := newShop(t, srv, func(s *sqldb.Settings) { s.Effects[0].Table, s.Effects[0].Columns.Reference = name, name })
		s.pay(t, hostile[i])
		s.exec(t, "ALTER TABLE "+s.table()+" RENAME COLUMN op TO "+pgx.Identifier{name}.Sanitize())
		s.exec(t, "ALTER TABLE "+s.table()+" RENAME TO "+pgx.Identifier{name}.Sanitize())
		if l, effects := s.ask(t, s.question(name)); name != " " && (l.Outcome != recon.Found || effects[0].Reference != name) {
			t.Errorf("a table and a column %q: look is %s (%s)", name, l.Outcome, l.Detail)
		}
	}
}

// harmless uses a text as every name and value, and holds that nothing happened.
func harmless(t *testing.T, s *shop, text string) {
	t.Helper()
	s.change = nil
	l, effects := s.ask(t, s.question(text))
	if len(effects) > 0 && strings.TrimSpace(text) != "op-1" {
		t.Errorf("the reference %q finds %+v", text, effects)
	}
	mustBe(t, l, "", "")
	for place, change := range map[string]func(*sqldb.EffectSettings){
		"schema": func(e *sqldb.EffectSettings) { e.Schema = text }, "table": func(e *sqldb.EffectSettings) { e.Table = text },
		"reference": func(e *sqldb.EffectSettings) { e.Columns.Reference = text },
		"only":      func(e *sqldb.EffectSettings) { e.Only = map[string]string{text: "x"} },
	} {
		s.change = func(set *sqldb.Settings) { change(&set.Effects[0]) }
		if set := s.settings(t); len(set.Validate()) > 0 {
			continue // refused before anything is asked
		}
		l, effects := s.ask(t, s.question("op-1"))
		if known := []string{s.schema, "payouts", "op", "note", "id", "idem", "order", "state", "cur", "shop"}; !slices.Contains(known, text) && (l.Outcome != recon.Blind || len(effects) > 0) {
			t.Errorf("the %s %q gives a look that is %s with %d effects, want blind", place, text, l.Outcome, len(effects))
		}
	}
	var there bool
	if err := s.pool.QueryRow(t.Context(), "SELECT to_regclass('public.canary') IS NOT NULL").Scan(&there); err != nil || !there {
		t.Fatalf("%q: the canary is gone (%v)", text, err)
	}
	if all, writes := s.Requests(); writes != 0 || all == 0 {
		t.Errorf("%q: %d of %d requests could write", text, writes, all)
	}
}

// Everything that a configuration or an operation can hold is a name that is compared with the
// catalogue, or a parameter.
func FuzzNamesAndValues(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	srv := newServer(f)
	srv.exec(f, "CREATE TABLE canary (n int)")
	s := newShop(f, srv, nil)
	s.pay(f, "op-1")
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" || strings.ContainsRune(text, 0) || !utf8Valid(text) {
			return // nothing is no name, and no configuration and no operation can hold the others
		}
		harmless(t, s, text)
	})
}

func utf8Valid(s string) bool { return strings.ToValidUTF8(s, "") == s }

// The role of the tests can read and nothing else, and neither can a source whose role could
// do anything: the transaction is one that only reads.
func TestTheSourceOnlyReads(t *testing.T) {
	t.Parallel()
	s := newShop(t, newServer(t), nil)
	s.pay(t, "op-1")
	reader, err := pgx.Connect(t.Context(), s.through(t, s.url, s.reader))
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close(t.Context())
	for _, statement := range []string{"INSERT INTO {T} (id) VALUES ('x')", "UPDATE {T} SET state = 'x'", "DELETE FROM {T}", "TRUNCATE {T}", "DROP TABLE {T}", "CREATE TABLE {S}.t ()"} {
		statement = strings.NewReplacer("{T}", s.table(), "{S}", s.schema).Replace(statement)
		if _, err := reader.Exec(t.Context(), statement); err == nil {
			t.Errorf("the reader may %s", statement)
		}
	}
	_, before := s.Requests()
	if before == 0 {
		t.Fatal("the proxy does not see what writes")
	}
	s.ask(t, s.question("op-1"))
	if _, after := s.Requests(); after != before {
		t.Errorf("the source made %d requests that could write", after-before)
	}
}
