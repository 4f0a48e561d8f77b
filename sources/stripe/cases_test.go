package stripe_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// refund seeds a refund of acct_1 live, with our reference where one is given.
func (f fake) refund(t *testing.T, r stripetest.Refund, reference string) string {
	t.Helper()
	if r.Account == "" {
		r.Account, r.Mode = "acct_1", "live"
	}
	r.Charge, r.Currency = orElse(r.Charge, "ch_1"), "eur"
	if r.Amount == 0 {
		r.Amount = 500
	}
	if reference != "" {
		r.Metadata = map[string]string{marker: reference}
	}
	made, err := f.AddRefund(r)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// question asks for a refund of acct_1 live that can exist since a time.
func question(op string, since time.Time) sources.Question {
	return sources.Question{Operation: recon.OperationID(op), Kind: "refund", Account: "acct_1", Mode: "live",
		Marks: []recon.Mark{recon.MarkReference}, From: since}
}

// asks asks the fake with the simulated clock.
func (f fake) asks(t *testing.T, src *stripe.Source, batch ...sources.Question) sources.Answer {
	t.Helper()
	ans, err := src.Ask(context.Background(), batch, f.Now)
	if err != nil {
		t.Fatal(err)
	}
	return ans
}

func ids(ans sources.Answer) []string {
	var list []string
	for _, e := range ans.Effects {
		list = append(list, e.ID)
	}
	return list
}

func TestB12_AnEffectThatAppearsLaterIsFoundByTheNextLook(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.SetLag(stripetest.Lag{List: 2 * time.Minute, Retrieve: 2 * time.Minute})
	src := open(t, f.settings(), stripe.Options{})
	sent := f.Now()
	id := f.refund(t, stripetest.Refund{}, "op_1060")
	q := question("op_1060", sent.Add(-recon.ClockSkew))
	f.Add(5 * time.Second)

	first := f.asks(t, src, q)
	if len(first.Effects) != 0 || first.Looks[0].Outcome != recon.Absent || !first.Looks[0].At.Equal(f.Now()) {
		t.Errorf("first look: %d effects, %+v; want absent as of now, which the lag keeps from counting", len(first.Effects), first.Looks[0])
	}
	f.Script(stripetest.Fault{Kind: stripetest.ServerError, Method: "GET"})
	if second := f.asks(t, src, q); second.Looks[0].Outcome != recon.Blind {
		t.Errorf("a look that meets a 500 is %s, want blind", second.Looks[0].Outcome)
	}
	f.Add(2 * time.Minute)
	third := f.asks(t, src, q)
	if !slices.Equal(ids(third), []string{id}) || third.Effects[0].Reference != "op_1060" {
		t.Errorf("third look found %v, want %s with our reference", ids(third), id)
	}
}

func TestB13_WithoutAnIdTheEffectIsFoundByOurReference(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	id := f.refund(t, stripetest.Refund{}, "op_1070")
	f.refund(t, stripetest.Refund{}, "op_other")
	ans := f.asks(t, open(t, f.settings(), stripe.Options{}), question("op_1070", f.Now().Add(-time.Hour)))
	i := slices.IndexFunc(ans.Effects, func(e recon.Effect) bool { return e.Reference == "op_1070" })
	if i < 0 || ans.Effects[i].ID != id {
		t.Errorf("found %+v, want %s with the reference", ans.Effects, id)
	}
}

func TestB18_SearchFindsFasterAndItsSilenceIsNeverTold(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	// The index lags for ever; the lists do not.
	f.SetLag(stripetest.Lag{Search: 1000 * time.Hour})
	src := open(t, f.settings(), stripe.Options{PageSize: 2})
	q := question("op_1120", f.Now().Add(-time.Second))
	q.Kind = "payment_intent"
	wanted, err := f.AddPaymentIntent(stripetest.PaymentIntent{Account: "acct_1", Mode: "live", Amount: 700, Metadata: map[string]string{marker: "op_1120"}})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		f.Add(time.Minute)
		if _, err := f.AddPaymentIntent(stripetest.PaymentIntent{Account: "acct_1", Mode: "live", Amount: 700}); err != nil {
			t.Fatal(err)
		}
	}
	ans := f.asks(t, src, q)
	if !slices.Contains(ids(ans), wanted.ID) {
		t.Fatalf("the list did not find what search does not see yet")
	}
	for _, l := range ans.Looks {
		if l.Method == recon.BySearch {
			t.Errorf("an empty search was told as a look: %+v", l)
		}
	}
	if n := f.Counts()["GET /v1/payment_intents/search"]; n != 1 {
		t.Fatalf("%d searches, want 1: the list is long, so the index is worth a try", n)
	}

	f.SetLag(stripetest.Lag{})
	f.ResetCalls()
	ans = f.asks(t, open(t, f.settings(), stripe.Options{PageSize: 2}), q)
	if !slices.Contains(ids(ans), wanted.ID) || f.Counts()["GET /v1/payment_intents"] > 2 {
		t.Errorf("with a fresh index: effects %v after %v; want it found without the whole list", ids(ans), f.Counts())
	}
	found := slices.ContainsFunc(ans.Looks, func(l recon.Look) bool {
		return l.Method == recon.BySearch && l.Reference == "op_1120" && l.Outcome == recon.Found
	})
	if !found {
		t.Errorf("no look tells that search found it: %+v", ans.Looks)
	}
	if a, _ := src.Sheet().Ability(recon.BySearch); a.Consistency != recon.Eventual {
		t.Errorf("the sheet calls search %s; its silence proves nothing", a.Consistency)
	}
}

func TestB18_AnAccountWithoutSearchIsListed(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.Script(stripetest.Fault{Kind: stripetest.BadRequest, Path: "/v1/charges/search", Times: stripetest.Always})
	q := question("op_1", f.Now().Add(-time.Second))
	q.Kind = "charge"
	for range 10 {
		if _, err := f.AddCharge(stripetest.Charge{Account: "acct_1", Mode: "live", Amount: 700}); err != nil {
			t.Fatal(err)
		}
		f.Add(time.Minute)
	}
	src := open(t, f.settings(), stripe.Options{PageSize: 1})
	for range 2 {
		ans := f.asks(t, src, q)
		if l := ans.Looks[0]; len(ans.Looks) != 1 || l.Outcome != recon.Found || !l.Complete {
			t.Errorf("looks %+v, want one complete list", ans.Looks)
		}
	}
	if n := f.Counts()["GET /v1/charges/search"]; n != 1 {
		t.Errorf("%d searches, want 1: a refusal is remembered", n)
	}
}

func TestB19_NothingOnTheEdgeOfAWindowIsLost(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	src := open(t, f.settings(), stripe.Options{PageSize: 1})
	// Three refunds in one second, at the very edge of what is asked.
	edge := f.Now()
	var made []string
	for i := range 3 {
		made = append(made, f.refund(t, stripetest.Refund{Created: edge.Add(time.Duration(i) * 100 * time.Millisecond).Truncate(time.Second)}, fmt.Sprint("op_", i)))
	}
	f.Add(time.Minute)
	for _, from := range []time.Duration{0, 700 * time.Millisecond, 1300 * time.Millisecond} {
		q := question("op_1", edge.Add(from)) // Stripe rounds created down
		if got := ids(f.asks(t, src, q)); len(got) != 3 {
			t.Errorf("from %s on: found %v, want %v: the window begins a little earlier than asked", from, got, made)
		}
	}

	// A list that stops early does not answer for the second of its last object.
	for i := range 30 {
		f.Add(time.Hour)
		f.refund(t, stripetest.Refund{}, fmt.Sprint("late_", i))
	}
	near := []sources.Question{}
	for i := range 3 {
		q := question(fmt.Sprint("late_", 29-i), f.Now().Add(-time.Duration(i+1)*time.Minute))
		q.Parent = fmt.Sprint("ch_", i)
		near = append(near, q)
	}
	far := question("op_1", edge)
	far.Parent = "ch_1"
	ans := f.asks(t, src, append(near, far)...)
	for _, l := range ans.Looks {
		if l.Window.IsZero() {
			continue
		}
		for _, e := range ans.Effects {
			if l.Window.Contains(e.CreatedAt) && !slices.Contains(l.Found, e.Identity()) {
				t.Errorf("look of [%s, %s) does not name %s of %s", l.Window.From, l.Window.To, e.ID, e.CreatedAt)
			}
		}
		if l.Window.From.Before(edge.Add(time.Hour)) {
			t.Errorf("the list was not left early: it answers from %s", l.Window.From)
		}
	}
}

func TestB20_AListThatMeetsA429IsIncompleteAndTheNextOneHeals(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	src := open(t, f.settings(), stripe.Options{PageSize: 2})
	begin := f.Now()
	for i := range 10 {
		f.refund(t, stripetest.Refund{}, fmt.Sprint("op_", i))
		f.Add(time.Minute)
	}
	f.Script(stripetest.Fault{Kind: stripetest.RateLimited, Path: "/v1/refunds", Page: 4, RetryAfter: 7 * time.Second})
	old, young := question("op_0", begin), question("op_9", f.Now().Add(-90*time.Second))
	ans := f.asks(t, src, old, young)
	for _, l := range ans.Looks {
		complete := l.Outcome != recon.Blind
		if complete && !l.Window.From.After(old.From) || l.Complete != complete {
			t.Errorf("look from %s is %s: page 4 was never read", l.Window.From, l.Outcome)
		}
		if !complete && (l.Fault != string(sources.RateLimited) || l.Window.From.After(old.From)) {
			t.Errorf("the rest is told as %+v, want rate_limited back to %s", l, old.From)
		}
	}
	if len(ans.Looks) != 2 || len(ans.Effects) != 6 {
		t.Errorf("%d looks and %d effects, want the part that was read and the part that was not", len(ans.Looks), len(ans.Effects))
	}
	if again := f.asks(t, src, old); again.Looks[0].Calls != 0 {
		t.Error("asked again before the 7 seconds were over")
	}
	f.Add(8 * time.Second)
	if healed := f.asks(t, src, old); len(healed.Effects) != 10 || healed.Looks[0].Outcome != recon.Found || !healed.Looks[0].Complete {
		t.Errorf("the next list brought %d effects, %+v", len(healed.Effects), healed.Looks)
	}
}

func TestB27_ObjectsOfAnotherModeAreSetAsideAndTheLookIsBlind(t *testing.T) {
	t.Parallel()
	charge := `{"id":"ch_%d","object":"charge","livemode":%t,"amount":500,"currency":"eur","status":"succeeded","captured":true,"created":1772442000,"metadata":{"op_id":"op-1"}}`
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/charges/ch_2" {
			_, _ = fmt.Fprintf(w, charge, 2, false)
			return
		}
		_, _ = fmt.Fprintf(w, page, fmt.Sprintf(charge, 1, true)+","+fmt.Sprintf(charge, 2, false))
	})
	for way, q := range map[string]sources.Question{"in the window": {}, "by id": {EffectID: "ch_2"}, "by parent": {Parent: "pi_1"}} {
		q.Operation, q.Kind, q.Account, q.Mode, q.From = "op-1", "charge", "default", "live", newClock().now.Add(-time.Hour)
		ans := ask(t, open(t, srv.one(), stripe.Options{}), q)
		for _, e := range ans.Effects {
			if e.ID == "ch_2" {
				t.Errorf("%s: an object of test mode became a live effect", way)
			}
		}
		l := ans.Looks[len(ans.Looks)-1]
		if l.Outcome != recon.Blind || way != "by parent" && l.Fault != string(sources.WrongAccount) {
			t.Errorf("%s: look is %s %q %q; a key that shows test mode sees nothing of live mode", way, l.Outcome, l.Fault, l.Detail)
		}
	}
}

func TestB27_AKeyOfTheOtherModeIsRefused(t *testing.T) {
	t.Parallel()
	set := stripe.Settings{Mode: "live", APIKey: recon.NewSecret("sk_test_TESTONLY")}
	if _, err := stripe.New("s", set, stripe.Options{}); err == nil {
		t.Error("a test key was taken for live mode; refunds do not say their mode, so nobody would notice")
	}
}

func TestB43_TheSheetSaysHowLongAKeyLives(t *testing.T) {
	t.Parallel()
	sheet := open(t, newFake(t).settings(), stripe.Options{}).Sheet()
	if sheet.KeyLifetime.Std() != 24*time.Hour || !sheet.KeyHoldsOne || !sheet.RepeatAnswer || sheet.InFlightMax == 0 {
		t.Errorf("sheet is %+v; a key holds Stripe to one effect for 24 hours", sheet)
	}
}

func TestB110_EveryPageHasTheSameFilterAndA400OnASecondPageIsOurBug(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	begin := f.Now()
	for i := range 6 {
		f.refund(t, stripetest.Refund{Charge: "ch_same"}, fmt.Sprint("op_", i))
		f.Add(time.Minute)
	}
	byWindow, byParent := question("op_0", begin), question("op_0", begin)
	byParent.Parent = "ch_same"
	for way, q := range map[string]sources.Question{"in the window": byWindow, "by parent": byParent} {
		f.ResetCalls()
		f.asks(t, open(t, f.settings(), stripe.Options{PageSize: 2}), q)
		var filters []string
		for _, c := range f.Calls() {
			if c.Path != "/v1/refunds" {
				continue
			}
			if c.Query.Has("ending_before") || c.Query.Has("starting_after") != (len(filters) > 0) {
				t.Errorf("%s: page %d has cursor %v", way, len(filters)+1, c.Query)
			}
			c.Query.Del("starting_after")
			filters = append(filters, c.Query.Encode())
		}
		if len(filters) != 3 || len(slices.Compact(filters)) != 1 {
			t.Errorf("%s: filters of the pages are %v, want three times the same", way, filters)
		}

		f.Script(stripetest.Fault{Kind: stripetest.BadRequest, Path: "/v1/refunds", Page: 2, Param: "created"})
		ans := f.asks(t, open(t, f.settings(), stripe.Options{PageSize: 2}), q)
		i := slices.IndexFunc(ans.Looks, func(l recon.Look) bool { return l.Outcome == recon.Blind })
		if i < 0 || ans.Looks[i].Fault != string(sources.OwnBug) || ans.Looks[i].Complete {
			t.Errorf("%s: looks %+v, want one blind as own_bug", way, ans.Looks)
		}
	}
}

// A provider's clock that runs ahead dates the newest objects after our look. A list that
// then breaks off after its first page has covered no time of ours: it must not claim an
// empty range, which nothing can be recorded with.
func TestAListThatBreaksOffAheadOfOurClockClaimsNoTime(t *testing.T) {
	t.Parallel()
	f := newFake(t, func(o *stripetest.Options) {
		now := o.Now
		o.Now = func() time.Time { return now().Add(time.Minute) }
	})
	src := open(t, f.settings(), stripe.Options{PageSize: 1})
	for n := range 3 {
		f.refund(t, stripetest.Refund{}, fmt.Sprintf("op_%d", n))
	}
	f.Script(stripetest.Fault{Kind: stripetest.ServerError, Method: "GET", Path: "/v1/refunds", Page: 2, Times: stripetest.Always})
	ans := f.asks(t, src, question("op_0", f.Now().Add(-time.Hour)))
	if len(ans.Effects) == 0 || len(ans.Looks) == 0 {
		t.Fatalf("%d effects and %d looks: the first page was read", len(ans.Effects), len(ans.Looks))
	}
	calls := 0
	unseen := ids(ans)
	for _, l := range ans.Looks {
		calls += l.Calls
		unseen = slices.DeleteFunc(unseen, func(id string) bool {
			return slices.ContainsFunc(l.Found, func(f recon.EffectIdentity) bool { return f.ID == id })
		})
		if !l.Window.From.Before(l.Window.To) {
			t.Errorf("a %s look claims the range from %s to %s", l.Outcome, l.Window.From, l.Window.To)
		}
		if l.Outcome != recon.Blind {
			t.Errorf("%s, and nothing before now was read", l.Outcome)
		}
	}
	if len(unseen) > 0 {
		t.Errorf("no look saw %v", unseen)
	}
	if calls != len(f.Calls()) {
		t.Errorf("the looks tell of %d requests, and %d were made", calls, len(f.Calls()))
	}
}
