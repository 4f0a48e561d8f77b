package recon_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const fullOperation = `{"id":"op_1","source":"stripe-main","action":"refund.create","target":"order:1","parent":"ch_1",` +
	`"key":"k-1","amount":4200,"currency":"eur","state":"unknown","created_at":"2026-03-01T10:00:00.250+01:00",` +
	`"sent_at":"2026-03-01T09:00:01Z","closed_at":null,"effect_id":"re_1","account":"acct_1","mode":"test","reference":"inv-1",` +
	`"group":"g-1","run":"run_7","tool_call":"call_3","case":"c-1","step":0,"error_code":"timeout",` +
	`"marks":["key","reference"],"metadata":{"note":"a\\u0000b \ud83d\ude00"}}`

func TestParseOperationReadsEveryField(t *testing.T) {
	t.Parallel()
	step := int64(0)
	want := recon.Operation{
		ID: "op_1", Source: "stripe-main", Action: "refund.create", Target: "order:1", Parent: "ch_1", Key: "k-1",
		Money: recon.Money{Minor: 4200, Currency: "EUR"}, State: recon.Unknown,
		CreatedAt: time.Date(2026, 3, 1, 9, 0, 0, 250_000_000, time.UTC),
		SentAt:    time.Date(2026, 3, 1, 9, 0, 1, 0, time.UTC),
		EffectID:  "re_1", Account: "acct_1", Mode: "test", Reference: "inv-1", Group: "g-1", Run: "run_7",
		ToolCall: "call_3", Case: "c-1", Step: &step, ErrorCode: "timeout",
		Marks:    []recon.Mark{recon.MarkKey, recon.MarkReference},
		Metadata: json.RawMessage(`{"note":"a\\u0000b \ud83d\ude00"}`),
	}
	got, err := recon.ParseOperation([]byte(fullOperation))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("operation (-want +got):\n%s", diff)
	}
}

func TestParseEffectReadsEveryField(t *testing.T) {
	t.Parallel()
	line := `{"id":"re_1","source":"stripe-main","kind":"refund","status":"reversed","amount":4200,"currency":"JPY","parent":"ch_1",
		"target":"order:1","reference":" op_1 ","natural_reference":"inv","key":"k","created_at":"2026-03-01T09:00:00z",
		"updated_at":"2026-03-02T09:00:00Z","other_parents":["pi_1","in_1"],"account":"acct_1","fee":-3,"net":4203,
		"settlement_amount":26,"settlement_currency":"eur","created_by":"ana","failure_reason":"closed","caused_by":"re_0",
		"parent_total":0,"metadata":[1,-2.5e3,true,false,null,{"a":{}}]}`
	fee, net, total := int64(-3), int64(4203), int64(0)
	want := recon.Effect{
		ID: "re_1", Source: "stripe-main", System: "stripe-main", Kind: "refund", Status: recon.Reversed,
		Money: recon.Money{Minor: 4200, Currency: "JPY"}, Parent: "ch_1", OtherParents: []string{"pi_1", "in_1"},
		Target: "order:1", Reference: " op_1 ", NaturalReference: "inv", Key: "k",
		CreatedAt: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), UpdatedAt: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC),
		Account: "acct_1", Mode: "live", Fee: &fee, Net: &net, Settlement: recon.Money{Minor: 26, Currency: "EUR"},
		CreatedBy: "ana", FailureReason: "closed", CausedBy: "re_0", ParentTotal: &total,
		Metadata: json.RawMessage(`[1,-2.5e3,true,false,null,{"a":{}}]`),
	}
	got, err := recon.ParseEffect([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("effect (-want +got):\n%s", diff)
	}
}

func TestParsedOperationKeepsItsTextWhenTheBufferIsReused(t *testing.T) {
	t.Parallel()
	line := []byte(fullOperation)
	got, err := recon.ParseOperation(line)
	if err != nil {
		t.Fatal(err)
	}
	for i := range line {
		line[i] = 'x'
	}
	if got.ID != "op_1" || got.Key != "k-1" || string(got.Metadata[:7]) != `{"note"` {
		t.Errorf("operation changed with the buffer: %+v", got)
	}
}

func TestParseOperationRefuses(t *testing.T) {
	t.Parallel()
	with := func(old, new string) string { return strings.Replace(fullOperation, old, new, 1) }
	tests := []struct{ name, line, want string }{
		{"an unknown field by its name", with(`"run":`, `"rum":`), `unknown field "rum"`},
		{"a field in another case", with(`"amount"`, `"Amount"`), `unknown field "Amount"`},
		{"a field that stands twice", with(`"amount":4200`, `"amount":4200,"amount":1`), "field amount: it stands twice"},
		{"an amount with a fraction", with(`4200`, `42.50`), "field amount: 42.50 is not a whole number"},
		{"an amount whose fraction is zero", with(`4200`, `42.00`), "field amount: 42.00 is not a whole number"},
		{"an amount with an exponent", with(`4200`, `42e2`), "field amount: 42e2 is not a whole number"},
		{"an amount in quotes", with(`4200`, `"4200"`), "field amount: a whole number without quotes"},
		{"an amount of zero", with(`4200`, `0`), "field amount: 0 is not above 0"},
		{"a negative amount", with(`4200`, `-5`), "field amount: -5 is not above 0"},
		{"an amount beyond 64 bits", with(`4200`, `92233720368547758080`), "is too large"},
		{"an amount with a leading zero", with(`4200`, `042`), "field amount: a whole number"},
		{"an amount without a currency", with(`"currency":"eur",`, ``), "field amount: there is no currency"},
		{"a currency of four letters", with(`"eur"`, `"euro"`), `"euro" is not a currency`},
		{"a currency that is no letters", with(`"eur"`, `"€"`), "is not a currency"},
		{"an unknown state", with(`"unknown"`, `"done"`), `field state: "done" is none of pending, in_progress`},
		{"an unknown mark", with(`["key",`, `["keys",`), `field marks: "keys" is none of key, reference`},
		{"marks that are no list", with(`["key","reference"]`, `"key"`), "field marks: a list of texts"},
		{"a step that is no integer", with(`"step":0`, `"step":"a"`), "field step: a whole number"},
		{"a missing required field", with(`"target":"order:1",`, ``), "field target: it is missing"},
		{"a required field that is null", with(`"order:1"`, `null`), "field target: it is missing"},
		{"an empty text", with(`"ch_1"`, `""`), "field parent: it is empty"},
		{"a number where a text belongs", with(`"op_1"`, `17`), "field id: a text in quotes"},
		{"a text over the limit", with(`op_1`, strings.Repeat("é", 1025)), "field id: it has over 1024 characters"},
		{"an escaped NUL", with(`op_1`, `op\u0000`), "field id: it holds U+0000"},
		{"a plain NUL", with(`op_1`, "op\x00"), "field id: it holds U+0000"},
		{"a NUL in metadata", with(`a\\u0000b`, `a\u0000b`), "field metadata: it holds U+0000"},
		{"half a surrogate pair", with(`\ud83d\ude00`, `\ud83d`), "field metadata: it holds half"},
		{"bytes that are not UTF-8", with(`op_1`, "op\xff"), "not UTF-8"},
		{"an instant without offset", with(`09:00:01Z`, `09:00:01`), "field sent_at:"},
		{"a day instead of an instant", with(`2026-03-01T09:00:01Z`, `2026-03-01`), "field sent_at:"},
		{"an instant with a comma", with(`09:00:01Z`, `09:00:01,5Z`), "field sent_at:"},
		{"an instant with a one-digit hour", with(`T09:00:01Z`, `T9:00:01Z`), "field sent_at:"},
		{"an instant out of range", with(`2026-03-01T09:00:01Z`, `1970-01-01T00:00:00Z`), "outside the years 2000 to 2100"},
		{"metadata that is too large", with(`a\\u0000b`, strings.Repeat("x", 64<<10)), "field metadata: it has over 65536 bytes"},
		{"metadata that is too deep", with(`{"note"`, strings.Repeat("[", 200)+`{"note"`), "nested deeper"},
		{"two objects on one line", fullOperation + fullOperation, "one object a line"},
		{"a list", `[` + fullOperation + `]`, "not a JSON object"},
		{"an empty line", ``, "not a JSON object"},
		{"a broken line", fullOperation[:100], "not valid JSON"},
		{"a trailing comma", `{"id":"a",}`, "not valid JSON"},
		{"a control character in a text", with(`op_1`, "op\n1"), "not valid JSON"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := recon.ParseOperation([]byte(tt.line))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want it to say %q", err, tt.want)
			}
		})
	}
}

func TestParseEffectRefuses(t *testing.T) {
	t.Parallel()
	const line = `{"id":"re_1","source":"s","kind":"refund","status":"completed","amount":1,"currency":"EUR","created_at":"2026-03-01T09:00:00Z"}`
	tests := []struct{ name, old, new, want string }{
		{"an unknown status", `"completed"`, `"pending"`, `field status: "pending" is none of in_flight, completed, failed, reversed`},
		{"a field of the operation line", `"kind"`, `"state":"failed","kind"`, `unknown field "state"`},
		{"a fee with a fraction", `"amount"`, `"fee":1.5,"amount"`, "field fee: 1.5 is not a whole number"},
		{"a settlement without currency", `"amount"`, `"settlement_amount":3,"amount"`, "there is no settlement_currency"},
		{"an empty parent in a list", `"amount"`, `"other_parents":[""],"amount"`, "field other_parents: it is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := recon.ParseEffect([]byte(strings.Replace(line, tt.old, tt.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want it to say %q", err, tt.want)
			}
		})
	}
}

func TestParseAcceptsWhatIsHarmless(t *testing.T) {
	t.Parallel()
	const head = `{"id":"re_1","source":"s","kind":"refund","status":"completed","created_at":"2026-03-01T09:00:00.123456789-08:00"`
	for _, tail := range []string{
		`}`, "}\r", ` , "mode" : "live" } `, `,"currency":"EUR"}`, `,"fee":null,"metadata":null,"other_parents":[]}`,
		`,"target":"\u00e9\/\"\\\b\f\n\r\t"}`, `,"target":"` + strings.Repeat("é", 1024) + `"}`,
	} {
		e, err := recon.ParseEffect([]byte(head + tail))
		if err != nil {
			t.Errorf("%s: %v", tail, err)
			continue
		}
		if e.Mode != "live" || e.Account != "" || e.Fee != nil || e.Money.Minor != 0 {
			t.Errorf("%s: got %+v", tail, e)
		}
		if want := time.Date(2026, 3, 1, 17, 0, 0, 123456789, time.UTC); !e.CreatedAt.Equal(want) || e.CreatedAt.Location() != time.UTC {
			t.Errorf("created_at is %v, want %v", e.CreatedAt, want)
		}
	}
}

func TestAbsentAccountAndModeAreThoseOfASourceWithJustOne(t *testing.T) {
	t.Parallel()
	only := func(s recon.SourceName) recon.Account {
		if s == "bank" {
			return recon.Account{Account: "DE-1", Mode: "test"}
		}
		return recon.Account{}
	}
	for _, tt := range []struct{ source, given, account, mode string }{
		{"bank", ``, "DE-1", "test"},
		{"bank", `,"account":"DE-1"`, "DE-1", "test"},
		{"bank", `,"account":"DE-2"`, "DE-2", "live"},
		{"bank", `,"mode":"live"`, "DE-1", "live"},
		{"stripe", ``, "", "live"},
	} {
		line := `{"id":"x","source":"` + tt.source + `","kind":"transfer","status":"failed","created_at":"2026-03-01T09:00:00Z"` + tt.given + `}`
		e, err := recon.ParseEffectIn([]byte(line), only)
		if err != nil || e.Account != tt.account || e.Mode != tt.mode {
			t.Errorf("%s%s: account %q, mode %q, %v", tt.source, tt.given, e.Account, e.Mode, err)
		}
		o, err := recon.ParseOperationIn([]byte(strings.NewReplacer(`"kind":"transfer","status"`, `"action":"a","target":"t","state"`).Replace(line)), only)
		if err != nil || o.Account != tt.account || o.Mode != tt.mode {
			t.Errorf("%s%s: account %q, mode %q, %v", tt.source, tt.given, o.Account, o.Mode, err)
		}
	}
}

func TestErrorsDoNotSpillLongValues(t *testing.T) {
	t.Parallel()
	_, err := recon.ParseOperation([]byte(strings.Replace(fullOperation, `"unknown"`, `"`+strings.Repeat("s", 500)+`"`, 1)))
	if err == nil || len(err.Error()) > 200 {
		t.Errorf("error is %v, want a short one", err)
	}
}

func FuzzParseOperation(f *testing.F) {
	f.Add([]byte(fullOperation))
	f.Fuzz(func(t *testing.T, line []byte) {
		o, err := recon.ParseOperation(line)
		if err != nil {
			return
		}
		if !json.Valid(line) || !utf8.ValidString(string(o.ID)) || strings.ContainsRune(string(o.ID), 0) {
			t.Fatalf("accepted %q as %+v", line, o)
		}
		again, err := recon.MarshalOperation(o)
		if err != nil {
			t.Fatal(err)
		}
		back, err := recon.ParseOperation(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if diff := cmp.Diff(withoutSpace(t, o.Metadata), withoutSpace(t, back.Metadata)); diff != "" {
			t.Fatalf("metadata did not survive the way there and back: %s", diff)
		}
		o.Metadata, back.Metadata = nil, nil
		if len(o.Marks) == 0 {
			o.Marks = nil
		}
		if diff := cmp.Diff(o, back); diff != "" {
			t.Fatalf("the way there and back (-there +back):\n%s", diff)
		}
	})
}

func FuzzParseEffect(f *testing.F) {
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := recon.ParseEffect(line)
		if err != nil {
			return
		}
		if !json.Valid(line) {
			t.Fatalf("accepted %q, which encoding/json refuses", line)
		}
		again, err := recon.MarshalEffect(e)
		if err != nil {
			t.Fatal(err)
		}
		back, err := recon.ParseEffect(again)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		e.Metadata, back.Metadata = nil, nil
		if diff := cmp.Diff(e, back); diff != "" {
			t.Fatalf("the way there and back (-there +back):\n%s", diff)
		}
	})
}

// withoutSpace gives raw metadata as the writer leaves it.
func withoutSpace(t *testing.T, raw json.RawMessage) string {
	if raw == nil {
		return ""
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatalf("metadata %q: %v", raw, err)
	}
	return b.String()
}

func BenchmarkParseOperation(b *testing.B) {
	lines := corpus(b)
	b.Run("strict", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			if _, err := recon.ParseOperation(lines[i%len(lines)]); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			var v map[string]json.RawMessage
			if err := json.Unmarshal(lines[i%len(lines)], &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// corpus gives operation lines like those of a real ledger.
func corpus(b *testing.B) [][]byte {
	data, err := os.ReadFile("../sweep/testdata/northwind/operations.jsonl")
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	all := make([][]byte, len(lines))
	for i, l := range lines {
		all[i] = []byte(l)
	}
	return all
}
