package stripe_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	stripego "github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// box takes deliveries over real HTTP with a source, by the simulated clock.
type box struct {
	*httptest.Server
	fake
	src     *stripe.Source
	mu      sync.Mutex // guards all below
	events  []recon.Event
	refused []sources.RefusalKind
}

// newBox opens a box for the events of acct_1, of its test mode and of its shops.
func newBox(t *testing.T, change func(*stripetest.Endpoint)) *box {
	t.Helper()
	b := &box{fake: newFake(t)}
	set := b.settings()
	set.Webhook.Secrets = []recon.Secret{recon.NewSecret(hookSecret)}
	b.src = open(t, set, stripe.Options{})
	b.Server = httptest.NewServer(http.HandlerFunc(b.take))
	t.Cleanup(b.Server.Close)
	for _, e := range []stripetest.Endpoint{
		{Account: "acct_1", Mode: "live"}, {Account: "acct_1", Mode: "test"}, {Account: "acct_1", Mode: "live", Connect: true},
	} {
		e.URL, e.Secrets = b.Server.URL, []string{hookSecret}
		if change != nil {
			change(&e)
		}
		if _, err := b.AddEndpoint(e); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *box) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	e, err := b.src.Verify(r.Header, body, b.Now())
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.refused = append(b.refused, why(err))
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.events = append(b.events, e)
}

// post lets the provider post what is due, and gives the events that were taken.
func (b *box) post(t *testing.T) []recon.Event {
	t.Helper()
	if _, err := b.Post(context.Background()); err != nil {
		t.Fatal(err)
	}
	return b.taken()
}

func (b *box) taken() []recon.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.events)
}

// shown gives in short what events of some types show, in order of arrival; no type
// means all.
func (b *box) shown(t *testing.T, types ...string) []string {
	t.Helper()
	var list []string
	for _, e := range b.taken() {
		if len(types) == 0 || slices.Contains(types, e.Type) {
			list = append(list, names(decode(t, b.src, e))...)
		}
	}
	return list
}

func (b *box) refund(t *testing.T, r stripetest.Refund, later ...stripetest.Turn) stripetest.Refund {
	t.Helper()
	r.Account, r.Mode, r.Charge, r.Currency = orDefault(r.Account, "acct_1"), orDefault(r.Mode, "live"), orDefault(r.Charge, "ch_1"), "eur"
	made, err := b.AddRefund(r, later...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func orDefault(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// read asks for one refund.
func (b *box) read(t *testing.T, r stripetest.Refund) recon.Effect {
	t.Helper()
	ans, err := b.src.Ask(context.Background(), []sources.Question{{Operation: "op_1", Kind: "refund", Account: r.Account, Mode: r.Mode, EffectID: r.ID, From: r.Created}}, b.Now)
	if err != nil || len(ans.Effects) != 1 {
		t.Fatalf("%d effects, %v", len(ans.Effects), err)
	}
	return ans.Effects[0]
}

func TestB03_TheEventOfOurOwnRefundComesBeforeItsAnswerAndIsTheSameEffect(t *testing.T) {
	t.Parallel()
	b := newBox(t, func(e *stripetest.Endpoint) { e.Trouble.Early = 1 })
	if _, err := b.AddCharge(stripetest.Charge{ID: "ch_C", Account: "acct_1", Mode: "live", Amount: 6400, Currency: "eur"}); err != nil {
		t.Fatal(err)
	}
	api := stripego.NewClient("sk_live_TESTONLY_1", stripego.WithBackends(stripego.NewBackendsWithConfig(&stripego.BackendConfig{
		URL: stripego.String(b.fake.URL()), MaxNetworkRetries: stripego.Int64(0), HTTPClient: &http.Client{Transport: bare}})))
	p := &stripego.RefundCreateParams{Charge: stripego.String("ch_C"), Amount: stripego.Int64(640)}
	p.SetIdempotencyKey("k-1010")
	p.AddMetadata(marker, "op_1010")
	r, err := api.V1Refunds.Create(context.Background(), p)
	if err != nil {
		t.Fatal(err)
	}
	// Nobody called Post: they came before the answer.
	early := b.taken()
	if len(early) != 2 || early[0].Type != "refund.created" || early[1].Type != "charge.refunded" {
		t.Fatalf("%d events before the answer", len(early))
	}
	shown := decode(t, b.src, early[0])
	read := b.read(t, stripetest.Refund{ID: r.ID, Account: "acct_1", Mode: "live", Created: b.Now().Add(-time.Hour)})
	read.Key = "k-1010" // reading does not tell it
	if diff := cmp.Diff([]recon.Effect{read}, shown.Effects); diff != "" || read.Reference != "op_1010" {
		t.Errorf("effect (-read +shown):\n%s", diff)
	}
	hints := decode(t, b.src, early[1]).Hints
	if want := []sources.Hint{{Kind: "refund", Account: "acct_1", Mode: "live", Parent: "ch_C", Key: "k-1010"}}; !cmp.Equal(want, hints) {
		t.Errorf("charge.refunded hints at %+v, want %+v", hints, want)
	}
}

func TestB06_EventsShowWhatWasThenInWhateverOrderTheyCome(t *testing.T) {
	t.Parallel()
	b := newBox(t, func(e *stripetest.Endpoint) { e.Trouble = stripetest.Trouble{Shuffled: true, Twice: 1} })
	b.refund(t, stripetest.Refund{ID: "re_E1", Status: "pending", Amount: 100}, stripetest.Turn{After: 0, Status: "succeeded"})
	events := b.post(t)
	status := map[string]map[string]bool{}
	created := map[time.Time]bool{}
	for _, e := range events {
		for _, effect := range decode(t, b.src, e).Effects {
			if effect.ID != "re_E1" {
				continue
			}
			if status[e.Type] == nil {
				status[e.Type] = map[string]bool{}
			}
			status[e.Type][string(effect.Status)] = true
			created[e.CreatedAt] = true
		}
	}
	want := map[string]map[string]bool{
		"refund.created": {"in_flight": true}, "refund.updated": {"completed": true}, "charge.refund.updated": {"completed": true},
	}
	if diff := cmp.Diff(want, status); diff != "" || len(created) != 1 {
		t.Errorf("status by type, all of one second: %v (-want +got):\n%s", created, diff)
	}
}

func TestB07_ThreeNamesOfALateFailureShowOneEffect(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	r := b.refund(t, stripetest.Refund{ID: "re_F1", Amount: 700, Metadata: map[string]string{marker: "op_1030"}},
		stripetest.Turn{After: 8 * 24 * time.Hour, Status: "failed", Reason: "expired_or_canceled_card"})
	b.Add(9 * 24 * time.Hour)
	b.post(t)
	read := b.read(t, r)
	if read.Status != recon.EffectFailed || read.FailureReason != "expired_or_canceled_card" {
		t.Fatalf("read %+v", read)
	}
	names := map[string]bool{}
	for _, e := range b.taken() {
		if slices.Contains([]string{"refund.updated", "charge.refund.updated", "refund.failed"}, e.Type) {
			names[e.Type] = true
			if diff := cmp.Diff(sources.Shown{Effects: []recon.Effect{read}}, decode(t, b.src, e), cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Raw" }, cmp.Ignore())); diff != "" {
				t.Errorf("%s shows (-read +shown):\n%s", e.Type, diff)
			}
		}
	}
	if len(names) != 3 {
		t.Errorf("the change came as %v, want three names", names)
	}
}

func TestB13_TheEventOfATimedOutOperationCarriesItsEffectAndReference(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.refund(t, stripetest.Refund{ID: "re_K1", Status: "pending", Amount: 100, Key: "k-70", Metadata: map[string]string{marker: "op_1070"}},
		stripetest.Turn{After: time.Minute, Status: "succeeded"})
	b.Add(time.Hour)
	b.post(t)
	if diff := cmp.Diff([]string{"refund re_K1 in_flight 100 k-70", "refund re_K1 completed 100"}, b.shown(t, "refund.created", "refund.updated")); diff != "" {
		t.Errorf("shows (-want +got):\n%s", diff)
	}
	for _, e := range decode(t, b.src, b.taken()[0]).Effects {
		if e.Reference != "op_1070" {
			t.Errorf("reference %q", e.Reference)
		}
	}
}

func TestB46_WhatWaitsAtTheProviderIsInFlightAndWhatIsCanceledCameToNothing(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.refund(t, stripetest.Refund{ID: "re_T1", Status: "pending", PendingReason: "insufficient_funds", Amount: 100})
	b.refund(t, stripetest.Refund{ID: "re_T2", Status: "requires_action", Amount: 100})
	b.refund(t, stripetest.Refund{ID: "re_T3", Status: "pending", Amount: 100}, stripetest.Turn{After: time.Minute, Status: "canceled"})
	b.Add(6 * 24 * time.Hour)
	b.post(t)
	want := []string{"refund re_T1 in_flight 100", "refund re_T2 in_flight 100", "refund re_T3 in_flight 100", "refund re_T3 failed 100"}
	if diff := cmp.Diff(want, b.shown(t, "refund.created", "refund.updated")); diff != "" {
		t.Errorf("shows (-want +got):\n%s", diff)
	}
}

func TestB10_OldVersionsShowTheRefundsThatNewOnesHintAt(t *testing.T) {
	t.Parallel()
	for version, want := range map[string][]string{
		"2020-08-27":       {"charge ch_1 completed 700", "refund re_1 completed 700"},
		"2022-11-15":       {"charge ch_1 completed 700", "? refund ch_1"},
		"2025-08-27.basil": {"charge ch_1 completed 700", "? refund ch_1"},
	} {
		b := newBox(t, func(e *stripetest.Endpoint) { e.APIVersion = version })
		b.refund(t, stripetest.Refund{ID: "re_1", Amount: 700})
		b.post(t)
		if diff := cmp.Diff(want, b.shown(t, "charge.refunded")); diff != "" {
			t.Errorf("%s shows (-want +got):\n%s", version, diff)
		}
	}
}

func TestB48_AnObjectThatLostAFieldIsReadInTheVersionThatWeKnow(t *testing.T) {
	t.Parallel()
	b := newBox(t, func(e *stripetest.Endpoint) {
		e.APIVersion = "2029-03-25.next"
		e.Reshape = func(_ string, object map[string]any) {
			object["origin"] = map[string]any{"charge": object["charge"]}
			delete(object, "charge")
		}
	})
	r := b.refund(t, stripetest.Refund{ID: "re_1", Amount: 700, Key: "k-1", Metadata: map[string]string{marker: "op_1"}})
	for _, e := range b.post(t) {
		if e.Type != "refund.created" {
			continue
		}
		hints := decode(t, b.src, e).Hints
		want := []sources.Hint{{Kind: "refund", Account: "acct_1", Mode: "live", ID: "re_1", Reference: "op_1", Key: "k-1"}}
		if diff := cmp.Diff(want, hints); diff != "" {
			t.Fatalf("hints (-want +got):\n%s", diff)
		}
	}
	if e := b.read(t, r); e.Parent != "ch_1" || e.Money.Minor != 700 {
		t.Errorf("read %+v", e)
	}
}

func TestB57_APaymentThatComesBackIsShownFailed(t *testing.T) {
	t.Parallel()
	back := with(t, wholeCharge, `{"status":"failed","failure_code":"debit_not_authorized","captured":true,"amount_refunded":0}`)
	shown := decode(t, receiver(t, nil), eventOf("charge.failed", back))
	if len(shown.Effects) != 1 || shown.Effects[0].Status != recon.EffectFailed || shown.Effects[0].FailureReason != "debit_not_authorized" {
		t.Errorf("shows %v: %+v", names(shown), shown.Effects)
	}
}

func TestB66_AFeeThatIsNotKnownYetIsNotZero(t *testing.T) {
	t.Parallel()
	src := receiver(t, nil)
	for name, patch := range map[string]string{"null": `{"balance_transaction":null}`, "an id": `{"balance_transaction":"txn_1"}`} {
		if e := decode(t, src, eventOf("refund.created", with(t, wholeRefund, patch))).Effects[0]; e.Fee != nil || e.Net != nil {
			t.Errorf("%s: fee %v, net %v, want not known", name, e.Fee, e.Net)
		}
	}
}

func TestB65_AFeeOfZeroIsKnownAndOneThatIsGivenBackKeepsItsSign(t *testing.T) {
	t.Parallel()
	src := receiver(t, nil)
	for _, tt := range []struct{ fee, net int64 }{{0, -700}, {-186, -514}, {25, -725}} {
		transaction := fmt.Sprintf(`{"balance_transaction":{"id":"txn_1","amount":-700,"fee":%d,"net":%d,"currency":"eur"}}`, tt.fee, tt.net)
		e := decode(t, src, eventOf("refund.created", with(t, wholeRefund, transaction))).Effects[0]
		if e.Fee == nil || *e.Fee != tt.fee || e.Net == nil || *e.Net != tt.net || e.Settlement != (recon.Money{Minor: 700, Currency: "EUR"}) {
			t.Errorf("fee %v, net %v, settled %v; want as the balance transaction says: %+v", e.Fee, e.Net, e.Settlement, tt)
		}
	}
}

func TestB83_TheSameIdInTwoAccountsIsTwoEffects(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	for _, at := range []recon.Account{{Account: "acct_1", Mode: "live"}, {Account: "acct_1", Mode: "test"}, {Account: "acct_shop", Mode: "live"}} {
		b.refund(t, stripetest.Refund{ID: "re_1", Account: at.Account, Mode: at.Mode, Amount: 100})
	}
	seen := map[recon.EffectIdentity]bool{}
	for _, e := range b.post(t) {
		for _, effect := range decode(t, b.src, e).Effects {
			if effect.ID == "re_1" {
				seen[effect.Identity()] = true
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("identities %v, want three", seen)
	}
}

func TestForgedDeliveriesAreRefusedAndTheRightOnesTaken(t *testing.T) {
	t.Parallel()
	b := newBox(t, func(e *stripetest.Endpoint) { e.Trouble = stripetest.Trouble{Forged: 1, Shuffled: true} })
	for i := range 10 {
		b.refund(t, stripetest.Refund{Charge: "ch_" + string(rune('a'+i)), Amount: 100})
	}
	b.post(t)
	if len(b.taken()) != 20 || len(b.refused) != 20 || slices.ContainsFunc(b.refused, func(k sources.RefusalKind) bool { return k != sources.BadSignature }) {
		t.Errorf("%d taken, refused %v", len(b.taken()), b.refused)
	}
	for _, d := range b.Deliveries() {
		if d.Forged == d.Taken() {
			t.Errorf("delivery %+v", d)
		}
	}
}

func TestASecretIsRolledWithoutLosingADelivery(t *testing.T) {
	t.Parallel()
	b := &box{fake: newFake(t)}
	set := b.settings()
	set.Webhook.Secrets = []recon.Secret{recon.NewSecret("whsec_new"), recon.NewSecret("whsec_old")}
	b.src = open(t, set, stripe.Options{})
	b.Server = httptest.NewServer(http.HandlerFunc(b.take))
	t.Cleanup(b.Server.Close)
	hook, err := b.AddEndpoint(stripetest.Endpoint{URL: b.Server.URL, Account: "acct_1", Mode: "live", Secrets: []string{"whsec_old"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, active := range [][]string{{"whsec_old"}, {"whsec_old", "whsec_new"}, {"whsec_new"}} {
		hook.SetSecrets(active...)
		b.refund(t, stripetest.Refund{Amount: 100})
		if got := len(b.post(t)); got != 2*(i+1) {
			t.Errorf("signed with %v: %d events in all, want %d", active, got, 2*(i+1))
		}
	}
	hook.SetSecrets("whsec_of_somebody_else")
	b.refund(t, stripetest.Refund{Amount: 100})
	if got := len(b.post(t)); got != 6 || len(b.refused) != 2 {
		t.Errorf("%d events, %d refused", got, len(b.refused))
	}
}
