package sweep

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

func TestB03_AnEventBeforeTheAnswerIsOurOwnEffect(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	early, late := refund(1), refund(2)
	for _, i := range []intent{early, late} {
		h.open(i)
		token, key := h.claim(i)
		r := h.happen(i, key)
		finish := func() {
			out := h.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "succeeded", "effect_id": r.ID})
			if out["state"] != "succeeded" {
				t.Errorf("%s: finish answers %v", i.id, out)
			}
		}
		if i == late {
			finish()
		}
		h.deliver()
		h.take()
		if i == early {
			h.wantState(i, recon.Succeeded)
			finish()
		}
	}
	h.take()
	h.pass(time.Hour)
	h.run()
	for _, i := range []intent{early, late} {
		story := h.wantState(i, recon.Succeeded)
		if len(story.Effects) != 1 || story.Effects[0].Owner != i.id {
			t.Errorf("%s has effects %+v", i.id, story.Effects)
		}
	}
	h.wantKinds()
	if n := h.rows(`SELECT count(*)::text FROM reconciler.effects WHERE kind = 'refund'`)[0]; n != "2" {
		t.Errorf("%s refunds", n)
	}
}

func TestB04_AnEventThatCameFirstWaitsForItsOperation(t *testing.T) {
	t.Parallel()
	for name, know := range map[string]func(i intent, h *hooked) stripetest.Refund{
		"by our reference": func(i intent, _ *hooked) stripetest.Refund {
			return stripetest.Refund{Metadata: map[string]string{testMarker: i.id}}
		},
		"by the key": func(i intent, _ *hooked) stripetest.Refund { return stripetest.Refund{Key: "k-" + i.id} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			i := refund(1)
			r := know(i, h)
			r.Account, r.Mode, r.Charge, r.Amount, r.Currency = testAccount, "live", i.charge, i.amount, "eur"
			if _, err := h.stripe.AddRefund(r); err != nil {
				t.Fatal(err)
			}
			h.deliver()
			var unmatched int
			h.intake.Watch.Unmatched = func(recon.Effect) { unmatched++ }
			out := h.take()
			if out.Done == 0 || unmatched == 0 {
				t.Fatalf("taken %+v, %d unmatched", out, unmatched)
			}
			h.pass(3 * time.Second)
			h.call("open_operation", map[string]any{
				"action": "refund.create", "target": "order:1", "id": i.id, "key": "k-" + i.id, "amount": i.amount, "currency": "EUR", "parent": i.charge,
				"request": map[string]any{"amount": i.amount},
			})
			calls := h.calls()
			if out := h.take(); out.Concluded != 1 {
				t.Errorf("taken %+v", out)
			}
			h.wantState(i, recon.Succeeded)
			h.wantKinds()
			if h.calls() != calls {
				t.Error("somebody was asked")
			}
		})
	}
}

// What was seen while somebody still held the lease is judged again by what he says in
// the end.
func TestASenderWhoSaysOtherThanAnEventBeforeHimIsNotBelieved(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status string
		amount int64
		class  string
		want   recon.State
		kinds  []string
	}{
		"it had failed already":          {"failed", 0, "succeeded", recon.ManualReview, []string{"reversed"}},
		"it was of another amount":       {"succeeded", 64, "succeeded", recon.ManualReview, []string{"mismatch"}},
		"it is under way":                {"pending", 0, "refused", recon.Unknown, []string{"conflict"}},
		"it came to nothing, as he says": {"failed", 0, "refused", recon.Failed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			h.down = true
			i := refund(1)
			h.open(i)
			token, _ := h.claim(i)
			seen := i
			if tt.amount != 0 {
				seen.amount = tt.amount
			}
			h.post2(h.event("evt_1", "refund.updated", refundObject(seen, "re_1", tt.status, h.now())))
			h.take()
			h.pass(2 * time.Second)
			h.run() // the effect is his now
			finish := map[string]any{"operation_id": i.id, "token": token, "class": tt.class}
			if tt.class == "succeeded" {
				finish["effect_id"] = "re_1"
			}
			h.call("finish_attempt", finish)
			h.pass(time.Second)
			h.take()
			h.wantState(i, tt.want)
			h.wantKinds(tt.kinds...)
			if out := h.take(); out.Concluded != 0 {
				t.Errorf("concluded once more: %+v", out)
			}
		})
	}
}

func TestB06_OlderTellingsNeverMoveAnEffectBackwards(t *testing.T) {
	t.Parallel()
	for name, apart := range map[string]time.Duration{"a second apart": time.Second, "in the same second": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			h.down = true // Stripe's own deliveries are not what this is about
			i := refund(1)
			r := h.happen(i, h.lose(i))
			older := h.event("evt_a", "refund.created", refundObject(i, r.ID, "pending", h.now()))
			h.pass(apart)
			h.post2(h.event("evt_b", "refund.updated", refundObject(i, r.ID, "succeeded", r.Created)))
			h.take()
			h.post2(older)
			h.take()
			h.wantState(i, recon.Succeeded)
			if got := h.rows(`SELECT status || ' ' || needs_read FROM reconciler.effects`); got[0] != "completed true" {
				t.Errorf("the effect is %v: a doubt must be read", got)
			}
			if n := h.rows(`SELECT count(*)::text FROM reconciler.effect_changes`)[0]; n != "1" {
				t.Errorf("%s other tellings are kept, want 1", n)
			}
			h.pass(time.Minute)
			h.run()
			if got := h.rows(`SELECT status || ' ' || needs_read FROM reconciler.effects`); got[0] != "completed false" {
				t.Errorf("after the reading: %v", got)
			}
			if calls := h.stripe.Counts()["GET /v1/refunds/{id}"]; calls != 1 {
				t.Errorf("read %d times: %v", calls, h.stripe.Counts())
			}
			h.wantState(i, recon.Succeeded)
			h.wantKinds()
		})
	}
}

// post2 posts although the endpoint is down for Stripe.
func (h *hooked) post2(body string) {
	h.Helper()
	h.down = false
	h.post(body)
	h.down = true
}

func TestB07_ARefundThatFailsDaysLaterIsToldOnceByItsThreeNames(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	i := refund(1)
	r := h.happen(i, h.lose(i))
	h.deliver()
	h.take()
	h.wantState(i, recon.Succeeded)
	h.pass(8 * 24 * time.Hour)
	failed := refundObject(i, r.ID, "failed", r.Created)
	failed["failure_reason"] = "expired_or_canceled_card"
	for id, typ := range map[string]string{"evt_1": "refund.failed", "evt_2": "refund.updated", "evt_3": "charge.refund.updated"} {
		h.post(h.event(id, typ, failed))
		h.take()
	}
	story := h.wantState(i, recon.ManualReview)
	h.wantKinds("reversed")
	if f := story.Findings[0]; !strings.Contains(f.Reason, "expired or canceled card") {
		t.Errorf("reason %q", f.Reason)
	}
	if e := story.Effects[0]; e.Status != recon.EffectFailed || e.FailureReason != "expired_or_canceled_card" {
		t.Errorf("effect %+v", e)
	}
}

func TestB10_AChargeThatWasRefundedIsAHintToListItsRefunds(t *testing.T) {
	t.Parallel()
	for name, refunds := range map[string]any{"absent": nil, "null": "null", "empty": map[string]any{"data": []any{}, "has_more": true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			h.down = true
			i := refund(1)
			h.happen(i, h.lose(i))
			h.exec(`UPDATE reconciler.checks SET next_check = next_check + interval '1 day'`) // nothing but the hint may ask
			charge := map[string]any{
				"id": i.charge, "object": "charge", "amount": 5000, "amount_captured": 5000, "amount_refunded": i.amount, "captured": true, "currency": "eur",
				"customer": nil, "metadata": map[string]any{}, "payment_intent": nil, "refunded": false, "status": "succeeded", "created": h.now().Unix(),
			}
			switch refunds {
			case nil:
			case "null":
				charge["refunds"] = nil
			default:
				charge["refunds"] = refunds
			}
			h.post2(h.event("evt_1", "charge.refunded", charge))
			if out := h.take(); out.Done != 1 || !out.Left[testSource] {
				t.Fatalf("taken %+v", out)
			}
			h.wantState(i, recon.Unknown)
			h.stripe.Script(stripetest.Fault{Path: "/v1/refunds", Times: 1, Kind: stripetest.ServerError})
			h.run() // the list fails: the hint stays
			h.wantState(i, recon.Unknown)
			h.pass(5 * time.Minute)
			h.run()
			h.wantState(i, recon.Succeeded)
			if left := h.rows(`SELECT effect_id || parent FROM reconciler.wanted`); len(left) != 0 {
				t.Errorf("still wanted: %v", left)
			}
		})
	}
}

func TestB13_ClosingByAnEventStoresTheEffectAndHowItMatched(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	i := refund(1)
	r := h.happen(i, h.lose(i))
	calls := h.calls()
	h.deliver()
	h.take()
	story := h.wantState(i, recon.Succeeded)
	if story.Operation.EffectID != r.ID {
		t.Errorf("effect %q, want %s", story.Operation.EffectID, r.ID)
	}
	if got := h.rows(`SELECT effect_id || ' ' || basis || ' ' || certainty FROM reconciler.matches`); got[0] != r.ID+" reference proof" {
		t.Errorf("match %v", got)
	}
	last := story.Journal[len(story.Journal)-1]
	if body := string(last.Body); last.Kind != recon.EntryDecision || !strings.Contains(body, `"method":"event"`) {
		t.Errorf("the journal says %s", body)
	}
	if len(story.Looks) != 1 || story.Looks[0].Method != recon.ByEvent || !strings.HasPrefix(story.Looks[0].RequestID, "evt_") {
		t.Errorf("evidence %+v", story.Looks)
	}
	if h.calls() != calls {
		t.Error("somebody was asked")
	}
	if r, err := h.ledger.Verify(t.Context()); err != nil || len(r.Broken) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestB46_PendingAtTheProviderIsNeitherDoneNorFailed(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	wait, act, gone, wrong := refund(1), refund(2), refund(3), refund(4)
	for _, i := range []intent{wait, act, gone} {
		h.lose(i)
	}
	h.open(wrong)
	token, _ := h.claim(wrong)
	h.call("finish_attempt", map[string]any{"operation_id": wrong.id, "token": token, "class": "refused", "error_code": "card_declined"})
	h.wantState(wrong, recon.Failed)
	h.post2(h.event("evt_1", "refund.created", refundObject(wait, "re_1", "pending", h.now())))
	h.post2(h.event("evt_2", "refund.updated", refundObject(act, "re_2", "requires_action", h.now())))
	h.post2(h.event("evt_3", "refund.updated", refundObject(gone, "re_3", "canceled", h.now())))
	h.post2(h.event("evt_4", "refund.created", refundObject(wrong, "re_4", "pending", h.now())))
	h.take()
	for i, effect := range map[intent]string{wait: "re_1", act: "re_2", wrong: "re_4"} {
		if story := h.wantState(i, recon.Unknown); story.Operation.EffectID != effect {
			t.Errorf("%s has effect %q, want %s", i.id, story.Operation.EffectID, effect)
		}
	}
	h.wantState(gone, recon.Failed)
	h.wantKinds("conflict") // the one that was said to have failed
	before := h.everything()
	h.take()
	if after := h.everything(); len(after) != len(before) {
		t.Errorf("a pass without news changed the ledger: %d rows, then %d", len(before), len(after))
	}
}

func TestAFailedOperationWhoseEffectShowsUpIsAConflict(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	i := refund(1)
	h.open(i)
	token, key := h.claim(i)
	h.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "refused", "error_code": "card_declined"})
	h.happen(i, key)
	h.deliver()
	h.take()
	h.wantState(i, recon.Succeeded)
	h.wantKinds("conflict")
}

func TestB48_AnObjectWithoutAFieldThatWeKeepIsRead(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	i := refund(1)
	r := h.happen(i, h.lose(i))
	object := refundObject(i, r.ID, "succeeded", r.Created)
	delete(object, "charge")
	h.post2(h.event("evt_1", "refund.created", object))
	out := h.take()
	if !out.Left[testSource] || out.Concluded != 0 {
		t.Fatalf("taken %+v", out)
	}
	h.wantState(i, recon.Unknown)
	h.run()
	h.wantState(i, recon.Succeeded)
}

func TestB66_AFeeThatIsNotKnownYetIsNeverZeroAndNeverForgotten(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	i := refund(1)
	r := h.happen(i, h.lose(i))
	h.post2(h.event("evt_1", "refund.created", refundObject(i, r.ID, "succeeded", r.Created)))
	h.take()
	h.wantState(i, recon.Succeeded)
	if fee := h.rows(`SELECT coalesce(fee::text, 'not known') FROM reconciler.effects`); fee[0] != "not known" {
		t.Errorf("fee %v", fee)
	}
	h.exec(`UPDATE reconciler.effects SET fee = 119, net = -1120`) // as a reading would have stored it
	h.post2(h.event("evt_2", "refund.updated", refundObject(i, r.ID, "succeeded", r.Created)))
	h.take()
	if got := h.rows(`SELECT fee || ' ' || net || ' ' || needs_read FROM reconciler.effects`); got[0] != "119 -1120 false" {
		t.Errorf("after an event that does not speak of the fee: %v", got)
	}
}

func TestB71_AnObjectWithCharactersThatNoTableTakesIsTakenIn(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	for n, text := range []string{`a\u0000b`, `a\\u0000b`, `\ud800`} {
		i := refund(n)
		h.lose(i)
		body := h.event("evt_"+i.id, "refund.created", refundObject(i, "re_"+i.id, "succeeded", h.now()))
		h.post2(strings.Replace(body, `"metadata":{`, `"failure_reason":"`+text+`","metadata":{"note":"`+text+`",`, 1))
	}
	h.take()
	for n := range 3 {
		h.wantState(refund(n), recon.Succeeded)
	}
	for id, state := range h.states() {
		if state != inbox.Done {
			t.Errorf("%s is %s", id, state)
		}
	}
	h.take()
	if doubts := h.rows(`SELECT id FROM reconciler.effects WHERE needs_read`); len(doubts) != 0 {
		t.Errorf("in doubt: %v", doubts)
	}
}

func TestTellingsOfOneEffectAreWeighedInTheirOrderAlsoWhenTheyComeTogether(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	i := refund(1)
	r := h.happen(i, h.lose(i))
	pending, done, other := refundObject(i, r.ID, "pending", h.now()), refundObject(i, r.ID, "succeeded", h.now()), refundObject(i, r.ID, "succeeded", h.now())
	other["amount"] = i.amount + 1
	first := h.event("evt_1", "refund.created", pending)
	h.pass(time.Second)
	second := h.event("evt_2", "refund.updated", done)
	h.pass(time.Second)
	h.post2(h.event("evt_3", "refund.updated", other)) // as certain as the second, and different
	h.post2(second)
	h.post2(first)
	h.take()
	if got := h.rows(`SELECT status || ' ' || amount || ' ' || needs_read FROM reconciler.effects`); got[0] != "completed 1001 true" {
		t.Errorf("the effect is %v", got)
	}
	h.wantState(i, recon.Unknown)
	h.run()
	h.wantState(i, recon.Succeeded)
	h.wantKinds()
}

// An event tells of an effect beside the one that a closed operation knows and nobody has seen.
// No sweep has closed operations, and what both are is known only when that one was asked for:
// by the next sweep where its id is enough, else by the next re-verification.
func TestAKnownEffectThatNobodyHasSeenIsSoughtWhenAnotherOneShows(t *testing.T) {
	t.Parallel()
	soon := func(h *hooked) { h.run() }
	for name, c := range map[string]struct {
		there, blind bool // the known one, and the sheet to its id
		asks         func(*hooked)
		want         recon.FindingKind
		state        recon.State
	}{
		"it is there":                     {true, false, soon, recon.FindDuplicate, recon.Succeeded},
		"it is not":                       {false, false, soon, recon.FindMismatch, recon.ManualReview},
		"it is there and found by a list": {true, true, (*hooked).reverify, recon.FindDuplicate, recon.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			h.down = true
			if c.blind {
				sheet := h.source.Sheet()
				sheet.Abilities = slices.DeleteFunc(slices.Clone(sheet.Abilities), func(a recon.Ability) bool { return a.Method == recon.ByID })
				h.intake.Sheets[testSource] = sheet
			}
			i := refund(1)
			known := "re_gone"
			if c.there {
				known = h.happen(i, "key-1").ID
			}
			h.done(i, known)
			h.pass(10 * time.Minute)
			again := h.happen(i, "key-2")
			h.post2(h.event("evt_1", "refund.created", refundObject(i, again.ID, "succeeded", h.now())))
			if out := h.take(); out.Left[testSource] == c.blind {
				t.Errorf("left to a sweep: %v", out.Left)
			}
			h.wantState(i, recon.Succeeded)
			h.wantKinds()
			h.pass(time.Minute)
			c.asks(h)
			h.wantState(i, c.state)
			h.wantKinds(string(c.want))
			if left := h.rows(`SELECT effect_id FROM reconciler.wanted`); len(left) != 0 {
				t.Errorf("still wanted: %v", left)
			}
		})
	}
}

// reverify looks at the closed operations that are due.
func (h *hooked) reverify() {
	h.Helper()
	if _, err := h.sweep.Reverify(h.Context(), Options{Now: h.now}); err != nil {
		h.Fatal(err)
	}
}
