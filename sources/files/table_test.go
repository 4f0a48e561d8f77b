package files_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

// german is a small column map as a German spreadsheet writes it.
var german = files.Settings{
	Format: "giro", Kind: "transfer", Currency: "EUR", Decimal: ",", Thousands: ".", Dates: "DD.MM.YYYY", Zone: "Europe/Berlin",
	Columns: files.Columns{ID: "id", CreatedAt: "Tag", Amount: "Amount"},
}

// brief is a row in one line: its place, and what it says.
func brief(rows []files.Row) []string {
	out := []string{}
	for _, r := range rows {
		switch r.Outcome {
		case files.Read:
			out = append(out, fmt.Sprintf("%d %s %d %s", r.Line, r.Effect.ID, r.Effect.Money.Minor, r.Effect.Status))
		case files.Refused:
			out = append(out, fmt.Sprintf("%d refused: %s", r.Line, r.Reason))
		default:
			out = append(out, fmt.Sprintf("%d aside: %s", r.Line, r.Reason))
		}
	}
	return out
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestB74_LineEndsOfEveryKind(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"bare CR":               "id;Tag;Amount\rre_BB1;01.03.2026;1,00\rre_BB2;01.03.2026;2,00\r",
		"LF":                    "id;Tag;Amount\nre_BB1;01.03.2026;1,00\nre_BB2;01.03.2026;2,00\n",
		"CRLF and LF":           "id;Tag;Amount\r\nre_BB1;01.03.2026;1,00\nre_BB2;01.03.2026;2,00\r\n",
		"no end of the last":    "id;Tag;Amount\r\nre_BB1;01.03.2026;1,00\r\nre_BB2;01.03.2026;2,00",
		"CR, no end of last":    "id;Tag;Amount\rre_BB1;01.03.2026;1,00\rre_BB2;01.03.2026;2,00",
		"separators at the end": "id;Tag;Amount;\nre_BB1;01.03.2026;1,00;\nre_BB2;01.03.2026;2,00;\n",
	} {
		rows, _ := readAll(t, "giro", german, text)
		same(t, name, []string{"2 re_BB1 100 completed", "3 re_BB2 200 completed"}, brief(rows))
	}
	rows, _ := readAll(t, "giro", german, "id;Tag;Amount\nre_BB1;01.03.2026;1,00\nid;Tag;Amount\nre_BB2;01.03.2026;2,00\n")
	same(t, "two exports, one behind the other", []string{"2 re_BB1 100 completed", "4 re_BB2 200 completed"}, brief(rows))
	rows, _ = readAll(t, "giro", german, "id;Tag;Amount\n\n\nre_BB1;01.03.2026;1,00\n;;\nre_BB2;01.03.2026;2,00\n")
	same(t, "blank lines", []string{"4 re_BB1 100 completed", "6 re_BB2 200 completed"}, brief(rows))
}

func TestB25_YenHaveNoDecimalsInAFileEither(t *testing.T) {
	t.Parallel()
	rows, _ := readAll(t, "stripe", files.Settings{Format: files.StripeBalance}, "created_utc,currency,gross,reporting_category,source_id\n"+
		"2026-03-01 10:00:02,jpy,-6400.00,refund,re_1\n2026-03-01 10:00:02,jpy,-6400.50,refund,re_2\n2026-03-01 10:00:02,jpy,-6400,refund,re_3\n")
	same(t, "rows", []string{"2 re_1 6400 completed", `3 refused: gross: "6400.50" has more decimals than its currency, which has 0`, "4 re_3 6400 completed"}, brief(rows))
}

// The first number that can be read in one way only says how all are written, whatever stands
// first.
func TestTheDecimalSignIsThatOfTheWholeFile(t *testing.T) {
	t.Parallel()
	s := german
	s.Decimal, s.Thousands, s.Currency, s.Columns.Currency = "", "", "", "Currency"
	for _, tt := range []struct{ first, second, want string }{
		{"1,5;EUR", "1,50;EUR", ""}, {"1.5;EUR", "1.50;EUR", ""}, {"7;EUR", "1,50;EUR", ""}, {"5,12;KWD", "1,500;KWD", ""}, {"64,00;JPY", "1,5;EUR", ""},
		{"1.5;EUR", "1,50;EUR", "line 3: Amount: the number 1,50 is not written as"}, {"1,50;EUR", "1.5;EUR", "line 3: Amount: the number 1.5 is not written as"},
		{"64.00;JPY", "1,50;EUR", "line 3"}, {"1,50;EUR", "64.00;JPY", "line 3"}, {"5.120;KWD", "5,12;KWD", "line 2: Amount: the number 5.120 has two readings"},
	} {
		_, r := read(t, "giro", s, "id;Tag;Amount;Currency\nre_1;01.03.2026;"+tt.first+"\nre_2;01.03.2026;"+tt.second+"\n")
		if err := r.Err(); tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s, then %s: %v; want %q", tt.first, tt.second, err, tt.want)
		}
	}
	// Stripe's own files are read by the point where nothing proves another sign.
	const header = "created_utc,currency,gross,reporting_category,source_id\n"
	_, r := read(t, "stripe", files.Settings{Format: files.StripeBalance}, header+
		"2026-03-01 10:00:02,kwd,-5.120,refund,re_1\n2026-03-01 10:00:02,eur,\"-1,50\",refund,re_2\n")
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "line 3: gross: the number 1,50 is not written as those above it") {
		t.Errorf("a comma below a point: %v", err)
	}
}

// A file may end without a line end. One that was cut inside its last cell looks the same.
func TestALastLineWithoutAnEndIsReadAndTold(t *testing.T) {
	t.Parallel()
	s := german
	s.Columns.Reference = "Text"
	const told = `it is the last line and has no end: if the file was cut off, "Text" may be cut too`
	for text, want := range map[string][]files.Note{
		"id;Tag;Amount;Text\nre_1;01.03.2026;1,00;op_1":      {{Line: 2, Text: told}},
		"id;Tag;Amount;Text\nre_1;01.03.2026;1,00;\"op_1\"":  {{Line: 2, Text: told}},
		"id;Tag;Amount;Text\nre_1;01.03.2026;1,00;":          {{Line: 2, Text: told}},
		"id;Tag;Amount;Text\nre_1;01.03.2026;1,00;op_1\n":    nil,
		"id;Tag;Amount;Text\nre_1;01.03.2026;1,00;op_1;":     nil, // its last cell has an end
		"id;Tag;Amount;Text;Name\nre_1;01.03.2026;1,00;op;x": nil, // a cell that nobody reads
	} {
		rows, r := readAll(t, "giro", s, text)
		if same(t, text, want, r.Notes()); len(rows) != 1 {
			t.Errorf("%q: %v", text, brief(rows))
		}
	}
}

func TestB75_LineBreaksInsideQuotes(t *testing.T) {
	t.Parallel()
	text := "id;Text;Amount;Tag\r\n" +
		"re_CC1;\"line 1\r\nline \"\"2\"\"; x\";10,00;01.03.2026\r\n" +
		"re_CC2;\"\";\"1.234,50\";01.03.2026\r\n" +
		"re_CC3;y;x;01.03.2026\r\n"
	rows, _ := readAll(t, "giro", german, text)
	same(t, "rows, by physical line", []string{
		"2 re_CC1 1000 completed", "4 re_CC2 123450 completed", `5 refused: Amount: "x" is no number`,
	}, brief(rows))
	for name, tt := range map[string]struct{ text, want string }{
		"never closed":      {"id;Tag;Amount\nre_1;01.03.2026;1,00\nre_2;\"01.03.2026;2,00\nre_3;01.03.2026;3,00\n", "line 3: a quote is opened and never closed"},
		"inside a field":    {"id;Tag;Amount\nre_1;01.03.2026;1,00\nre_2;a\"b;2,00\n", "line 3: a quote stands inside a field"},
		"text behind":       {"id;Tag;Amount\nre_1;\"01.03.2026\"x;1,00\n", "line 2: text goes on after a closing quote"},
		"one column less":   {"id;Tag;Amount\nre_1;01.03.2026\nre_2;01.03.2026;2,00\n", "line 2: it has 2 columns and the header has 3"},
		"one column more":   {"id;Tag;Amount\nre_1;01.03.2026;1,00;x\n", "line 2: it has 4 columns"},
		"cut in the middle": {"id;Tag;Amount\nre_1;01.03.2026;1,00\nre_2;01.0", "line 3: the file ends inside it"},
		"cut in quotes":     {"id;Tag;Amount\nre_1;01.03.2026;1,00\nre_2;\"01.0", "line 3: a quote is opened and never closed"},
		"no such column":    {"id;Tag\nre_1;01.03.2026\n", `line 1: the header does not name "Amount"`},
		"empty":             {"", "the file is empty"},
		"a spreadsheet":     {"PK\x03\x04\x00", "line 1: it is packed, or a spreadsheet's own file"},
		"an open header":    {"id;\"Tag;Amount\nre_1;01.03.2026;1,00\n", "line 1: a quote is opened and never closed"},
		"a column twice":    {"id;Tag;Amount;Amount\nre_1;01.03.2026;1,00;2,00\n", `line 1: the header names "Amount" twice`},
	} {
		_, r := read(t, "giro", german, tt.text)
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v; want %q", name, err, tt.want)
		}
	}
}

func TestB37_FilesThatAreNotUTF8(t *testing.T) {
	t.Parallel()
	s := german
	s.Columns.Amount = "Betrag (€)"
	s.Columns.Target = "Text"
	utf := "id;Tag;Betrag (€);Text\nre_1;01.03.2026;1,00;Müller\n"
	win := "id;Tag;Betrag (\x80);Text\nre_1;01.03.2026;1,00;M\xfcller\n"
	units := utf16.Encode([]rune(utf))
	var little, big []byte
	for _, u := range units {
		little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
	}
	for name, tt := range map[string]struct{ text, chosen, want string }{
		"utf-8": {utf, "", "utf-8"}, "utf-8 with a mark": {"\ufeff" + utf, "", "utf-8"},
		"windows-1252 by its header": {win, "", "windows-1252"}, "windows-1252 by choice": {win, "windows-1252", "windows-1252"},
		"utf-16 little": {"\xff\xfe" + string(little), "", "utf-16le"}, "utf-16 big": {"\xfe\xff" + string(big), "", "utf-16be"},
		"utf-16 by choice": {string(little), "utf-16le", "utf-16le"},
	} {
		s.Encoding = tt.chosen
		rows, r := readAll(t, "giro", s, tt.text)
		same(t, name, tt.want, r.Encoding())
		if same(t, name, []string{"2 re_1 100 completed"}, brief(rows)); rows[0].Effect.Target != "Müller" {
			t.Errorf("%s: target %q", name, rows[0].Effect.Target)
		}
	}
	s.Encoding, s.Columns.Amount = "", "Betrag"
	plain := func(body string) string { return "id;Tag;Betrag;Text\n" + body }
	for name, tt := range map[string]struct{ text, chosen, want string }{
		"bytes below the header prove nothing": {plain("re_1;01.03.2026;1,00;ok\nre_2;01.03.2026;1,00;M\xfcller\n"), "", "line 3: it is not UTF-8; if the file is Windows-1252"},
		"a byte that 1252 does not have":       {plain("re_1;01.03.2026;1,00;ok\nre_2;01.03.2026;1,00;M\x81ller\n"), "windows-1252", "line 3: a byte that Windows-1252 does not have"},
		"a header of another encoding":         {"Stand\nid;Tag;Betrag;K\xfcrzel\nre_1;01.03.2026;1,00;x\n", "", "line 2: it is not UTF-8; if the file is Windows-1252"},
		"NUL bytes":                            {string(little), "", "holds NUL bytes"},
		"half a UTF-16 character":              {"\xff\xfe" + string(little[:len(little)-1]), "", "ends inside a UTF-16 character"},
		"a mark against the choice":            {"\ufeff" + plain(""), "windows-1252", "line 1: it begins with the mark of utf-8"},
	} {
		s.Encoding = tt.chosen
		_, r := read(t, "giro", s, tt.text)
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v; want %q", name, err, tt.want)
		}
	}
	s.Encoding = ""
	rows, r := readAll(t, "giro", s, plain("re_1;01.03.2026;1,00;M\ufffdller\n"))
	if len(rows) != 1 || len(r.Notes()) != 1 || r.Notes()[0].Line != 2 {
		t.Errorf("a lost character: %d rows, notes %v; want one row and a note on line 2", len(rows), r.Notes())
	}
}

func TestTheHeaderIsFoundBelowAPreambleAndUnderAnySeparator(t *testing.T) {
	t.Parallel()
	for _, sep := range []string{",", ";", "\t", "|"} {
		s := german
		s.Decimal, s.Thousands = ".", ""
		text := "Report of \"a bank\nAccount 1,2;3\n\n" + strings.Join([]string{" AMOUNT ", "Tag", "x", "id"}, sep) + "\n" +
			strings.Join([]string{"1.00", "01.03.2026", "y", "t1"}, sep) + "\n"
		rows, _ := readAll(t, "giro", s, text)
		same(t, "separator "+sep, []string{"5 t1 100 completed"}, brief(rows))
	}
	s := german
	zero := int64(0)
	s.Preamble = &zero
	_, r := read(t, "giro", s, "Report\nid;Tag;Amount\n")
	if r.Err() == nil {
		t.Error("a header on line 2 was taken where the settings say line 1")
	}
	s = german
	s.Separator = ","
	if _, r := read(t, "giro", s, "id;Tag;Amount\n"); r.Err() == nil {
		t.Error("another separator than the declared one was taken")
	}
}

func TestTotalsAreHeldAgainstTheirRows(t *testing.T) {
	t.Parallel()
	s := german
	s.Totals.Begins = "Summe"
	head := "id;Tag;Amount\nt1;01.03.2026;-1,00\nt2;01.03.2026;-2,50\n"
	rows, _ := readAll(t, "giro", s, head+"Summe März;;-3,50\n")
	same(t, "rows", []string{"2 t1 100 completed", "3 t2 250 completed", "4 aside: it holds a total"}, brief(rows))
	_, r := read(t, "giro", s, head+"Summe März;;-4,50\n")
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "line 4: the total is -4.50 EUR and the rows above it make -3.50 EUR") {
		t.Errorf("a row is missing: got %v", err)
	}
	rows, r = readAll(t, "giro", s, head+"t3;01.03.2026;x\nSumme;;-3,50\n")
	if len(rows) != 4 || len(r.Notes()) != 1 {
		t.Errorf("an unreadable amount: %v, notes %v; want a note that the sum was not checked", brief(rows), r.Notes())
	}
}

// Where nobody declared it, the first number with decimals shows which sign stands before
// them, for the whole file.
func TestTheDecimalSignIsProvenOnceAndHolds(t *testing.T) {
	t.Parallel()
	s := german
	s.Decimal, s.Thousands = "", ""
	head := "id;Tag;Amount\n"
	for name, tt := range map[string]struct{ text, currency, want string }{
		"comma":                      {"a;01.03.2026;5\nb;01.03.2026;-10,25\nc;01.03.2026;1,00\n", "EUR", ""},
		"point":                      {"b;01.03.2026;-10.25\nc;01.03.2026;$1.00\n", "USD", ""},
		"both":                       {"b;01.03.2026;-10,25\nc;01.03.2026;1.00\n", "EUR", "line 3: Amount: the number 1.00 is not written as"},
		"thousands nobody declared":  {"b;01.03.2026;10,25\nc;01.03.2026;1.000,00\n", "EUR", "line 3: Amount: the number 1.000,00 is not written as"},
		"three digits say nothing":   {"b;01.03.2026;1,234\n", "EUR", "line 2: Amount: the number 1,234 has two readings"},
		"three decimals or thousand": {"b;01.03.2026;1.430\n", "KWD", "line 2: Amount: the number 1.430 has two readings"},
	} {
		s.Currency = tt.currency
		_, r := read(t, "giro", s, head+tt.text)
		if err := r.Err(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v; want %q", name, err, tt.want)
		}
	}
	s.Currency, s.Unit = "EUR", "minor"
	for _, cell := range []string{"99.99", "1,234"} { // advice that the settings would refuse is none
		_, r := read(t, "giro", s, head+"b;01.03.2026;"+cell+"\n")
		if err := r.Err(); err == nil || !strings.Contains(err.Error(), "says `unit: minor`") || strings.Contains(err.Error(), "thousands") {
			t.Errorf("%s among minor units: got %v", cell, err)
		}
	}
	rows, _ := readAll(t, "s", files.Settings{Format: files.StripeBalance},
		"created_utc;currency;gross;reporting_category;source_id\n2026-03-01 10:00:02;kwd;-1.430;refund;re_1\n2026-03-01 10:00:02;eur;-1.43;refund;re_2\n")
	same(t, "Stripe writes a point unless it was asked for a comma", []string{"2 re_1 1430 completed", "3 re_2 143 completed"}, brief(rows))
	rows, _ = readAll(t, "s", files.Settings{Format: files.StripePayments},
		"id;Created (UTC);Amount;Currency;Status\nch_1;2026-03-01 10:00;12,50;eur;Paid\nch_2;2026-03-01 10:00;1037,00;eur;Paid\n")
	same(t, "a payments list with commas", []string{"2 ch_1 1250 completed", "3 ch_2 103700 completed"}, brief(rows))
}

// Ids are unique within an account only, and rows without an id stay as many as they are.
func TestB83_AccountsKeepTheirIDsAndEqualRowsStayApart(t *testing.T) {
	t.Parallel()
	s := german
	s.Accounts = []files.AccountSettings{{Account: "A"}, {Account: "B"}}
	s.Columns.Account = "Konto"
	rows, _ := readAll(t, "giro", s, "id;Tag;Amount;Konto\nx77-1;01.03.2026;1,00;A\nx77-1;01.03.2026;1,00;B\nx77-1;01.03.2026;1,00;C\n")
	if rows[0].Effect.Identity() == rows[1].Effect.Identity() {
		t.Error("the same id in two accounts is one effect")
	}
	same(t, "a row of another account", "4 aside: account C in live mode is none of the source's", brief(rows)[2])

	s = german
	s.Columns.ID = ""
	may, _ := readAll(t, "giro", s, "Tag;Amount\n30.05.2026;-3,80\n")
	june, _ := readAll(t, "giro", s, "Tag;Amount\n30.05.2026;-3,80\n02.06.2026;-3,80\n02.06.2026;-3,80\n")
	ids := map[string]bool{}
	for _, r := range june {
		ids[r.Effect.ID] = true
	}
	if len(ids) != 3 || may[0].Effect.ID != june[0].Effect.ID {
		t.Errorf("three rows are %d effects, and the overlap is the same: %v", len(ids), may[0].Effect.ID == june[0].Effect.ID)
	}
}

// Rows of several accounts and payouts in one file: each is of its own account, what is
// not ours is set aside, and every row adds up.
func TestB85_RowsOfOtherAccountsAreSetAside(t *testing.T) {
	t.Parallel()
	s := files.Settings{Format: files.StripeBalance, Accounts: []files.AccountSettings{{Account: "acct_1"}, {Account: "acct_2"}}}
	text := "automatic_payout_id,created_utc,currency,gross,fee,net,reporting_category,source_id,connected_account_id\n" +
		"po_1,2026-03-01 10:00:00,eur,64.00,2.16,61.84,charge,ch_1,acct_1\n" +
		"po_1,2026-03-01 10:00:00,eur,-64.00,0.00,-64.00,refund,re_1,acct_1\n" +
		"po_2,2026-03-01 10:00:00,eur,-64.00,-1.86,-62.14,refund,re_2,acct_2\n" +
		"po_3,2026-03-01 10:00:00,eur,-64.00,0.00,-64.00,refund,re_3,acct_9\n" +
		"po_1,2026-03-01 10:00:00,eur,-0.10,0.00,-0.10,fee,,acct_1\n" +
		"po_1,2026-03-01 10:00:00,eur,-64.00,0.00,-63.00,refund,re_4,acct_1\n" +
		"po_1,2026-03-01 10:00:00,eur,-64.00,0.00,-64.00,refund,re_5,\n"
	rows, _ := readAll(t, "stripe", s, text)
	same(t, "rows", []string{
		"2 ch_1 6400 completed", "3 re_1 6400 completed", "4 re_2 6400 completed",
		"5 aside: account acct_9 in live mode is none of the source's", "6 aside: reporting category fee tells of no effect",
		"7 refused: net -63.00 is not gross -64.00 less fee 0.00",
		"8 refused: the source has several accounts and the row does not say which; add connected_account_id to the report's columns",
	}, brief(rows))
	if fee := rows[2].Effect.Fee; fee == nil || *fee != -186 {
		t.Errorf("a fee that was given back: %v", fee)
	}
}

// What was paid out together comes to the payout, fees included, however many payouts stand in
// one file. One that began before the file did is named.
func TestB85_TheRowsOfAPayoutComeToThePayout(t *testing.T) {
	t.Parallel()
	s := files.Settings{Format: files.StripeBalance}
	text := "automatic_payout_id,created_utc,currency,gross,fee,net,reporting_category,source_id\n" +
		"po_1,2026-03-01 10:00:00,eur,64.00,2.16,61.84,charge,ch_1\n" +
		"po_2,2026-03-01 11:00:00,eur,37.00,1.00,36.00,charge,ch_2\n" +
		"po_1,2026-03-01 12:00:00,eur,-21.50,0.00,-21.50,refund,re_1\n" +
		"po_1,2026-03-01 13:00:00,eur,-0.10,0.00,-0.10,fee,\n" +
		"po_1,2026-03-02 10:00:00,eur,-40.24,0.00,-40.24,payout,po_1\n" +
		"po_2,2026-03-02 10:00:00,eur,-50.00,0.00,-50.00,payout,po_2\n" +
		"po_3,2026-03-02 10:00:00,eur,-9.00,0.00,-9.00,payout,po_3\n" +
		"po_3,2026-03-03 10:00:00,eur,9.00,0.00,9.00,payout_reversal,po_3\n" +
		"po_4,2026-03-03 10:00:00,eur,5.00,0.00,5.00,charge,ch_3\n" +
		",2026-03-03 10:00:00,eur,5.00,0.00,5.00,charge,ch_4\n"
	rows, r := readAll(t, "stripe", s, text)
	same(t, "rows", 10, len(rows))
	same(t, "notes", []files.Note{
		{Line: 1, Text: "there is no column refund_metadata[operation_id], so no effect names its operation; add it to the report's columns"},
		{Line: 7, Text: "payout po_2 is 50.00 EUR, and the rows of it that are here come to 36.00 EUR: the file does not hold all of them"},
	}, r.Notes())
	_, r = readAll(t, "stripe", s, strings.ReplaceAll(text, "po_2,2026-03-02 10:00:00,eur,-50.00,0.00,-50.00", "po_2,2026-03-02 10:00:00,eur,-36.00,0.00,-36.00"))
	same(t, "all come to their payouts", 1, len(r.Notes()))
}

// Two rows that say the same are two, where nothing tells them apart; where an id does, the
// second tells of the first again.
func TestB23_TwoIdenticalRowsAreBothReal(t *testing.T) {
	t.Parallel()
	s := files.Settings{
		Format: "bank", Kind: "transfer", Decimal: ".", Dates: "YYYY-MM-DD", Zone: "UTC",
		Columns: files.Columns{CreatedAt: "date", Amount: "amount", Currency: "currency", Target: "text"},
	}
	text := "date,text,amount,currency\n2026-05-04,Transfer,-13.40,EUR\n2026-05-04,Transfer,-13.40,EUR\n"
	first, _ := readAll(t, "bank", s, text)
	again, _ := readAll(t, "bank", s, text+"2026-05-04,Transfer,-13.40,EUR\n")
	if len(first) != 2 || first[0].Effect.ID == first[1].Effect.ID || first[0].Effect.Money.Minor != 1340 {
		t.Fatalf("rows %v", brief(first))
	}
	same(t, "an export that overlaps names them alike", brief(first), brief(again[:2]))
	if again[2].Effect.ID == again[0].Effect.ID || again[2].Effect.ID == again[1].Effect.ID {
		t.Error("a third one is not told apart")
	}
	s.Columns.ID = "id"
	rows, _ := readAll(t, "bank", s, "id,date,text,amount,currency\nt1,2026-05-04,Transfer,-13.40,EUR\nt1,2026-05-04,Transfer,-13.40,EUR\n")
	twins := files.NewTwins()
	for i, want := range []bool{false, true} {
		if repeated, err := twins.Meet(&rows[i]); repeated != want || err != nil {
			t.Errorf("row %d: repeated %v, %v", i+1, repeated, err)
		}
	}
}

// The refund is a column of the payments list: nothing of it confirms or clears a refund.
func TestB80_TheRefundIsAColumnNotARow(t *testing.T) {
	t.Parallel()
	s := files.Settings{Format: files.StripePayments}
	text := "id,Created date (UTC),Amount,Amount Refunded,Currency,Fee,Converted Amount,Converted Currency,Mode,Status,Customer Email,operation_id (metadata)\n" +
		"ch_DD1,2026-03-01 10:00,84.00,21.50,usd,2.00,84.00,usd,Live,Paid,jane@example.com,op_1\n" +
		"ch_DD2,2026-03-01 10:00:05,\"1,037.00\",\"1,037.00\",usd,,,,Live,Refunded,,\n" +
		"ch_DD3,2026-03-01 10:00,5.00,0.00,eur,,,,Test,Paid,,\n" +
		"ch_DD4,2026-03-01 10:00,5.00,0.00,eur,,,,Live,Exploded,,\n" +
		"ch_DD5,2026-03-01 10:00,5.00,6.00,eur,,,,Live,Paid,,\n" +
		"ch_DD6,2026-03-01 10:00,5.00,,eur,,,,Live,Failed,,\n"
	rows, r := readAll(t, "stripe", s, text)
	same(t, "rows", []string{
		"2 ch_DD1 8400 completed", "3 ch_DD2 103700 completed", "4 ch_DD3 500 completed",
		`5 refused: Status: "Exploded" is no status of a payment that is known here`,
		"6 refused: Amount Refunded: 6.00 is not between 0 and the amount", "7 ch_DD6 500 failed",
	}, brief(rows))
	want := []files.Note{{Text: "this export has no refund ids, so it can neither confirm nor clear a refund; 2 of its payments have refunds, 1,058.50 USD in all"}}
	same(t, "notes", want, r.Notes())
	if e := rows[0].Effect; e.Kind != "charge" || e.Reference != "op_1" || e.Fee == nil || *e.Fee != 200 || rows[2].Effect.Mode != "test" {
		t.Errorf("got %+v", e)
	}
	for _, row := range rows {
		if strings.Contains(fmt.Sprintf("%+v", row), "jane@") {
			t.Error("a personal column left the file")
		}
	}
	s.Account = "acct_1"
	rows, _ = readAll(t, "stripe", s, text)
	same(t, "the mode that is not ours", "4 aside: account acct_1 in test mode is none of the source's", brief(rows)[2])
}

// A source of Stripe's API takes whatever Stripe exports: the first line shows what it is.
func TestStripesExportsShowWhatTheyAre(t *testing.T) {
	t.Parallel()
	f := files.Stripe("stripe").Of(recon.Sheet{System: "stripe", Marker: "op", Accounts: []recon.Account{{Account: "acct_1", Mode: "test"}}})
	for text, want := range map[string]string{
		"created_utc,currency,gross,reporting_category,source_id,refund_metadata[op]\n2026-03-01 10:00:02,eur,-10.00,refund,re_8,op_1\n": "re_8 refund acct_1 test op_1",
		"id;Created (UTC);Amount;Currency;Status;Captured\nch_1;2026-03-01 10:00;1,234.00;eur;Paid;false\n":                              "ch_1 charge acct_1 test ",
		"\n {\"id\":\"a\",\"source\":\"stripe\",\"kind\":\"refund\",\"status\":\"failed\",\"created_at\":\"2026-03-01T00:00:00Z\"}":      "a refund acct_1 test ",
	} {
		r := files.Open(f, strings.NewReader(text), "x")
		var row files.Row
		r.Next(&row)
		e := row.Effect
		same(t, text, want, strings.Join([]string{e.ID, e.Kind, e.Account, e.Mode, e.Reference}, " "))
		if r.Next(&row) || r.Err() != nil {
			t.Errorf("%q: %v", text, r.Err())
		}
	}
	r := files.Open(f, strings.NewReader("id,Created (UTC),Amount,Currency\n"), "x")
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), `does not name "Status"`) {
		t.Errorf("a payments list without its status: %v", err)
	}
}

func TestColumnMapsReadWordsAndPlaces(t *testing.T) {
	t.Parallel()
	s := files.Settings{
		Format: "acme", Unit: "minor", Dates: "rfc3339", Sign: "negative",
		Columns: files.Columns{ID: "Id", CreatedAt: "At", Amount: "Cents", Currency: "Cur", Status: "State", Kind: "Type", Mode: "Env",
			Parent: "Parent", Target: "Order", Reference: "Op", NaturalReference: "Invoice", Key: "Idem", Fee: "Fee", Net: "Net", UpdatedAt: "Upd"},
		Kinds:    map[string]string{"Refund": "refund", "Payout": "transfer"},
		Statuses: map[string]string{"Done": "completed", "Open": "in_flight", "Back": "reversed", "Info": "ignored"},
		Modes:    map[string]string{"prod": "live", "sandbox": "test"},
	}
	head := "Id,At,Cents,Cur,State,Type,Env,Parent,Order,Op,Invoice,Idem,Fee,Net,Upd,Name\n"
	rows, _ := readAll(t, "acme", s, head+
		"a,2026-03-01T09:00:00Z,-500,jpy,done,REFUND,prod,p1,o1,op_1,inv,k1,10,--,2026-03-02T09:00:00Z,Jane\n"+
		"b,2026-03-01T09:00:00Z,500,jpy,Done,Refund,prod,,,,,,,,,\n"+
		"c,2026-03-01T09:00:00Z,-500,jpy,Done,Chargeback,prod,,,,,,,,,\n"+
		"d,2026-03-01T09:00:00Z,-500,jpy,Gone,Refund,prod,,,,,,,,,\n"+
		"e,2026-03-01T09:00:00Z,--,jpy,Info,Refund,prod,,,,,,,,,\n"+
		"f,2026-03-01T09:00:00Z,-500,jpy,Done,Refund,stage,,,,,,,,,\n"+
		"g,2026-03-01T09:00:00Z,0,jpy,Done,Refund,prod,,,,,,,,,\n"+
		",2026-03-01T09:00:00Z,-1,jpy,Done,Refund,prod,,,,,,,,,\n"+
		"h,yesterday,-1,jpy,Done,Refund,prod,,,,,,,,,\n"+
		"i,2026-03-01T09:00:00Z,-1,yen,Done,Refund,prod,,,,,,,,,\n")
	got := brief(rows)
	same(t, "rows", []string{
		"2 a 500 completed", "3 aside: the sign of its amount is not that of an effect (`sign: negative`)",
		`4 aside: Type "Chargeback" is no kind of effect here`, "5 refused: State: \"Gone\" is no status that is known here; add it to `statuses`",
		`6 aside: State "Info" is ignored by the settings`, "7 refused: Env: \"stage\" is no mode that is known here; add it to `modes`",
		"8 refused: Cents: the amount is 0; an effect has more", "9 refused: Id is empty, so nobody knows which effect it is",
		`10 refused: At: "yesterday" is not a time written as rfc3339`,
		"11 refused: Cur: " + `"yen" is not a currency; write its three-letter ISO 4217 code, such as EUR`,
	}[:9], got[:9])
	fee := int64(10)
	want := recon.Effect{ID: "a", Source: "acme", System: "acme", Kind: "refund", Status: recon.Completed, Money: recon.Money{Minor: 500, Currency: "JPY"},
		Parent: "p1", Target: "o1", Reference: "op_1", NaturalReference: "inv", Key: "k1", Fee: &fee, Account: "default", Mode: "live",
		CreatedAt: rows[0].Effect.CreatedAt, UpdatedAt: rows[0].Effect.UpdatedAt}
	same(t, "an effect", want, rows[0].Effect)
}

func TestJSONLinesAreAsStrictAsEverywhere(t *testing.T) {
	t.Parallel()
	line := func(id, more string) string {
		return `{"id":"` + id + `","source":"s","kind":"refund","status":"completed","created_at":"2026-03-01T00:00:00Z"` + more + "}\n"
	}
	s := files.Settings{Format: files.JSONLines, System: "stripe", Account: "acct_1"}
	rows, _ := readAll(t, "s", s, "\ufeff"+line("a", "")+"\n"+line("b", `,"amout":1`)+line("c", `,"account":"acct_2"`)+
		strings.Replace(line("d", ""), `"source":"s"`, `"source":"other"`, 1)+strings.TrimSuffix(line("e", ""), "\n"))
	same(t, "rows", []string{
		"1 a 0 completed", `3 refused: unknown field "amout"; remove it or put it into metadata`,
		"4 aside: account acct_2 in live mode is none of the source's", "5 aside: it is of source other", "6 e 0 completed",
	}, brief(rows))
	if e := rows[0].Effect; e.System != "stripe" || e.Account != "acct_1" || e.Mode != "live" {
		t.Errorf("where it belongs: %+v", e)
	}
	_, r := read(t, "s", s, line("a", "")+`{"id":"b","sour`)
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "line 2: the file ends inside it") {
		t.Errorf("a cut file: %v", err)
	}
	_, r = read(t, "s", s, line("a", "")+"{\"id\":\"\xff\"}\n")
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "line 2: it is not UTF-8") {
		t.Errorf("not UTF-8: %v", err)
	}
}

// However the bytes arrive, the rows are the same.
func TestRowsDoNotDependOnHowTheBytesArrive(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("id;Tag;Amount;Text\r")
	for i := range 4000 {
		fmt.Fprintf(&text, "t%d;\"01.03.2026\";%d,%02d;\"a \"\"b\"\"\r\n%s\"%s", i, i+1, i%100, strings.Repeat("x", i%90), []string{"\r", "\n", "\r\n"}[i%3])
	}
	f, err := files.FormatOf("giro", german)
	if err != nil {
		t.Fatal(err)
	}
	all := func(r *files.Reader) []string {
		var rows []files.Row
		for row := new(files.Row); r.Next(row); {
			rows = append(rows, *row)
		}
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
		return brief(rows)
	}
	want := all(files.Open(f, strings.NewReader(text.String()), "x"))
	if len(want) != 4000 {
		t.Fatalf("%d rows, want 4000", len(want))
	}
	same(t, "byte by byte", want, all(files.Open(f, iotest.OneByteReader(strings.NewReader(text.String())), "x")))
	same(t, "halves", want, all(files.Open(f, iotest.HalfReader(strings.NewReader(text.String())), "x")))
}

// A reader of outside bytes ends, counts every row once, and never gives an effect that
// the ledger would refuse.
func FuzzTable(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, encoding string) {
		s := german
		switch encoding {
		case "utf-8", "utf-16le", "utf-16be", "windows-1252":
			s.Encoding = encoding
		}
		format, err := files.FormatOf("giro", s)
		if err != nil {
			t.Fatal(err)
		}
		r := files.Open(format, strings.NewReader(text), "x")
		last := 0
		for row := new(files.Row); r.Next(row); {
			if row.Line <= last {
				t.Fatalf("line %d after line %d", row.Line, last)
			}
			last = row.Line
			if row.Outcome == files.Read && (row.Effect.ID == "" || row.Effect.Money.Minor <= 0 || row.Effect.CreatedAt.IsZero()) {
				t.Fatalf("line %d: %+v", row.Line, row.Effect)
			}
		}
	})
}

func FuzzStripe(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		r := files.Open(files.Stripe("s"), strings.NewReader(text), "x")
		for row := new(files.Row); r.Next(row); {
			if row.Outcome == files.Read && (row.Effect.ID == "" || !row.Effect.Status.Valid()) {
				t.Fatalf("line %d: %+v", row.Line, row.Effect)
			}
		}
	})
}
