package files_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
)

// Nobody can be asked: the answer is blind, never absent, and says what to do.
func TestAQuestionToFilesIsAnsweredBlind(t *testing.T) {
	t.Parallel()
	s, err := files.New("giro", german)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	batch := []sources.Question{
		{Operation: "op_1", Kind: "transfer", Account: "default", Mode: "live"}, {Operation: "op_2", Kind: "transfer", Account: "default", Mode: "live"},
		{Operation: "op_3", Kind: "transfer", Account: "default", Mode: "test"},
	}
	a, err := s.Ask(t.Context(), batch, func() time.Time { return at })
	if err != nil || len(a.Looks) != 2 || len(a.Effects) != 0 {
		t.Fatalf("got %+v, %v; want one look for each place", a, err)
	}
	for _, l := range a.Looks {
		if l.Outcome != recon.Blind || l.Method != recon.ByFile || l.Fault != string(sources.Unsupported) || !l.At.Equal(at) || l.Complete || l.ID == "" ||
			!strings.Contains(l.Detail, "reconciler import --source giro") {
			t.Errorf("look %+v", l)
		}
	}
	if err := s.Probe(t.Context()); err != nil {
		t.Errorf("probe: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Ask(ended, batch, time.Now); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ended: %v", err)
	}
}

// The silence of an export counts only where the settings say how late one can be.
func TestTheSheetOfFilesSaysWhatSilenceIsWorth(t *testing.T) {
	t.Parallel()
	s, err := files.New("giro", german)
	if err != nil {
		t.Fatal(err)
	}
	look, ok := s.Sheet().Ability(recon.ByFile)
	if !ok || look.Consistency != recon.Eventual || s.Sheet().KeyLifetime != 0 || s.Sheet().Webhooks {
		t.Errorf("sheet %+v", s.Sheet())
	}
	same(t, "kinds", []string{"transfer"}, s.Sheet().Kinds)
	late := german
	late.Lag = recon.Duration(48 * time.Hour)
	if s, err = files.New("giro", late); err != nil {
		t.Fatal(err)
	}
	if look, _ := s.Sheet().Ability(recon.ByFile); look.Consistency != recon.Strong || look.Lag != late.Lag {
		t.Errorf("ability %+v", look)
	}
	if _, err := files.New("giro", files.Settings{Format: "x"}); err == nil || !strings.Contains(err.Error(), "columns: is missing") {
		t.Errorf("bad settings: %v", err)
	}
}

// Both sources of Stripe's effects count the same minor units.
func TestExportsOfStripeCountAsItsAPIDoes(t *testing.T) {
	t.Parallel()
	api, err := stripe.New("s", stripe.Settings{APIKey: recon.NewSecret("rk_test_" + "x"), Mode: "test"}, stripe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{files.StripeBalance, files.StripePayments} {
		s, err := files.New("s", files.Settings{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		same(t, format, api.Sheet().Exponents, s.Sheet().Exponents)
	}
	rows, _ := readAll(t, "s", files.Settings{Format: files.StripeBalance},
		"created_utc,currency,gross,reporting_category,source_id,customer_facing_amount,customer_facing_currency,refund_metadata[operation_id]\n"+
			"2026-03-01 00:00:00,isk,-500,refund,re_1,,,op_1\n2026-03-01 00:00:00,jpy,-500,refund,re_2,,,\n2026-03-01 00:00:00,eur,-5.00,refund,re_3,-800,jpy,\n")
	same(t, "rows", []string{"2 re_1 50000 completed", "3 re_2 500 completed", "4 re_3 800 completed"}, brief(rows))
	if e := rows[2].Effect; e.Money.Currency != "JPY" || e.Settlement != (recon.Money{Minor: 500, Currency: "EUR"}) {
		t.Errorf("a refund in another currency than the balance: %+v", e)
	}
}

// What the categories of the report come to is what the API says of the same objects.
func TestCategoriesOfTheBalanceReport(t *testing.T) {
	t.Parallel()
	head := "created_utc,currency,gross,fee,net,reporting_category,source_id,charge_id,payment_intent_id\n"
	for category, want := range map[string]string{
		"charge 5": "charge completed", "charge_failure -5": "charge failed", "refund -5": "refund completed", "refund_failure 5": "refund failed",
		"payout -5": "payout in_flight", "payout_reversal 5": "payout failed", "dispute -5": "dispute in_flight", "dispute_reversal 5": "dispute completed",
		"transfer -5": "transfer completed", "topup 5": "topup completed", "topup_reversal -5": "topup failed",
		"fee -5": "aside", "other_adjustment 5": "aside", "transfer_reversal 5": "aside", " 5": "refused", "refund 5": "refused", "charge -5": "refused", "refund 0": "refused",
	} {
		name, gross, _ := strings.Cut(category, " ")
		rows, _ := readAll(t, "s", files.Settings{Format: files.StripeBalance}, head+"2026-03-01 00:00:00,eur,"+gross+",,,"+name+",x_1,ch_1,pi_1\n")
		got := map[files.Outcome]string{files.Read: rows[0].Effect.Kind + " " + string(rows[0].Effect.Status), files.SetAside: "aside", files.Refused: "refused"}[rows[0].Outcome]
		if got != want {
			t.Errorf("%s: got %s (%s), want %s", category, got, rows[0].Reason, want)
		}
	}
}

// created without _utc is in the zone that the report was made for, which nobody guesses.
func TestTheReportsOwnZoneIsDeclared(t *testing.T) {
	t.Parallel()
	text := "created,currency,gross,reporting_category,source_id\n2026-03-01 00:30:00,eur,-5.00,refund,re_1\n2026-03-29 02:30:00,eur,-5.00,refund,re_2\n"
	_, r := read(t, "s", files.Settings{Format: files.StripeBalance}, text)
	if err := r.Err(); err == nil || !strings.Contains(err.Error(), "write it as `zone`") {
		t.Errorf("no zone: %v", err)
	}
	rows, _ := readAll(t, "s", files.Settings{Format: files.StripeBalance, Zone: "Europe/Berlin"}, text)
	if at := rows[0].Effect.CreatedAt; !at.Equal(time.Date(2026, 2, 28, 23, 30, 0, 0, time.UTC)) {
		t.Errorf("created %v", at)
	}
	same(t, "the hour that clocks skipped", `3 refused: created: "2026-03-29 02:30:00" was never shown, the clocks went forward, in Europe/Berlin`, brief(rows)[1])
	comma := strings.ReplaceAll(strings.ReplaceAll(text, ",", ";"), "5.00", "5,00")
	rows, _ = readAll(t, "s", files.Settings{Format: files.StripeBalance, Zone: "UTC", Decimal: ","}, comma)
	same(t, "decimal comma", "2 re_1 500 completed", brief(rows)[0])
}

// Two rows of one effect at one stage that say different things refuse the file.
func TestTwinsThatContradictRefuseTheFile(t *testing.T) {
	t.Parallel()
	twins := files.NewTwins()
	row := func(line int, id string, status recon.EffectStatus, amount int64, reference string) (bool, error) {
		r := files.Row{Line: line, Effect: recon.Effect{ID: id, Account: "a", Mode: "live", Status: status, Reference: reference}}
		if amount > 0 {
			r.Effect.Money = recon.Money{Minor: amount, Currency: "EUR"}
		}
		return twins.Meet(&r)
	}
	for _, tt := range []struct {
		line      int
		id        string
		status    recon.EffectStatus
		amount    int64
		reference string
		again     bool
		want      string
	}{
		{2, "x", recon.Completed, 5, "", false, ""},
		{3, "y", recon.Completed, 7, "", false, ""},
		{4, "x", recon.Completed, 5, "op_1", true, ""},
		{5, "x", recon.EffectFailed, 5, "", true, ""},
		{6, "x", recon.Completed, 5, "", true, ""},
		{7, "x", recon.Completed, 6, "", true, "line 7: effect x stands on line 4 already, with the same status and another amount"},
		{8, "x", recon.Completed, 0, "op_2", true, "line 8: effect x stands on line 4 already, with the same status and another reference"},
		{9, "x", recon.EffectFailed, 9, "", true, "line 9: effect x stands on line 5 already"},
		{10, "x", recon.Reversed, 9, "", true, ""},
	} {
		again, err := row(tt.line, tt.id, tt.status, tt.amount, tt.reference)
		if again != tt.again || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("line %d: again %v, %v; want %v, %q", tt.line, again, err, tt.again, tt.want)
		}
	}
}
