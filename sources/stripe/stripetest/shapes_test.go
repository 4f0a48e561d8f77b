package stripetest_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// Every field of the provider's example objects is there, and what is there besides
// is known.
func TestObjectsHaveTheShapeOfTheProvidersExamples(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	i, err := srv.AddPaymentIntent(stripetest.PaymentIntent{Account: "acct_1", Mode: "live", Amount: 500})
	if err != nil {
		t.Fatal(err)
	}
	r, err := srv.AddRefund(stripetest.Refund{Account: "acct_1", Mode: "live", Charge: i.LatestCharge, Amount: 500},
		stripetest.Turn{Status: "failed", Reason: "declined"})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("fixtures.json")
	if err != nil {
		t.Fatal(err)
	}
	var examples map[string]map[string]any
	if err := json.Unmarshal(file, &examples); err != nil {
		t.Fatal(err)
	}
	delete(examples["charge"], "refunds") // only when expanded, since API version 2022-11-15
	tests := []struct {
		kind, path string
		more       []string
	}{
		{"refund", "/v1/refunds/" + r.ID, []string{"failure_balance_transaction", "failure_reason"}},
		{"charge", "/v1/charges/" + i.LatestCharge, nil},
		{"payment_intent", "/v1/payment_intents/" + i.ID, nil},
		{"event", "/v1/events/" + srv.Events()[0].ID, nil},
		{"balance_transaction", "/v1/balance_transactions/" + r.BalanceTransaction, nil},
		{"balance", "/v1/balance", nil},
		{"account", "/v1/account", nil},
	}
	for _, test := range tests {
		got := get(t, srv, fullKey, test.path)
		var object map[string]any
		if err := json.Unmarshal(got.body, &object); err != nil || got.status != 200 {
			t.Fatalf("%s: %d %s %v", test.path, got.status, got.body, err)
		}
		want := slices.Sorted(slices.Values(append(slices.Collect(maps.Keys(examples[test.kind])), test.more...)))
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(object))); diff != "" {
			t.Errorf("fields of %s (-want +got):\n%s", test.kind, diff)
		}
		if object["object"] != test.kind {
			t.Errorf("%s says that it is a %v", test.path, object["object"])
		}
	}
}
