package recon_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// cellsOf gives the cells of a row that says what fullOperation says, with some changed.
func cellsOf(t testing.TB, changed map[string]string) []string {
	t.Helper()
	says := map[string]string{
		"id": "op_1", "source": "stripe-main", "action": "refund.create", "target": "order:1", "parent": "ch_1", "key": "k-1",
		"amount": "4200", "currency": "eur", "state": "unknown", "created_at": "2026-03-01T10:00:00.250+01:00", "sent_at": "2026-03-01T09:00:01Z",
		"effect_id": "re_1", "account": "acct_1", "mode": "test", "reference": "inv-1", "group": "g-1", "run": "run_7", "tool_call": "call_3",
		"case": "c-1", "step": "0", "error_code": "timeout", "marks": "key reference",
	}
	names, required := recon.OperationFields()
	if len(names) != len(required) {
		t.Fatal(names, required)
	}
	for name, value := range changed {
		if !slices.Contains(names, name) {
			t.Fatalf("%s is no column", name)
		}
		says[name] = value
	}
	cells := make([]string, len(names))
	for i, name := range names {
		cells[i] = says[name]
	}
	return cells
}

func TestARowOfATableSaysWhatALineSays(t *testing.T) {
	t.Parallel()
	want, err := recon.ParseOperation([]byte(fullOperation))
	if err != nil {
		t.Fatal(err)
	}
	want.Metadata = nil // no cell holds it
	got := recon.Operation{Group: "of the row before", Attempts: 3}
	if err := recon.ParseOperationRow(cellsOf(t, nil), nil, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("row (-line +row):\n%s", diff)
	}
	only := func(recon.SourceName) recon.Account { return recon.Account{Account: "acct_9", Mode: "live"} }
	if err := recon.ParseOperationRow(cellsOf(t, map[string]string{"account": "", "mode": "", "amount": "", "step": ""}), only, &got); err != nil {
		t.Fatal(err)
	}
	if got.Account != "acct_9" || got.Mode != "live" || got.Money.Minor != 0 || got.Step != nil {
		t.Errorf("what empty cells leave out: %+v", got)
	}
}

func TestARowIsReadAsStrictlyAsALine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ field, cell, want string }{
		{"amount", "42.50", "field amount: 42.50 is not a whole number"},
		{"amount", "42,50", `field amount: "42,50" is not a whole number`},
		{"amount", "4 200", `field amount: "4 200" is not a whole number`},
		{"amount", "0", "field amount: 0 is not above 0"},
		{"amount", "-5", "field amount: -5 is not above 0"},
		{"amount", "042", "field amount: a whole number"},
		{"amount", "€42", "field amount: a whole number"},
		{"amount", "9223372036854775808", "is too large"},
		{"amount", "92233720368547758070", "is too large"},
		{"step", "one", "field step: a whole number"},
		{"currency", "", "field amount: there is no currency"},
		{"currency", "euro", `"euro" is not a currency`},
		{"state", "done", `field state: "done" is none of pending, in_progress`},
		{"marks", "key,reference", `field marks: "key,reference" is none of key, reference`},
		{"target", "", "field target: it is missing; every row needs it"},
		{"id", strings.Repeat("é", 1025), "field id: it has over 1024 characters"},
		{"id", "op\x00", "field id: it holds U+0000"},
		{"created_at", "01.03.2026", "field created_at:"},
		{"sent_at", "2026-03-01T09:00:01", "field sent_at:"},
	} {
		var o recon.Operation
		err := recon.ParseOperationRow(cellsOf(t, map[string]string{tt.field: tt.cell}), nil, &o)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: error is %v, want it to say %q", tt.field, tt.cell, err, tt.want)
		}
	}
	var o recon.Operation
	if err := recon.ParseOperationRow(cellsOf(t, map[string]string{"amount": "9223372036854775807", "currency": "ZzZ"}), nil, &o); err != nil || o.Money.Minor != 1<<63-1 || o.Money.Currency != "ZZZ" {
		t.Errorf("%v, %+v", err, o.Money)
	}
}

// FuzzParseOperationRow holds that what a row is taken to say is what a line can say too.
func FuzzParseOperationRow(f *testing.F) {
	const between = "\x1f" // stands between the cells, and in none
	names, _ := recon.OperationFields()
	for _, changed := range []map[string]string{
		nil, {"amount": "1.5"}, {"amount": "-0"}, {"step": "9223372036854775808"}, {"created_at": "2026-02-30T00:00:00Z"}, {"marks": "key\u00a0key"}, {"currency": "\u20ac"},
	} {
		f.Add(strings.Join(cellsOf(f, changed), between))
	}
	f.Fuzz(func(t *testing.T, text string) {
		cells := strings.Split(text, between)
		for i, c := range cells {
			cells[i] = strings.TrimSpace(c)
		}
		if len(cells) != len(names) {
			return
		}
		var o recon.Operation
		if recon.ParseOperationRow(cells, nil, &o) != nil {
			return
		}
		line, err := recon.MarshalOperation(o)
		if err != nil {
			t.Fatal(err)
		}
		back, err := recon.ParseOperation(line)
		if err != nil {
			t.Fatalf("the row %q is no line: %v", cells, err)
		}
		if len(o.Marks) == 0 {
			o.Marks = nil
		}
		if diff := cmp.Diff(o, back); diff != "" {
			t.Fatalf("the row %q says something else than its line (-row +line):\n%s", cells, diff)
		}
	})
}
