package stripe_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // zones of the cases, also where the machine has none

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// furtherKinds are the kinds that the fake seeds as resources, by our name.
var furtherKinds = map[string]string{
	"checkout_session": "checkout.session", "credit_note": "credit_note", "customer": "customer", "dispute": "dispute",
	"invoice": "invoice", "payout": "payout", "subscription": "subscription", "transfer": "transfer",
}

// add seeds a resource of an account in live mode.
func (f fake) add(t *testing.T, account string, r stripetest.Resource) stripetest.Resource {
	t.Helper()
	r.Account, r.Mode = account, "live"
	made, err := f.AddResource(r)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// last is the window of the last hour, with what was made until now in it.
func (f fake) last() recon.Window {
	f.Add(time.Second)
	return recon.Window{From: f.Now().Add(-time.Hour), To: f.Now()}
}

func TestB23_TwoEffectsThatAreAlikeAreTwo(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	twin := stripetest.Refund{Charge: "ch_1", Amount: 1340}
	ids := []string{f.refund(t, twin, ""), f.refund(t, twin, "")}
	w := f.last()
	for size := 1; size <= 2; size++ {
		got := f.whole(t, open(t, f.settings(), stripe.Options{PageSize: size}), refundsLive, w)
		slices.Sort(got)
		slices.Sort(ids)
		if !slices.Equal(got, ids) {
			t.Errorf("pages of %d: listed %v, want both of %v", size, got, ids)
		}
	}
}

func TestB27_AListedObjectOfAnotherModeIsSetAsideAndThePageIsBlind(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]string{
		"a payout":                `{"id":"po_%d","object":"payout","amount":5,"currency":"eur","status":"paid","created":%d,"livemode":%t}`,
		"a customer":              `{"id":"cus_%d","object":"customer","created":%d,"livemode":%t}`,
		"a refund, by its charge": `{"id":"re_%d","object":"refund","amount":5,"currency":"eur","status":"succeeded","created":%d,"charge":{"id":"ch_1","livemode":%t}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := newClock().Now
			at := now().Add(-time.Minute).Unix()
			srv := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprintf(w, page, fmt.Sprintf(reply, 3, at, true)+","+fmt.Sprintf(reply, 2, at, false)+","+fmt.Sprintf(reply, 1, at, true))
			})
			kind := strings.Fields(name)[1]
			p := turn(t, open(t, srv.one(), stripe.Options{}), sources.List{Kind: strings.TrimSuffix(kind, ","), Account: "default", Mode: "live"},
				recon.Window{From: now().Add(-time.Hour), To: now()}, "", now)
			if p.Look.Outcome != recon.Blind || p.Look.Fault != string(sources.WrongAccount) || !strings.Contains(p.Look.Detail, "1 objects") {
				t.Errorf("look is %s %q: %s; want blind wrong_account with the count", p.Look.Outcome, p.Look.Fault, p.Look.Detail)
			}
			if len(p.Effects) != 2 {
				t.Errorf("%d effects, want the two of live mode", len(p.Effects))
			}
		})
	}
}

func TestB35_AWindowIsCutInTheZoneOfThePeriod(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	src := open(t, f.settings(), stripe.Options{})
	for _, tt := range []struct {
		zone    string
		month   time.Month
		at      string
		inMonth bool
	}{
		{"America/Mexico_City", time.May, "2026-06-01T03:30:00Z", true},
		{"Europe/Oslo", time.October, "2026-10-31T22:59:59Z", true},
		{"Europe/Oslo", time.October, "2026-10-31T23:00:00Z", false},
		{"Europe/Oslo", time.October, "2026-09-30T22:00:00Z", true},
		{"Europe/Oslo", time.October, "2026-09-30T21:59:59Z", false},
	} {
		zone, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, tt.at)
		if err != nil {
			t.Fatal(err)
		}
		if d := at.Add(48 * time.Hour).Sub(f.Now()); d > 0 {
			f.Add(d)
		}
		id := f.refund(t, stripetest.Refund{Created: at}, "")
		w := recon.Window{From: time.Date(2026, tt.month, 1, 0, 0, 0, 0, zone), To: time.Date(2026, tt.month+1, 1, 0, 0, 0, 0, zone)}
		if end := w.To.Add(time.Hour).Sub(f.Now()); end > 0 {
			f.Add(end)
		}
		if got := slices.Contains(f.whole(t, src, refundsLive, w), id); got != tt.inMonth {
			t.Errorf("%s is in %s of %s: %t, want %t", tt.at, tt.month, tt.zone, got, tt.inMonth)
		}
	}
}

func TestB46_WhatIsPendingIsNeitherDoneNorFailed(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.Add(-6 * 24 * time.Hour)
	pending := f.refund(t, stripetest.Refund{ID: "re_T1", Status: "pending", PendingReason: "insufficient_funds"}, "op_1340")
	waits := f.refund(t, stripetest.Refund{ID: "re_T2", Status: "requires_action"}, "op_1341")
	ended := f.refund(t, stripetest.Refund{ID: "re_T3", Status: "canceled"}, "op_1342")
	payout := f.add(t, "acct_1", stripetest.Resource{Kind: "payout", Amount: 500, Status: "in_transit", Metadata: map[string]string{marker: "op_1343"}})
	from := f.Now().Add(-time.Hour)
	f.Add(6 * 24 * time.Hour)
	src := open(t, f.settings(), stripe.Options{})
	want := map[string]recon.EffectStatus{pending: recon.InFlight, waits: recon.InFlight, ended: recon.EffectFailed, payout.ID: recon.InFlight}
	seen := map[string]recon.EffectStatus{}
	for _, kind := range []string{"refund", "payout"} {
		p := turn(t, src, sources.List{Kind: kind, Account: "acct_1", Mode: "live"}, recon.Window{From: from, To: f.Now()}, "", f.Now)
		for _, e := range p.Effects {
			seen[e.ID] = e.Status
		}
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("after six days (-want +got):\n%s", diff)
	}
}

func TestB48_AListWithAFieldThatMovedIsBlindAndNotEmpty(t *testing.T) {
	t.Parallel()
	for name, object := range map[string]string{
		"the amount is an object":   strings.Replace(aRefund, `"amount":500`, `"amount":{"value":500}`, 1),
		"the amount is gone":        strings.Replace(aRefund, `"amount":500,`, ``, 1),
		"the amount is null":        strings.Replace(aRefund, `"amount":500`, `"amount":null`, 1),
		"the status is another one": strings.Replace(aRefund, "succeeded", "settled", 1),
		"the time is a text":        strings.Replace(aRefund, "1772442000", `"2026-03-02T09:00:00Z"`, 1),
	} {
		srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintf(w, page, object) })
		now := newClock().Now
		p := turn(t, open(t, srv.one(), stripe.Options{}), sources.List{Kind: "refund", Account: "default", Mode: "live"},
			recon.Window{From: now().Add(-24 * time.Hour), To: now()}, "", now)
		if p.Look.Outcome != recon.Blind || p.Look.Fault != string(sources.Malformed) || len(p.Effects) != 0 {
			t.Errorf("%s: the page is %s %q with %d effects, want blind malformed", name, p.Look.Outcome, p.Look.Fault, len(p.Effects))
		}
	}
}

func TestB51_WhatIsOlderThanTheEventsIsListedAsAnObject(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	w := recon.Window{From: f.Now(), To: f.Now().Add(5 * 24 * time.Hour)}
	var want []string
	for range 5 {
		want = append(want, f.refund(t, stripetest.Refund{}, ""))
		f.Add(24 * time.Hour)
	}
	f.Add(40 * 24 * time.Hour)
	slices.Reverse(want)
	if diff := cmp.Diff(want, f.whole(t, open(t, f.settings(), stripe.Options{PageSize: 2}), refundsLive, w)); diff != "" {
		t.Errorf("listed after 40 days (-want +got):\n%s", diff)
	}
}

func TestB53_WhatTurnedAfterItWasDoneIsSeenByTheNextLook(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	from := f.Now().Add(-time.Second)
	refund := f.refund(t, stripetest.Refund{ID: "re_W1"}, "op_1400")
	payout := f.add(t, "acct_1", stripetest.Resource{Kind: "payout", Amount: 500, Status: "paid"})
	transfer := f.add(t, "acct_1", stripetest.Resource{Kind: "transfer", Amount: 500})
	f.Add(20 * 24 * time.Hour)
	for _, err := range []error{
		f.TurnRefund(stripetest.Refund{ID: refund, Account: "acct_1", Mode: "live"}, stripetest.Turn{Status: "failed", Reason: "expired_or_canceled_card"}),
		f.TurnResource(payout, stripetest.Turn{Status: "failed", Reason: "account_closed"}),
		f.ReverseTransfer(transfer, 500),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	src := open(t, f.settings(), stripe.Options{})
	for _, tt := range []struct {
		kind, id, reason string
		want             recon.EffectStatus
	}{
		{"refund", refund, "expired_or_canceled_card", recon.EffectFailed},
		{"payout", payout.ID, "account_closed", recon.EffectFailed},
		{"transfer", transfer.ID, "", recon.Reversed},
	} {
		q := question("op_1400", from)
		q.Kind, q.EffectID = tt.kind, tt.id
		byID := f.asks(t, src, q)
		p := turn(t, src, sources.List{Kind: tt.kind, Account: "acct_1", Mode: "live"}, recon.Window{From: from, To: f.Now()}, "", f.Now)
		for how, effects := range map[string][]recon.Effect{"by id": byID.Effects, "in the list": p.Effects} {
			if len(effects) != 1 || effects[0].Status != tt.want || effects[0].FailureReason != tt.reason {
				t.Errorf("%s %s: %+v, want %s because of %q", tt.kind, how, effects, tt.want, tt.reason)
			}
		}
	}
}

func TestAListedRefundTellsTheRunningTotalOfItsCharge(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	for _, c := range []stripetest.Charge{
		{ID: "ch_whole", Amount: 1000}, {ID: "ch_part", Amount: 1000, AmountCaptured: 700, AmountRefunded: 300, Status: "succeeded", Captured: true},
	} {
		c.Account, c.Mode, c.Currency = "acct_1", "live", "eur"
		if _, err := f.AddCharge(c); err != nil {
			t.Fatal(err)
		}
	}
	f.refund(t, stripetest.Refund{ID: "re_1", Charge: "ch_whole", Amount: 300}, "")
	f.refund(t, stripetest.Refund{ID: "re_2", Charge: "ch_whole", Amount: 200, Status: "pending"}, "")
	f.refund(t, stripetest.Refund{ID: "re_3", Charge: "ch_whole", Amount: 100, Status: "failed"}, "")
	f.refund(t, stripetest.Refund{ID: "re_4", Charge: "ch_part", Amount: 50}, "")
	p := turn(t, open(t, f.settings(), stripe.Options{}), refundsLive, f.last(), "", f.Now)
	for _, e := range p.Effects {
		switch {
		case e.Parent == "ch_whole" && (e.ParentTotal == nil || *e.ParentTotal != 500):
			t.Errorf("%s: parent total %v, want the 500 that neither failed nor were canceled", e.ID, e.ParentTotal)
		case e.Parent == "ch_part" && e.ParentTotal != nil:
			t.Errorf("%s: parent total %d; what was released counts in it, so it is not known", e.ID, *e.ParentTotal)
		}
	}
	if len(p.Effects) != 4 {
		t.Errorf("%d refunds, want 4", len(p.Effects))
	}
}

func TestB60_TheReleaseOfAPartialCaptureIsToldFromARefundOfTheSameAmount(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(o *stripetest.Options) { o.ReleaseRefunds = true })
	i, err := f.AddPaymentIntent(stripetest.PaymentIntent{Account: "acct_1", Mode: "live", Amount: 2000, AmountReceived: 1500,
		Currency: "eur", Metadata: map[string]string{marker: "op-1"}})
	if err != nil {
		t.Fatal(err)
	}
	byHand := f.refund(t, stripetest.Refund{Charge: i.LatestCharge, Amount: 500}, "")
	p := turn(t, open(t, f.settings(), stripe.Options{}), refundsLive, f.last(), "", f.Now)
	if len(p.Effects) != 2 {
		t.Fatalf("%d refunds, want the release and the one by hand", len(p.Effects))
	}
	for _, e := range p.Effects {
		want := i.LatestCharge
		if e.ID == byHand {
			want = "" // somebody is to explain it
		}
		if e.CausedBy != want || e.Parent != i.LatestCharge || e.Money.Minor != 500 {
			t.Errorf("%s of %s is caused by %q, want %q", e.ID, e.Money, e.CausedBy, want)
		}
	}
}

func TestAKeyThatMayNotReadChargesStillListsRefunds(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.Script(stripetest.Fault{Kind: stripetest.Forbidden, Times: stripetest.Always,
		Match: func(c stripetest.Call) bool { return c.Query.Has("expand[0]") }})
	for range 3 {
		f.refund(t, stripetest.Refund{}, "")
	}
	w := f.last()
	src := open(t, f.settings(), stripe.Options{PageSize: 1})
	cursor := ""
	for i, calls := range []int{3, 1, 1} { // the account, the refusal and the page; then no refusal any more
		p := turn(t, src, refundsLive, w, cursor, f.Now)
		if p.Look.Outcome != recon.Found || p.Look.Calls != calls || p.Effects[0].ParentTotal != nil {
			t.Fatalf("page %d: %s after %d calls (%s); want found after %d, without a total", i+1, p.Look.Outcome, p.Look.Calls, p.Look.Detail, calls)
		}
		cursor = p.Next
	}
}

// A key that is being changed is refused once: what it may read is asked anew a day later, or
// the totals of charges would be unknown until the process ends.
func TestARefusalIsNotBelievedForEver(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.Script(stripetest.Fault{Kind: stripetest.Forbidden, Match: func(c stripetest.Call) bool { return c.Query.Has("expand[0]") }})
	f.refund(t, stripetest.Refund{}, "")
	src := open(t, f.settings(), stripe.Options{})
	w := f.last()
	asked := map[string]int{}
	for i, told := range []bool{false, false, true} {
		p := turn(t, src, refundsLive, w, "", f.Now)
		if got := p.Effects[0].ParentTotal != nil; got != told {
			t.Errorf("list %d: the charge's total is told: %v, want %v", i+1, got, told)
		}
		f.Add(12 * time.Hour)
	}
	for _, c := range f.Calls() {
		asked[c.Path]++
	}
	if asked["/v1/account"] != 2 { // a key that may not tell its account is asked again, too
		t.Errorf("asked %d times for the account, want twice in 24 hours", asked["/v1/account"])
	}
}

func TestADeletedCustomerIsNotThere(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	from := f.Now().Add(-time.Second)
	r := f.add(t, "acct_1", stripetest.Resource{Kind: "customer", Metadata: map[string]string{marker: "op-1"}})
	f.Add(time.Hour)
	if err := f.TurnResource(r, stripetest.Turn{Status: "deleted"}); err != nil {
		t.Fatal(err)
	}
	q := question("op-1", from)
	q.Kind, q.EffectID = "customer", r.ID
	ans := f.asks(t, open(t, f.settings(), stripe.Options{}), q)
	if l := ans.Looks[0]; l.Method != recon.ByID || l.Outcome != recon.Absent || len(ans.Effects) != 0 {
		t.Errorf("looks %+v with %d effects, want absent by its id", ans.Looks, len(ans.Effects))
	}
}

func TestAnEndedSubscriptionIsInTheList(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	r := f.add(t, "acct_1", stripetest.Resource{Kind: "subscription", Status: "active", Fields: map[string]any{"customer": "cus_1"}})
	if err := f.TurnResource(r, stripetest.Turn{Status: "canceled"}); err != nil {
		t.Fatal(err)
	}
	q := question("op-1", f.Now().Add(-time.Minute))
	q.Kind, q.Parent = "subscription", "cus_1"
	w := f.last()
	src := open(t, f.settings(), stripe.Options{})
	if got := f.asks(t, src, q); len(got.Effects) != 1 || got.Effects[0].Status != recon.Reversed {
		t.Errorf("under its customer: %+v, want one that was ended", got.Effects)
	}
	if got := f.whole(t, src, sources.List{Kind: "subscription", Account: "acct_1", Mode: "live"}, w); !slices.Equal(got, []string{r.ID}) {
		t.Errorf("listed %v, want %s", got, r.ID)
	}
}

func TestEveryKindOfAConnectedAccountIsAskedWithItsHeader(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	set := f.settings()
	set.Accounts = []stripe.AccountSettings{{Account: "acct_shop", Mode: "live", Connected: true}}
	src := open(t, set, stripe.Options{})
	for kind, object := range furtherKinds {
		mine := f.add(t, "acct_shop", stripetest.Resource{Kind: object, Amount: 500, Metadata: map[string]string{marker: "op-1"}})
		f.add(t, "acct_1", stripetest.Resource{Kind: object, Amount: 500, Metadata: map[string]string{marker: "op-1"}})
		q := question("op-1", f.Now().Add(-time.Minute))
		q.Kind, q.Account = kind, "acct_shop"
		inWindow := f.asks(t, src, q)
		q.EffectID = mine.ID
		byID := f.asks(t, src, q)
		w := f.last()
		p := turn(t, src, sources.List{Kind: kind, Account: "acct_shop", Mode: "live"}, w, "", f.Now)
		for how, effects := range map[string][]recon.Effect{"in the window": inWindow.Effects, "by id": byID.Effects, "in the list": p.Effects} {
			if len(effects) != 1 || effects[0].ID != mine.ID || effects[0].Account != "acct_shop" {
				t.Errorf("%s %s: %+v, want %s of acct_shop alone", kind, how, effects, mine.ID)
			}
		}
	}
	if err := src.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	for _, c := range f.Calls() {
		if c.Account != "acct_shop" {
			t.Errorf("%s went to %q", c.Endpoint, c.Account)
		}
	}
}

func TestAKeyOfOneKindIsProbedByThatKind(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.Script(stripetest.Fault{Kind: stripetest.Forbidden, Times: stripetest.Always,
		Match: func(c stripetest.Call) bool { return c.Path != "/v1/payouts" && c.Path != "/v1/account" }})
	src := open(t, f.settings(), stripe.Options{})
	if err := src.Probe(t.Context()); err != nil {
		t.Errorf("a key that reads payouts alone: %v", err)
	}
	f.ResetCalls()
	if err := src.Probe(t.Context()); err != nil || len(f.Calls()) != 1 {
		t.Errorf("the next probe makes %d requests, %v; what answers is known by now", len(f.Calls()), err)
	}
}
