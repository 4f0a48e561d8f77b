package stripetest_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// listed gives the types of the events that a list shows, newest first.
func listed(t *testing.T, srv *stripetest.Server, p *stripe.EventListParams) []string {
	t.Helper()
	types := []string{}
	for e, err := range client(t, srv, readKey).V1Events.List(context.Background(), p) {
		if err != nil {
			t.Fatal(err)
		}
		types = append(types, string(e.Type))
	}
	return types
}

func TestEventsAreListedByTypeForThirtyDays(t *testing.T) {
	t.Parallel()
	srv, c := start(t, func(o *stripetest.Options) {
		o.Life = func(stripetest.Refund) stripetest.Life { return stripetest.FailsLate(48*time.Hour, "declined") }
	})
	charged(t, srv, "ch_A", 5000)
	c.Add(time.Hour)
	if _, err := refund(client(t, srv, fullKey), "k-1", "ch_A", 100); err != nil {
		t.Fatal(err)
	}
	c.Add(72 * time.Hour)
	made := srv.Refunds()[0].Created
	tests := []struct {
		name string
		p    *stripe.EventListParams
		want []string
	}{
		{"all", &stripe.EventListParams{}, []string{"refund.failed", "charge.refund.updated", "refund.updated", "charge.refunded", "refund.created", "charge.succeeded"}},
		{"by one type", &stripe.EventListParams{Type: stripe.String("refund.created")}, []string{"refund.created"}},
		{"by a wildcard", &stripe.EventListParams{Type: stripe.String("charge.*")}, []string{"charge.refund.updated", "charge.refunded", "charge.succeeded"}},
		{"by some types", &stripe.EventListParams{Types: stripe.StringSlice([]string{"refund.failed", "charge.refunded"})}, []string{"refund.failed", "charge.refunded"}},
		{"by time", &stripe.EventListParams{CreatedRange: &stripe.RangeQueryParams{GreaterThan: made.Unix()}}, []string{"refund.failed", "charge.refund.updated", "refund.updated"}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, listed(t, srv, test.p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	first := srv.Events()[0]
	c.Add(30*24*time.Hour - 73*time.Hour)
	if got := listed(t, srv, tests[0].p); len(got) != 6 {
		t.Errorf("30 days after the first event: %v, want all 6", got)
	}
	c.Add(time.Second)
	if got := listed(t, srv, tests[0].p); len(got) != 5 {
		t.Errorf("a second later: %v, want 5", got)
	}
	if got := get(t, srv, readKey, "/v1/events/"+first.ID); got.status != 404 {
		t.Errorf("an old event by id: %d, want 404", got.status)
	}
	if n := len(srv.Events()); n != 6 {
		t.Errorf("truth has %d events, want 6", n)
	}
}

func TestAnEventNamesTheRequestThatCausedIt(t *testing.T) {
	t.Parallel()
	srv, c := start(t, func(o *stripetest.Options) {
		o.Life = func(stripetest.Refund) stripetest.Life { return stripetest.FailsLate(48*time.Hour, "declined") }
	})
	charged(t, srv, "ch_A", 5000)
	made, err := refund(client(t, srv, fullKey), "k-1", "ch_A", 100)
	if err != nil {
		t.Fatal(err)
	}
	c.Add(72 * time.Hour)
	asked := stripe.EventRequest{ID: made.LastResponse.RequestID, IdempotencyKey: "k-1"}
	want := map[string]stripe.EventRequest{"charge.succeeded": {}, "refund.created": asked, "charge.refunded": asked, "refund.updated": {}, "charge.refund.updated": {}, "refund.failed": {}}
	got := map[string]stripe.EventRequest{}
	for e, err := range client(t, srv, readKey).V1Events.List(context.Background(), &stripe.EventListParams{}) {
		if err != nil {
			t.Fatal(err)
		}
		got[string(e.Type)] = *e.Request
		if e.Type == "refund.failed" && (e.Created != made.Created+48*3600 || e.GetObjectValue("failure_reason") != "declined") {
			t.Errorf("event = %+v", e)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests by type (-want +got):\n%s", diff)
	}
}
