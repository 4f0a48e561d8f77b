package stripetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// readEffects reads some lines of a real data set: what this test needs of them.
func readEffects(t *testing.T) []recon.Effect {
	t.Helper()
	file, err := os.ReadFile("testdata/northwind_effects.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var effects []recon.Effect
	for line := range bytes.Lines(file) {
		var l struct {
			ID, Kind, Currency, Parent, Reference, Key, Account, Mode string
			Status                                                    recon.EffectStatus
			Amount                                                    int64
			CreatedAt                                                 time.Time `json:"created_at"`
			Metadata                                                  json.RawMessage
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		effects = append(effects, recon.Effect{ID: l.ID, Kind: l.Kind, Status: l.Status, Parent: l.Parent, Reference: l.Reference,
			Key: l.Key, Account: l.Account, Mode: l.Mode, CreatedAt: l.CreatedAt, Metadata: l.Metadata,
			Money: recon.Money{Minor: l.Amount, Currency: l.Currency}})
	}
	return effects
}

func TestADataSetIsLoadedAndReadBackThroughTheRealClient(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 4, 1, 0, 15, 0, 0, time.UTC)
	keys := map[[2]string]string{{"acct_1NWEU", "live"}: "sk_live_eu_1", {"acct_1NWEU", "test"}: "sk_test_eu_1",
		{"acct_1NWUS", "live"}: "sk_live_us_1", {"acct_1NWUS", "test"}: "sk_test_us_1"}
	srv, _ := start(t, func(o *stripetest.Options) {
		o.Now, o.Accounts = func() time.Time { return now }, nil
		for place, key := range keys {
			o.Accounts = append(o.Accounts, stripetest.Account{ID: place[0], Mode: place[1], Key: key})
		}
	})
	effects := readEffects(t)
	loaded, err := srv.Load(effects, "operation_id")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]recon.Effect{}
	for _, e := range effects {
		if e.Kind == "refund" {
			want[e.ID] = e
		}
	}
	if loaded != len(want) || len(want) != 18 {
		t.Errorf("%d loaded, want %d", loaded, len(want))
	}
	for place, key := range keys {
		byKey := map[string]string{} // effect id by key, through events
		cl := client(t, srv, key)
		for e, err := range cl.V1Events.List(context.Background(), &stripe.EventListParams{Type: stripe.String("refund.created")}) {
			if err != nil {
				t.Fatal(err)
			}
			byKey[e.Request.IdempotencyKey] = e.GetObjectValue("id")
		}
		for r, err := range cl.V1Refunds.List(context.Background(), &stripe.RefundListParams{Expand: []*string{stripe.String("data.charge")}}) {
			if err != nil {
				t.Fatal(err)
			}
			e, known := want[r.ID]
			if !known || e.Account != place[0] || e.Mode != place[1] {
				t.Errorf("%v holds %s, which is %+v", place, r.ID, e)
				continue
			}
			checkLoaded(t, r, e)
			if e.Key != "" && byKey[e.Key] != e.ID && now.Sub(e.CreatedAt) < 30*24*time.Hour {
				t.Errorf("events give %q for the key of %s", byKey[e.Key], e.ID)
			}
			delete(want, r.ID)
		}
	}
	for id := range want {
		t.Errorf("%s was not listed", id)
	}
}

// checkLoaded holds a refund, as the client decoded it, against the effect it came from.
func checkLoaded(t *testing.T, r *stripe.Refund, e recon.Effect) {
	t.Helper()
	status := map[recon.EffectStatus]stripe.RefundStatus{recon.InFlight: "pending", recon.Completed: "succeeded",
		recon.EffectFailed: "failed", recon.Reversed: "failed"}[e.Status]
	if r.Amount != e.Money.Minor || string(r.Currency) != strings.ToLower(e.Money.Currency) || r.Charge.ID != e.Parent ||
		r.Created != e.CreatedAt.Unix() || r.Status != status || r.Metadata["operation_id"] != e.Reference {
		t.Errorf("refund %+v is not %+v", r, e)
	}
	if undone := r.FailureBalanceTransaction != nil; undone != (e.Status == recon.Reversed) {
		t.Errorf("%s (%s): money came back = %v", r.ID, e.Status, undone)
	}
	live := int64(0)
	if e.Status.Live() {
		live = e.Money.Minor
	}
	if r.Charge.AmountRefunded != live || r.Charge.Amount < e.Money.Minor {
		t.Errorf("%s (%s): charge = %d of %d refunded", r.ID, e.Status, r.Charge.AmountRefunded, r.Charge.Amount)
	}
	if len(e.Metadata) == 0 {
		return
	}
	var metadata map[string]string
	if err := json.Unmarshal(e.Metadata, &metadata); err != nil {
		t.Fatal(err)
	}
	metadata["operation_id"] = e.Reference
	if diff := cmp.Diff(metadata, r.Metadata); diff != "" {
		t.Errorf("%s: metadata (-want +got):\n%s", r.ID, diff)
	}
}

func TestASeedThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	srv, c := start(t, nil)
	charged(t, srv, "ch_A", 500)
	good := stripetest.Refund{ID: "re_A", Account: "acct_1", Mode: "live", Charge: "ch_A", Amount: 5}
	if _, err := srv.AddRefund(good); err != nil {
		t.Fatal(err)
	}
	change := func(f func(*stripetest.Refund)) stripetest.Refund {
		r := good
		r.ID = "re_B"
		f(&r)
		return r
	}
	for want, r := range map[string]stripetest.Refund{
		"has one with this id":    good,
		"not among":               change(func(r *stripetest.Refund) { r.Mode = "test"; r.Account = "acct_2" }),
		"name its charge":         change(func(r *stripetest.Refund) { r.Charge = "" }),
		"after the simulated now": change(func(r *stripetest.Refund) { r.Created = c.Now().Add(time.Second) }),
	} {
		if _, err := srv.AddRefund(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error = %v, want %q", err, want)
		}
	}
	for want, e := range map[string]recon.Effect{
		"metadata must be texts": {ID: "re_C", Kind: "refund", Status: recon.Completed, Metadata: json.RawMessage(`{"n":5}`)},
		"none that an effect":    {ID: "re_C", Kind: "refund", Status: "lost"},
		"has one with this id":   {ID: "re_A", Kind: "refund", Status: recon.Completed, Account: "acct_1", Mode: "live", Parent: "ch_A", Money: recon.Money{Minor: 6, Currency: "USD"}},
	} {
		if n, err := srv.Load([]recon.Effect{e}, "operation_id"); err == nil || n != 0 || !strings.Contains(err.Error(), want) {
			t.Errorf("%d loaded, error = %v, want %q", n, err, want)
		}
	}
	if err := srv.TurnRefund(stripetest.Refund{ID: "re_none", Account: "acct_1", Mode: "live"}, stripetest.Turn{Status: "failed"}); err == nil {
		t.Error("a refund that is not there was turned")
	}
}

func TestASeedIsNeitherHeldToTheRulesNorSharedWithItsMaker(t *testing.T) {
	t.Parallel()
	srv, c := start(t, nil)
	charged(t, srv, "ch_A", 500)
	metadata := map[string]string{"operation_id": "op_1"}
	for _, id := range []string{"re_1", "re_2"} {
		if _, err := srv.AddRefund(stripetest.Refund{ID: id, Account: "acct_1", Mode: "live", Charge: "ch_A", Amount: 400, Metadata: metadata,
			Created: c.Now().Add(-72 * time.Hour)}, stripetest.Turn{After: 24 * time.Hour, Status: "failed", Reason: "declined"}); err != nil {
			t.Fatal(err)
		}
	}
	metadata["operation_id"] = "op_2"
	srv.Refunds()[0].Metadata["operation_id"] = "op_3"
	for _, r := range srv.Refunds() {
		if r.Metadata["operation_id"] != "op_1" || r.Status != "failed" || r.FailureReason != "declined" {
			t.Errorf("refund = %+v", r)
		}
	}
	for _, e := range srv.Events() {
		if want := c.Now().Add(-48 * time.Hour); e.Type == "refund.failed" && !e.Created.Equal(want) {
			t.Errorf("failed at %s, want %s", e.Created, want)
		}
	}
	if _, err := srv.AddRefund(stripetest.Refund{ID: "re_3", Account: "acct_1", Mode: "live", Charge: "ch_A", Amount: 700}); err != nil {
		t.Fatal(err)
	}
	if got := srv.Charges()[0]; got.AmountRefunded != 700 || got.Amount != 500 {
		t.Errorf("charge = %+v, want more refunded than taken", got)
	}
}
