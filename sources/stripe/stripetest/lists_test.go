package stripetest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v82"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// seedRefunds makes n refunds a minute apart, alternating between two charges, and
// gives their ids, newest first.
func seedRefunds(t *testing.T, srv *stripetest.Server, c *clock, n int) []string {
	t.Helper()
	var ids []string
	for i := range n {
		r, err := srv.AddRefund(stripetest.Refund{ID: fmt.Sprintf("re_%02d", i), Account: "acct_1", Mode: "live",
			Charge: "ch_" + string(rune('A'+i%2)), PaymentIntent: "pi_" + string(rune('A'+i%2)), Amount: 100,
			Created: c.Now().Add(time.Duration(i-n) * time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	slices.Reverse(ids)
	return ids
}

// page is a list as it came.
type page struct {
	Object  string
	URL     string
	HasMore bool `json:"has_more"`
	Data    []struct{ ID string }
}

func (p page) ids() []string {
	ids := []string{}
	for _, d := range p.Data {
		ids = append(ids, d.ID)
	}
	return ids
}

func getPage(t *testing.T, srv *stripetest.Server, path string) page {
	t.Helper()
	got := get(t, srv, readKey, path)
	var p page
	if err := json.Unmarshal(got.body, &p); err != nil || got.status != 200 {
		t.Fatalf("%s: %d %s %v", path, got.status, got.body, err)
	}
	return p
}

func TestAListIsPagedNewestFirstInBothDirections(t *testing.T) {
	t.Parallel()
	srv, c := start(t, nil)
	seedRefunds(t, srv, c, 12)
	base := c.Now().Unix() // re_11 is 60 s older, re_00 720 s
	tests := []struct {
		name, query string
		want        []string
		more        bool
	}{
		{"ten by default", "", []string{"re_11", "re_10", "re_09", "re_08", "re_07", "re_06", "re_05", "re_04", "re_03", "re_02"}, true},
		{"a limit", "?limit=2", []string{"re_11", "re_10"}, true},
		{"after one", "?limit=3&starting_after=re_03", []string{"re_02", "re_01", "re_00"}, false},
		{"after the last", "?starting_after=re_00", []string{}, false},
		{"before one", "?limit=2&ending_before=re_08", []string{"re_10", "re_09"}, true},
		{"before the second", "?limit=2&ending_before=re_10", []string{"re_11"}, false},
		{"by charge", "?limit=2&charge=ch_A", []string{"re_10", "re_08"}, true},
		{"by charge after one of another charge", "?limit=9&charge=ch_A&starting_after=re_03", []string{"re_02", "re_00"}, false},
		{"by intent", "?limit=1&payment_intent=pi_B", []string{"re_11"}, true},
		{"by charge and another's intent", "?charge=ch_A&payment_intent=pi_B", []string{}, false},
		{"by an unknown charge", "?charge=ch_none", []string{}, false},
		{"from an instant", fmt.Sprintf("?created[gte]=%d", base-120), []string{"re_11", "re_10"}, false},
		{"after an instant", fmt.Sprintf("?created[gt]=%d", base-120), []string{"re_11"}, false},
		{"up to an instant", fmt.Sprintf("?created[lte]=%d", base-660), []string{"re_01", "re_00"}, false},
		{"before an instant", fmt.Sprintf("?created[lt]=%d", base-660), []string{"re_00"}, false},
		{"at an instant", fmt.Sprintf("?created=%d", base-660), []string{"re_01"}, false},
		{"in a window, by charge, paged", fmt.Sprintf("?limit=1&charge=ch_A&starting_after=re_10&created[gte]=%d&created[lt]=%d", base-360, base), []string{"re_08"}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := getPage(t, srv, "/v1/refunds"+test.query)
			if diff := cmp.Diff(test.want, got.ids()); diff != "" || got.HasMore != test.more {
				t.Errorf("has_more %v, want %v; ids (-want +got):\n%s", got.HasMore, test.more, diff)
			}
			if got.Object != "list" || got.URL != "/v1/refunds" {
				t.Errorf("list is %q of %q", got.Object, got.URL)
			}
		})
	}
}

func TestAListRefusesWhatItCannotRead(t *testing.T) {
	t.Parallel()
	srv, c := start(t, nil)
	seedRefunds(t, srv, c, 2)
	tests := []struct{ path, param, code string }{
		{"/v1/refunds?limit=0", "limit", "parameter_invalid_integer"},
		{"/v1/refunds?limit=101", "limit", "parameter_invalid_integer"},
		{"/v1/refunds?limit=ten", "limit", "parameter_invalid_integer"},
		{"/v1/refunds?customer=cus_1", "customer", "parameter_unknown"},
		{"/v1/refunds?metadata[operation_id]=op_1", "metadata[operation_id]", "parameter_unknown"},
		{"/v1/refunds?created[after]=5", "created[after]", "parameter_unknown"},
		{"/v1/refunds?created[gte]=yesterday", "created[gte]", "parameter_invalid_integer"},
		{"/v1/refunds?starting_after=re_none", "starting_after", "resource_missing"},
		{"/v1/refunds?ending_before=re_none", "ending_before", "resource_missing"},
		{"/v1/refunds?starting_after=re_00&ending_before=re_01", "starting_after", ""},
		{"/v1/refunds?expand[]=charge", "expand", ""},
		{"/v1/refunds?expand[]=data.colour", "expand", ""},
		{"/v1/refunds/re_00?limit=3", "limit", "parameter_unknown"},
		{"/v1/events?type=refund.created&types[0]=refund.failed", "types", ""},
		{"/v1/payment_intents/search", "query", "parameter_missing"},
		{"/v1/payment_intents/search?query=metadata", "query", ""},
		{"/v1/charges/search?query=status:%22a%22&page=nowhere", "page", ""},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			t.Parallel()
			got := get(t, srv, readKey, test.path)
			if e := got.errorOf(t); got.status != 400 || e.Param != test.param || e.Code != test.code || e.Type != "invalid_request_error" {
				t.Errorf("told %d %+v, want 400, param %q, code %q", got.status, e, test.param, test.code)
			}
		})
	}
}

func TestAPageCapCutsEveryPageAndLosesNothing(t *testing.T) {
	t.Parallel()
	srv, c := start(t, func(o *stripetest.Options) { o.PageCap = 2 })
	want := seedRefunds(t, srv, c, 9)
	var got []string
	p := &stripe.RefundListParams{Charge: stripe.String("ch_A")}
	p.Limit = stripe.Int64(100)
	p.CreatedRange = &stripe.RangeQueryParams{GreaterThanOrEqual: c.Now().Add(-time.Hour).Unix()}
	p.AddExpand("data.charge")
	for r, err := range client(t, srv, readKey).V1Refunds.List(context.Background(), p) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Charge.AmountRefunded != 500 {
			t.Errorf("charge of %s = %+v", r.ID, r.Charge)
		}
		got = append(got, r.ID)
	}
	want = slices.DeleteFunc(want, func(id string) bool { return id[len(id)-1]%2 == 1 })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("refunds (-want +got):\n%s", diff)
	}
	for i, call := range srv.Calls() {
		if call.Page != i+1 || call.Query.Get("charge") != "ch_A" || call.Query.Get("created[gte]") == "" {
			t.Errorf("call %d is page %d with %v", i+1, call.Page, call.Query)
		}
	}
	if n := srv.Counts()["GET /v1/refunds"]; n != 3 {
		t.Errorf("%d calls, want 3", n)
	}
}

func TestEachWayOfAskingHasItsOwnLag(t *testing.T) {
	t.Parallel()
	srv, c := start(t, func(o *stripetest.Options) {
		o.Lag = stripetest.Lag{List: 10 * time.Second, Retrieve: 20 * time.Second, Search: 30 * time.Second, Events: 40 * time.Second}
	})
	if _, err := srv.AddPaymentIntent(stripetest.PaymentIntent{ID: "pi_A", Account: "acct_1", Mode: "live", Amount: 100,
		Metadata: map[string]string{"operation_id": "op_1"}}); err != nil {
		t.Fatal(err)
	}
	visible := func() [4]bool {
		return [4]bool{
			len(getPage(t, srv, "/v1/payment_intents").Data) == 1,
			get(t, srv, readKey, "/v1/payment_intents/pi_A").status == 200,
			len(getPage(t, srv, "/v1/payment_intents/search?query=metadata%5B%22operation_id%22%5D:%22op_1%22").Data) == 1,
			len(getPage(t, srv, "/v1/events").Data) == 3,
		}
	}
	for i, want := range [][4]bool{{}, {true}, {true, true}, {true, true, true}, {true, true, true, true}} {
		if got := visible(); got != want {
			t.Errorf("after %d s: list, retrieve, search, events = %v, want %v", 10*i, got, want)
		}
		c.Add(10*time.Second - time.Nanosecond)
		if got := visible(); got != want {
			t.Errorf("just before %d s: list, retrieve, search, events = %v, want %v", 10*(i+1), got, want)
		}
		c.Add(time.Nanosecond)
	}
	if n := len(srv.PaymentIntents()); n != 1 {
		t.Errorf("truth has %d intents, want 1", n)
	}
}

// Whatever the order of creation, the size of the pages and the filters, the pages of
// a list hold each fitting object once, newest first, in both directions.
func TestPagesHoldEveryObjectOnce(t *testing.T) {
	t.Parallel()
	srv, c := start(t, nil)
	accounts := 0
	rapid.Check(t, func(t *rapid.T) {
		accounts++
		type made struct {
			id     string
			charge string
			age    int64
			seq    int
		}
		var all []made
		run := fmt.Sprintf("%04d", accounts)
		for i := range rapid.IntRange(0, 12).Draw(t, "refunds") {
			m := made{id: fmt.Sprintf("re_%s_%02d", run, i), charge: "ch_" + run + rapid.SampledFrom([]string{"A", "B"}).Draw(t, "charge"),
				age: rapid.Int64Range(0, 9).Draw(t, "age"), seq: i}
			if _, err := srv.AddRefund(stripetest.Refund{ID: m.id, Account: "acct_2", Mode: "live", Charge: m.charge, Amount: 1,
				Created: c.Now().Add(-time.Duration(m.age) * time.Second)}); err != nil {
				t.Fatal(err)
			}
			all = append(all, m)
		}
		charge := "ch_" + run + rapid.SampledFrom([]string{"A", "B"}).Draw(t, "filter")
		oldest := rapid.Int64Range(0, 9).Draw(t, "oldest")
		limit := rapid.Int64Range(1, 4).Draw(t, "limit")
		slices.SortFunc(all, func(a, b made) int {
			if a.age != b.age {
				return int(a.age - b.age)
			}
			return b.seq - a.seq
		})
		want := []string{}
		for _, m := range all {
			if m.charge == charge && m.age <= oldest {
				want = append(want, m.id)
			}
		}
		ask := func(cursor string) page {
			return decodePage(t, srv, fmt.Sprintf("/v1/refunds?limit=%d&charge=%s&created[gte]=%d%s", limit, charge, c.Now().Unix()-oldest, cursor))
		}
		forwards := []string{}
		for cursor, more := "", true; more; {
			p := ask(cursor)
			forwards = append(forwards, p.ids()...)
			if more = p.HasMore; more {
				cursor = "&starting_after=" + forwards[len(forwards)-1]
			}
		}
		if diff := cmp.Diff(want, forwards); diff != "" {
			t.Fatalf("forwards (-want +got):\n%s", diff)
		}
		if len(want) == 0 {
			return
		}
		backwards := want[len(want)-1:]
		for more := true; more; {
			p := ask("&ending_before=" + backwards[0])
			backwards = append(p.ids(), backwards...)
			more = p.HasMore
		}
		if diff := cmp.Diff(want, backwards); diff != "" {
			t.Fatalf("backwards (-want +got):\n%s", diff)
		}
	})
}

// decodePage is getPage for another account and a property test.
func decodePage(t *rapid.T, srv *stripetest.Server, path string) page {
	got := fetch("GET", srv.URL()+path, "", map[string][]string{"Authorization": {"Bearer " + otherKey}})
	var p page
	if err := json.Unmarshal(got.body, &p); err != nil || got.status != 200 {
		t.Fatalf("%s: %d %s %v", path, got.status, got.body, err)
	}
	return p
}
