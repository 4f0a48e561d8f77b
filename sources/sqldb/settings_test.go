package sqldb_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/sqldb"
)

func right() sqldb.Settings {
	return sqldb.Settings{
		URL: recon.NewSecret("postgres://reader:TESTONLY@db.example.com/shop"),
		Effects: []sqldb.EffectSettings{{
			Kind: "credit_note", Table: "credit_notes", Consistency: "strong", Unit: "minor", Currency: "EUR",
			Columns:  sqldb.ColumnSettings{ID: "id", CreatedAt: "created_at", Status: "state", Amount: "cents", Reference: "operation_id"},
			Statuses: map[string]string{"done": "completed"},
		}},
		Witnesses: []sqldb.WitnessSettings{{
			Name: "orders", Table: "orders", Prefix: "order:", Columns: sqldb.WitnessColumnSettings{Target: "id", Status: "status"},
			Says: map[string]string{"refunded": "done", "paid": "not_done"},
		}},
	}
}

func TestSettingsTellEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 64)
	for name, test := range map[string]struct {
		change func(*sqldb.Settings)
		want   []string
	}{
		"right":      {func(*sqldb.Settings) {}, nil},
		"nothing":    {func(s *sqldb.Settings) { *s = sqldb.Settings{} }, []string{"url_file", "effects"}},
		"no address": {func(s *sqldb.Settings) { s.URL = recon.NewSecret("postgres://u:p@h:port/") }, []string{"url"}},
		"not read":   {func(s *sqldb.Settings) { s.URL = recon.NewSecret("not read") }, nil},
		"times": {func(s *sqldb.Settings) {
			s.StatementTimeout, s.LockTimeout, s.ConnectTimeout, s.InFlight = -1, -1, -1, -1
		}, []string{"statement_timeout", "lock_timeout", "connect_timeout", "in_flight"}},
		"numbers":   {func(s *sqldb.Settings) { s.PerSecond, s.PageSize = -1, 1e6 }, []string{"per_second", "page_size"}},
		"keys":      {func(s *sqldb.Settings) { s.Keys.HoldsOne = true }, []string{"keys.lifetime"}},
		"two forms": {func(s *sqldb.Settings) { s.Account, s.Accounts = "a", []sqldb.AccountSettings{{Account: "b"}} }, []string{"accounts"}},
		"a place twice": {func(s *sqldb.Settings) {
			s.Accounts = []sqldb.AccountSettings{{Account: "b"}, {Account: "b", Mode: "live"}}
		}, []string{"accounts[1].account"}},
		"a mode": {func(s *sqldb.Settings) { s.Mode = "sandbox" }, []string{"mode"}},
		"nothing tells": {func(s *sqldb.Settings) {
			s.Accounts = []sqldb.AccountSettings{{Account: "a"}, {Account: "b", Mode: "test"}}
		}, []string{"effects[0].columns.account", "effects[0].columns.mode"}},
		"a kind twice": {func(s *sqldb.Settings) { s.Effects = append(s.Effects, s.Effects[0]) }, []string{"effects[1].kind"}},
		"no table":     {func(s *sqldb.Settings) { s.Effects[0].Table = "" }, []string{"effects[0].table"}},
		"long names": {func(s *sqldb.Settings) {
			s.Effects[0].Table, s.Effects[0].Schema, s.Effects[0].Columns.Key = long, long, long
		}, []string{"effects[0].schema", "effects[0].table", "effects[0].columns.key"}},
		"no id and time":    {func(s *sqldb.Settings) { s.Effects[0].Columns.ID, s.Effects[0].Columns.CreatedAt = "", "" }, []string{"effects[0].columns.id", "effects[0].columns.created_at"}},
		"no unit":           {func(s *sqldb.Settings) { s.Effects[0].Unit = "" }, []string{"effects[0].unit"}},
		"no words":          {func(s *sqldb.Settings) { s.Effects[0].Statuses = nil }, []string{"effects[0].statuses"}},
		"no modes":          {func(s *sqldb.Settings) { s.Effects[0].Columns.Mode = "live" }, []string{"effects[0].modes"}},
		"no consistency":    {func(s *sqldb.Settings) { s.Effects[0].Consistency = "" }, []string{"effects[0].consistency"}},
		"a negative lag":    {func(s *sqldb.Settings) { s.Effects[0].Lag = -1; s.Witnesses[0].Lag = -1 }, []string{"effects[0].lag", "witnesses[0].lag"}},
		"a witness twice":   {func(s *sqldb.Settings) { s.Witnesses = append(s.Witnesses, s.Witnesses[0]) }, []string{"witnesses[1].name"}},
		"two ways":          {func(s *sqldb.Settings) { s.Witnesses[0].Columns.Key = "k" }, []string{"witnesses[0].columns"}},
		"no way":            {func(s *sqldb.Settings) { s.Witnesses[0].Columns.Target = "" }, []string{"witnesses[0].columns", "witnesses[0].prefix"}},
		"no words of it":    {func(s *sqldb.Settings) { s.Witnesses[0].Says = nil }, []string{"witnesses[0].says"}},
		"a word of it":      {func(s *sqldb.Settings) { s.Witnesses[0].Says["paid"] = "no" }, []string{"witnesses[0].says.paid"}},
		"it says nothing":   {func(s *sqldb.Settings) { s.Witnesses[0].Columns.Status, s.Witnesses[0].Says = "", nil }, []string{"witnesses[0].columns.status"}},
		"sums of nothing":   {func(s *sqldb.Settings) { s.Witnesses[0].Sums = true }, []string{"witnesses[0].sums"}},
		"a witness's money": {func(s *sqldb.Settings) { s.Witnesses[0].Columns.Amount = "refunded" }, []string{"witnesses[0].unit"}},
	} {
		s := right()
		test.change(&s)
		var got []string
		for _, f := range s.Validate() {
			got = append(got, f.Path)
			if strings.Contains(f.Problem, "TESTONLY") {
				t.Errorf("%s: a fault tells the secret: %s", name, f.Problem)
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if _, err := sqldb.New("erp", s, sqldb.Options{}); (err != nil) != (len(test.want) > 0) {
			t.Errorf("%s: New gives %v", name, err)
		}
	}
}

func TestTheAddressIsReadFromItsFile(t *testing.T) {
	t.Parallel()
	s := right()
	s.URL, s.URLFile = recon.Secret{}, "/run/secrets/erp"
	read := func(text string, err error) func(string) ([]byte, error) {
		return func(string) ([]byte, error) { return []byte(text), err }
	}
	if faults := s.ReadSecrets(read(" postgres://reader@h/db\n", nil)); len(faults) > 0 || s.URL.Reveal() != "postgres://reader@h/db" {
		t.Errorf("faults %v, address %q", faults, s.URL.Reveal())
	}
	for _, faults := range [][]recon.Fault{s.ReadSecrets(read("", nil)), s.ReadSecrets(read("", errors.New("gone")))} {
		if len(faults) != 1 || faults[0].Path != "url_file" {
			t.Errorf("faults are %v, want one of url_file", faults)
		}
	}
}

func TestWhatIsNotWrittenIsFilledIn(t *testing.T) {
	t.Parallel()
	s := right().Filled("erp").(sqldb.Settings)
	if s.System != "erp" || s.Account != "default" || s.Mode != "live" || s.Marker != "operation_id" || s.StatementTimeout == 0 ||
		s.PerSecond == 0 || s.PageSize == 0 || s.Effects[0].Schema != "public" || s.Witnesses[0].Lag == 0 || s.Accounts == nil {
		t.Errorf("filled in: %+v", s)
	}
}
