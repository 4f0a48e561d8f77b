package sweep_test

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/rules"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
	"github.com/seed-1c4f4dc2/reconciler/sweep"
)

// written makes the effects a file of a format; source is empty for the only one that the
// operations name.
func written(t *testing.T, source recon.SourceName, s files.Settings) func(*sweep.CompareOptions) {
	t.Helper()
	f, err := files.FormatOf(source, s)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *sweep.CompareOptions) { o.EffectsFormat, o.EffectsName = &f, "effects.csv" }
}

func builtin(t *testing.T, name string, source recon.SourceName) func(*sweep.CompareOptions) {
	t.Helper()
	f, known := files.Builtin(name, source)
	if !known {
		t.Fatalf("no format %s", name)
	}
	return func(o *sweep.CompareOptions) { o.EffectsFormat, o.EffectsName = &f, "effects.csv" }
}

// giro is a column map such as a bank's export needs.
var giro = files.Settings{
	Format: "giro", Kind: "refund", Currency: "EUR", Decimal: ".", Dates: "YYYY-MM-DD hh:mm:ss", Zone: "UTC",
	Columns: files.Columns{ID: "id", Amount: "Amount", CreatedAt: "Date", Reference: "Ref"},
}

const giroHeader = "id,Date,Amount,Ref\n"

func TestB21_AMarkBeforeTheFirstHeaderChangesNothing(t *testing.T) {
	t.Parallel()
	rows := "re_O1,2026-03-10 10:00:05,10.00,op_1\n"
	for name, text := range map[string]string{"none": giroHeader + rows, "marked": "\xef\xbb\xbf" + giroHeader + rows, "quoted": "\xef\xbb\xbf\"id\",Date,Amount,Ref\n" + rows} {
		r := mustCompare(t, lines(op("op_1", "succeeded", `,"amount":1000,"currency":"EUR"`)), text, written(t, "stripe", giro))
		wantClasses(t, r, classes{"matched": 1}, classes{"matched": 1})
		if t.Failed() {
			t.Fatal(name)
		}
	}
	_, err := tryCompare(lines(op("op_1", "succeeded", "")), "ident,Date,Amount,Ref\n"+rows, written(t, "stripe", giro))
	if err == nil || !strings.Contains(err.Error(), `effects.csv line 1: the header does not name "id"`) || !strings.Contains(err.Error(), `it names "ident"`) {
		t.Errorf("error %v", err)
	}
}

func TestB37_AnotherEncodingIsToldAndIdsAreAsTheyWere(t *testing.T) {
	t.Parallel()
	s := giro
	s.Encoding = "windows-1252"
	s.Columns.Amount = "Betrag (€)"
	r := mustCompare(t, lines(op("op_M\u00fcller", "succeeded", `,"amount":1000,"currency":"EUR"`)),
		"id,Date,Betrag (\x80),Ref\nre_1,2026-03-10 10:00:05,10.00,op_M\xfcller\n", written(t, "stripe", s))
	wantClasses(t, r, classes{"matched": 1}, classes{"matched": 1})
	if len(r.Notes) != 1 || r.Notes[0] != "effects.csv: read as windows-1252" {
		t.Errorf("notes %q", r.Notes)
	}
	s.Encoding = "utf-8"
	s.Columns.Amount = "Amount"
	_, err := tryCompare(lines(op("op_1", "succeeded", "")), giroHeader+"re_1,2026-03-10 10:00:05,10.00,op_M\xfcller\n", written(t, "stripe", s))
	if err == nil || !strings.Contains(err.Error(), "effects.csv line 2") {
		t.Errorf("undecodable bytes: %v", err)
	}
}

func TestARowThatCannotBeReadRefusesTheFileWithItsLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ rows, want string }{
		"an amount that is none":     {"re_1,2026-03-10 10:00:05,ten,op_1\n", "effects.csv line 2"},
		"a date that is none":        {"re_1,yesterday,10.00,op_1\n", "effects.csv line 2"},
		"two readings of one number": {"re_1,2026-03-10 10:00:05,\"1,234\",op_1\n", "effects.csv line 2"},
		"an end within a row":        {"re_1,2026-03-10 10:00:05,10.00,op_1\nre_2,2026-03-1", "effects.csv line 3"},
		"a quote that never ends":    {"re_1,2026-03-10 10:00:05,10.00,\"op_1\n", "effects.csv line 2"},
		"two amounts of one effect":  {"re_1,2026-03-10 10:00:05,10.00,op_1\nre_1,2026-03-10 10:00:05,11.00,op_1\n", "effects.csv line 3: effect re_1 stands on line 2 already"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tryCompare(lines(op("op_1", "succeeded", "")), giroHeader+tt.rows, written(t, "stripe", giro))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestB104_ThreeDecimalsAreTheSameHoweverTheyAreWritten(t *testing.T) {
	t.Parallel()
	s := giro
	s.Currency = "KWD"
	for _, amount := range []string{"5.12", "5.120", "5.1200"} {
		r := mustCompare(t, lines(op("op_1", "succeeded", `,"amount":5125,"currency":"KWD"`)),
			giroHeader+"re_1,2026-03-10 10:00:05,"+amount+",op_1\n", written(t, "stripe", s))
		wantClasses(t, r, classes{"mismatch": 1}, classes{"mismatch": 1})
		if d := r.Findings[0].Observed[0]; d.Ours != "5.125 KWD" || d.Theirs != "5.120 KWD" {
			t.Errorf("%s: %+v", amount, d)
		}
	}
}

const reportHeader = "balance_transaction_id,created_utc,available_on_utc,currency,gross,fee,net,reporting_category,source_id,charge_id,refund_metadata[operation_id]\n"

func TestABalanceReportIsOfTheOnlySourceAndKeepsToWhatActionsMake(t *testing.T) {
	t.Parallel()
	report := reportHeader +
		"txn_1,2026-03-10 10:00:05,2026-03-12 00:00:00,eur,-10.00,0.00,-10.00,refund,re_1,ch_1,op_1\n" +
		"txn_2,2026-03-10 09:00:00,2026-03-12 00:00:00,eur,40.00,1.20,38.80,charge,ch_1,ch_1,\n" +
		"txn_3,2026-03-10 11:00:00,2026-03-12 00:00:00,eur,-15.00,0.00,-15.00,refund,re_2,ch_2,\n"
	ours := op("op_1", "unknown", `,"amount":1000,"currency":"EUR","account":"acct_1"`)
	r := mustCompare(t, lines(ours), report, builtin(t, files.StripeBalance, ""))
	wantClasses(t, r, classes{"matched": 1}, classes{"matched": 1, "orphan": 1})
	if r.SetAside != 1 || len(r.Happened) != 1 || r.Happened[0].EffectID != "re_1" || r.Happened[0].State != recon.Unknown {
		t.Errorf("set aside %d, happened %+v", r.SetAside, r.Happened)
	}
	bank := strings.Replace(op("op_2", "succeeded", ""), `"stripe"`, `"bank"`, 1)
	if _, err := tryCompare(lines(ours, bank), report, builtin(t, files.StripeBalance, "")); err == nil || !strings.Contains(err.Error(), "(bank, stripe); say which with --effects-source") {
		t.Errorf("two sources: %v", err)
	}
	r = mustCompare(t, lines(ours, bank), report, builtin(t, files.StripeBalance, "stripe"))
	if r.Classes.Operations["unseen"] != 1 {
		t.Errorf("classes %v", r.Classes.Operations)
	}
}

func TestB80_APaymentsListNeitherConfirmsNorClearsARefund(t *testing.T) {
	t.Parallel()
	r := mustCompare(t, lines(op("op_1", "succeeded", `,"amount":2150,"currency":"USD"`)),
		"id,Created (UTC),Amount,Amount Refunded,Currency,Status\nch_DD1,2026-03-10 09:00,84.00,21.50,usd,Paid\nch_DD2,2026-03-10 09:30,37.00,37.00,usd,Refunded\n",
		builtin(t, files.StripePayments, ""))
	wantClasses(t, r, classes{"unseen": 1}, classes{})
	wantFindings(t, r)
	if len(r.Unseen) != 1 || !strings.Contains(r.Unseen[0].Why, "shows no refund") || r.SetAside != 2 {
		t.Errorf("unseen %+v, set aside %d", r.Unseen, r.SetAside)
	}
	if len(r.Notes) == 0 || !strings.Contains(strings.Join(r.Notes, " "), "no refund ids") {
		t.Errorf("notes %q", r.Notes)
	}
}

// The balance report of the shop proves less than its effects, and nothing else.
func TestTheShopsBalanceReportAgreesWithItsEffects(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		b, err := os.ReadFile("testdata/northwind/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	var ours []string
	for l := range strings.Lines(read("operations.jsonl")) {
		if strings.Contains(l, `"source":"stripe-main"`) && strings.Contains(l, `"mode":"live"`) {
			ours = append(ours, strings.TrimSpace(l))
		}
	}
	var theirs []string
	for l := range strings.Lines(read("effects.jsonl")) {
		if strings.Contains(l, `"source":"stripe-main"`) && strings.Contains(l, `"mode":"live"`) {
			theirs = append(theirs, strings.TrimSpace(l))
		}
	}
	full := mustCompare(t, lines(ours...), lines(theirs...))
	report := mustCompare(t, lines(ours...), read("../../../sources/files/testdata/northwind/stripe_refunds_balance.csv"), builtin(t, files.StripeBalance, "stripe-main"))
	for _, k := range []rules.Class{rules.ClassMismatch, rules.ClassDuplicate, rules.ClassReversed, rules.ClassNeverSent} {
		if full.Classes.Operations[k] != report.Classes.Operations[k] {
			t.Errorf("%s: %d by effects, %d by the report", k, full.Classes.Operations[k], report.Classes.Operations[k])
		}
	}
	// Without keys and without what is in flight the report finds less, never more.
	if full.Classes.Operations["matched"] < report.Classes.Operations["matched"] {
		t.Errorf("matched %d by effects, %d by the report", full.Classes.Operations["matched"], report.Classes.Operations["matched"])
	}
}

func TestB34_TheLastDayOfARangeIsIn(t *testing.T) {
	t.Parallel()
	day := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	at := func(id, when string) string {
		return strings.Replace(eff(id, "completed", ""), "2026-03-10T10:00:05Z", when, 1)
	}
	r := mustCompare(t, "", lines(at("re_1", "2026-02-10T00:00:00Z"), at("re_2", "2026-02-10T13:00:00Z"), at("re_3", "2026-02-10T23:59:59.999999Z"), at("re_4", "2026-02-11T00:00:00Z")),
		func(o *sweep.CompareOptions) {
			o.Window = recon.Window{From: day("2026-02-10T00:00:00Z"), To: day("2026-02-11T00:00:00Z")}
		})
	if r.Effects != 3 {
		t.Errorf("%d effects are in the day, want 3", r.Effects)
	}
}

func TestTheExamplesSayTheSameInBothForms(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		b, err := os.ReadFile("../examples/compare/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	want := mustCompare(t, read("operations.jsonl"), read("effects.jsonl"))
	got := mustCompare(t, read("operations.jsonl"), read("stripe_balance.csv"), builtin(t, files.StripeBalance, ""))
	wantClasses(t, got, only(want.Classes.Operations), only(want.Classes.Effects))
	if diff := cmp.Diff(want.Findings, got.Findings, cmpopts.IgnoreFields(sweep.CompareFinding{}, "Theirs")); diff != "" {
		t.Errorf("findings (-JSON Lines +CSV):\n%s", diff)
	}
}

func TestATableFromAFileAndFromAPipeIsTheSame(t *testing.T) {
	t.Parallel()
	report, err := os.ReadFile("../sources/files/testdata/northwind/stripe_refunds_balance.csv")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := os.ReadFile("testdata/northwind/operations.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	whole := mustCompare(t, string(ours), "", builtin(t, files.StripeBalance, "stripe-main"), func(o *sweep.CompareOptions) {
		o.Effects = io.MultiReader(bytes.NewReader(report))
	})
	sieved := mustCompare(t, string(ours), string(report), builtin(t, files.StripeBalance, "stripe-main"))
	if diff := cmp.Diff(whole, sieved); diff != "" || whole.Effects == 0 {
		t.Errorf("(-pipe +file):\n%s", diff)
	}
}
