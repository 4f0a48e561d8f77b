package stripetest_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

func TestSearchMatchesWholeValuesWithoutCase(t *testing.T) {
	t.Parallel()
	srv, _ := start(t, nil)
	for _, i := range []stripetest.PaymentIntent{
		{ID: "pi_1", Currency: "eur", Metadata: map[string]string{"operation_id": "op_ABC"}},
		{ID: "pi_2", Currency: "usd", Metadata: map[string]string{"operation_id": "op_abc", "clerk": `the "boss"`}, Customer: "cus_1"},
		{ID: "pi_3", Currency: "usd", Metadata: map[string]string{"operation_id": "op_abcd"}, Status: "processing"},
		{ID: "pi_4", Currency: "usd"},
	} {
		i.Account, i.Mode, i.Amount = "acct_1", "live", 100
		if _, err := srv.AddPaymentIntent(i); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		query string
		want  []string
	}{
		{`metadata["operation_id"]:"op_abc"`, []string{"pi_2", "pi_1"}},
		{`metadata['operation_id']:'OP_ABCD'`, []string{"pi_3"}},
		{`metadata["operation_id"]:"op_ab"`, []string{}},
		{`metadata["clerk"]:"the \"boss\""`, []string{"pi_2"}},
		{`-metadata["operation_id"]:null`, []string{"pi_3", "pi_2", "pi_1"}},
		{`metadata["operation_id"]:null`, []string{"pi_4"}},
		{`-metadata["operation_id"]:"op_abc"`, []string{"pi_4", "pi_3"}},
		{`metadata["operation_id"]:"op_abc" AND currency:"usd"`, []string{"pi_2"}},
		{`metadata["operation_id"]:"op_abc" currency:"eur"`, []string{"pi_1"}},
		{`status:"processing" OR customer:"cus_1"`, []string{"pi_3", "pi_2"}},
	}
	for _, test := range tests {
		t.Run(test.query, func(t *testing.T) {
			t.Parallel()
			got := []string{}
			p := &stripe.PaymentIntentSearchParams{}
			p.Query, p.Limit = test.query, stripe.Int64(1)
			for i, err := range client(t, srv, readKey).V1PaymentIntents.Search(context.Background(), p) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, i.ID)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("hits (-want +got):\n%s", diff)
			}
		})
	}
	for _, query := range []string{
		`metadata["a"]`, `metadata["a"]:b`, `colour:"red"`, `status:"a" AND status:"b" OR status:"c"`, `status:"a"status:"b"`,
		strings.Repeat(`status:"a" AND `, 10) + `status:"a"`, `status:"` + strings.Repeat("a", 5000) + `"`, `(status:"a")`,
	} {
		if got := get(t, srv, readKey, "/v1/payment_intents/search?query="+url.QueryEscape(query)); got.status != 400 {
			t.Errorf("query %.60s: %d, want 400", query, got.status)
		}
	}
	if got := get(t, srv, readKey, "/v1/refunds/search"); got.status != 404 {
		t.Errorf("search of refunds: %d, want 404", got.status)
	}
}
