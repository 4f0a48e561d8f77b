package files_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

// northwindSource is the shop's Stripe, with both of its accounts.
var northwindSource = files.Settings{
	System: "stripe-main", Format: files.StripeBalance,
	Accounts: []files.AccountSettings{{Account: "acct_1NWEU"}, {Account: "acct_1NWUS"}},
}

// readAll reads a file to its end and fails the test where that is a fault.
func readAll(t *testing.T, source recon.SourceName, s files.Settings, text string) ([]files.Row, *files.Reader) {
	t.Helper()
	rows, r := read(t, source, s, text)
	if err := r.Err(); err != nil {
		t.Fatalf("the file was refused: %v", err)
	}
	return rows, r
}

func read(t *testing.T, source recon.SourceName, s files.Settings, text string) ([]files.Row, *files.Reader) {
	t.Helper()
	f, err := files.FormatOf(source, s)
	if err != nil {
		t.Fatal(err)
	}
	r := files.Open(f, strings.NewReader(text), "export.csv")
	var rows []files.Row
	for row := new(files.Row); r.Next(row); {
		rows = append(rows, *row)
	}
	return rows, r
}

func TestTheBalanceReportOfNorthwindIsItsTruth(t *testing.T) {
	text, err := os.ReadFile("testdata/northwind/stripe_refunds_balance.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, r := readAll(t, "stripe-main", northwindSource, string(text))
	if got := r.Encoding(); got != "utf-8" {
		t.Errorf("encoding %q, want utf-8", got)
	}
	truth := struct {
		Stripe struct {
			Rows, Repeated int
			Gross          map[string]map[string]int64 `json:"gross_in_minor_units"`
		} `json:"stripe_csv"`
	}{}
	b, err := os.ReadFile("../../sweep/testdata/northwind/truth.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &truth); err != nil {
		t.Fatal(err)
	}
	gross := map[string]map[string]int64{}
	effects := map[string]recon.Effect{}
	repeated := 0
	for _, row := range rows {
		if row.Outcome != files.Read {
			t.Fatalf("line %d: outcome %d (%s)", row.Line, row.Outcome, row.Reason)
		}
		e := row.Effect
		before, known := effects[e.ID]
		if known && before.Status == e.Status {
			repeated++
			continue
		}
		if known { // its failure: it began when its first row says
			e.CreatedAt = before.CreatedAt
		}
		effects[e.ID] = e
		add(gross, e)
	}
	if len(rows) != truth.Stripe.Rows || repeated != truth.Stripe.Repeated {
		t.Errorf("%d rows, %d repeated; the truth has %d and %d", len(rows), repeated, truth.Stripe.Rows, truth.Stripe.Repeated)
	}
	if diff := cmp.Diff(truth.Stripe.Gross, gross); diff != "" {
		t.Errorf("sums differ (-truth +read):\n%s", diff)
	}
	holdAgainstLines(t, effects)
}

func add(gross map[string]map[string]int64, e recon.Effect) {
	if gross[e.Money.Currency] == nil {
		gross[e.Money.Currency] = map[string]int64{}
	}
	if e.Status == recon.EffectFailed {
		gross[e.Money.Currency]["refund_failure"] += e.Money.Minor
	} else {
		gross[e.Money.Currency]["refund"] -= e.Money.Minor
	}
}

// holdAgainstLines holds the report against what the provider's JSON Lines say of the
// same refunds.
func holdAgainstLines(t *testing.T, effects map[string]recon.Effect) {
	t.Helper()
	b, err := os.ReadFile("../../sweep/testdata/northwind/effects.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	type facts struct {
		Status                     recon.EffectStatus
		Money                      recon.Money
		Parent, Reference, Account string
		Created                    string
	}
	of := func(e recon.Effect) facts {
		return facts{e.Status, e.Money, e.Parent, e.Reference, e.Account, e.CreatedAt.String()}
	}
	held := 0
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		want, err := recon.ParseEffect(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		got, ok := effects[want.ID]
		if !ok {
			continue // another provider's, in flight, or of test mode
		}
		if want.Status == recon.Reversed {
			want.Status = recon.EffectFailed // a report cannot tell the two apart
		}
		if diff := cmp.Diff(of(want), of(got)); diff != "" {
			t.Errorf("%s differs (-lines +report):\n%s", want.ID, diff)
		}
		held++
	}
	if held < len(effects) {
		t.Errorf("held %d of %d refunds against the lines", held, len(effects))
	}
}
