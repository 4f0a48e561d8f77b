package sweep

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// told fills an inbox with events of every fate.
func (h *hooked) told() {
	h.Helper()
	h.down = true
	at := h.now()
	for n, status := range []string{"succeeded", "pending", "failed", "succeeded", "succeeded"} {
		i := refund(n)
		h.lose(i)
		switch n {
		case 3:
			i.amount++ // a person must look
		case 4:
			h.post2(h.event("evt_again", "refund.updated", refundObject(i, "re_4", "pending", at)))
		}
		h.post2(h.event("evt_"+i.id, "refund.created", refundObject(i, "re_"+i.id, status, at)))
	}
	h.post2(h.event("evt_early", "refund.created", refundObject(refund(7), "re_7", "succeeded", at)))
	h.open(refund(7)) // after its effect
	h.done(refund(9), "re_9")
	h.post2(h.event("evt_beside", "refund.created", refundObject(refund(9), "re_9_again", "succeeded", at)))
	hint := refundObject(refund(1), "re_8", "succeeded", at)
	delete(hint, "charge")
	h.post2(h.event("evt_hint", "refund.created", hint))
	h.post2(h.event("evt_broken", "refund.created", map[string]any{"object": "refund"}))
	h.post2(h.event("evt_unknown", "tax.form.invented", map[string]any{"object": "form", "id": "frm_1"}))
	h.post2(h.event("evt_payout", "payout.paid", map[string]any{"object": "payout"}))
}

// taking is what a ledger says, with the events and what is to be read.
func (h *hooked) taking() []string {
	h.Helper()
	return append(h.essence(), h.rows(`
		SELECT concat_ws(' ', 'event', id, state, about::text) FROM reconciler.events
		UNION ALL SELECT concat_ws(' ', 'wanted', kind, effect_id, parent) FROM reconciler.wanted
		UNION ALL SELECT concat_ws(' ', 'look', look_id) FROM reconciler.looks WHERE method = 'event'
		ORDER BY 1`)...)
}

func TestTwoIntakesAtOnceAreAsGoodAsOne(t *testing.T) {
	t.Parallel()
	one := newHooked(t)
	one.told()
	one.take()
	two := newHooked(t)
	two.told()
	errs := make(chan error)
	for range 2 {
		in := *two.intake
		go func() {
			_, err := in.Run(t.Context(), two.now)
			errs <- err
		}()
	}
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Fatal(err)
	}
	two.take()
	if diff := cmp.Diff(one.taking(), two.taking()); diff != "" {
		t.Errorf("(-one +two):\n%s", diff)
	}
}

// moody fails on one event, as code that meets what it was not written for.
type moody struct {
	IntakeSource
	id string
}

func (m *moody) Decode(e recon.Event) (sources.Shown, error) {
	if e.ID == m.id {
		panic("an index out of range")
	}
	return m.IntakeSource.Decode(e)
}

func TestB52_AnEventThatCannotBeProcessedWaitsAndStopsNoOther(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	poison := &moody{IntakeSource: h.source, id: "evt_1"}
	h.intake.Sources = []IntakeSource{poison}
	for n := range 3 {
		i := refund(n)
		h.lose(i)
		h.post2(h.event(fmt.Sprintf("evt_%d", n), "refund.created", refundObject(i, "re_"+i.id, "succeeded", h.now())))
	}
	if out := h.take(); out.Done != 2 || out.Failed != 1 {
		t.Errorf("taken %+v", out)
	}
	h.wantState(refund(0), recon.Succeeded)
	h.wantState(refund(1), recon.Unknown)
	h.wantState(refund(2), recon.Succeeded)
	for range inbox.MaxAttempts {
		h.pass(2 * time.Hour)
		h.take()
	}
	rows, err := h.inbox.List(t.Context(), inbox.Filter{States: []inbox.State{inbox.Failed}})
	if err != nil || len(rows) != 1 || rows[0].LastError != "reading it failed: an index out of range" {
		t.Fatalf("failed: %+v, %v", rows, err)
	}
	poison.id = "" // a version of the program that can
	if _, err := h.inbox.Replay(t.Context(), inbox.Filter{States: []inbox.State{inbox.Failed}}, h.now()); err != nil {
		t.Fatal(err)
	}
	h.take()
	h.wantState(refund(1), recon.Succeeded)
}

func TestAnEventThatNobodySignedOnlyMakesPeopleLook(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	i, lie := refund(1), refund(2)
	r := h.happen(i, h.lose(i))
	h.lose(lie)
	h.exec(`UPDATE reconciler.checks SET next_check = next_check + interval '1 day'`)
	for n, told := range map[string]intent{r.ID: i, "re_forged": lie} {
		body := h.event("evt_"+n, "refund.created", refundObject(told, n, "succeeded", h.now()))
		e, err := h.source.Verify(map[string][]string{"Stripe-Signature": {stripetest.Sign(h.now(), []byte(body), hookSecret)}}, []byte(body), h.now())
		if err != nil {
			t.Fatal(err)
		}
		e.Signed, e.Body = false, []byte(body)
		if _, err := h.inbox.Receive(t.Context(), inbox.Delivery{Event: e, At: h.now()}); err != nil {
			t.Fatal(err)
		}
	}
	h.take()
	h.wantState(i, recon.Unknown)
	h.wantState(lie, recon.Unknown)
	if n := h.rows(`SELECT count(*)::text FROM reconciler.effects`)[0]; n != "0" {
		t.Errorf("%s effects on the word of nobody", n)
	}
	h.run() // reads both
	h.wantState(i, recon.Succeeded)
	h.wantState(lie, recon.Unknown)
	if left := h.rows(`SELECT effect_id FROM reconciler.wanted`); len(left) != 0 {
		t.Errorf("still to be read: %v", left)
	}
}

func TestB27_AnEventOfAnotherModeIsNeverTakenIn(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	i := refund(1)
	h.lose(i)
	e := recon.Event{
		Source: testSource, System: h.source.Sheet().System, Account: testAccount, Mode: "test", ID: "evt_1", Type: "refund.created", CreatedAt: h.now(),
		Signed: true, Body: []byte(h.event("evt_1", "refund.created", refundObject(i, "re_1", "succeeded", h.now()))),
	}
	if _, err := h.inbox.Receive(t.Context(), inbox.Delivery{Event: e, At: h.now()}); err != nil { // as if nobody had looked at its mode
		t.Fatal(err)
	}
	if out := h.take(); out.Foreign != 1 {
		t.Errorf("taken %+v", out)
	}
	h.wantState(i, recon.Unknown)
	if state := h.states()["evt_1"]; state != inbox.Ignored {
		t.Errorf("the event is %s", state)
	}
}

func TestB57_ADebitThatComesBackAfterSettlementReopensItsOperation(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	h.exec(`INSERT INTO reconciler.policies (tenant, action, version, body, created_at)
		SELECT tenant, 'charge.create', 1, body || '{"effect": "charge"}', created_at FROM reconciler.policies`)
	h.call("open_operation", map[string]any{
		"action": "charge.create", "target": "order:1", "id": "op_1430", "amount": 5000, "currency": "EUR", "request": map[string]any{},
	})
	claim := h.call("claim_operation", map[string]any{"operation_id": "op_1430", "holder": "agent"})
	h.call("finish_attempt", map[string]any{"operation_id": "op_1430", "token": claim["token"], "class": "succeeded", "effect_id": "ch_1430"})
	charge := map[string]any{
		"id": "ch_1430", "object": "charge", "amount": 5000, "amount_captured": 5000, "amount_refunded": 0, "captured": true, "currency": "eur",
		"customer": nil, "metadata": map[string]any{testMarker: "op_1430"}, "payment_intent": nil, "refunded": false, "status": "succeeded", "created": h.now().Unix(),
	}
	h.post2(h.event("evt_1", "charge.succeeded", charge))
	h.take()
	h.wantState(intent{id: "op_1430"}, recon.Succeeded)
	h.pass(8 * 24 * time.Hour)
	charge["status"], charge["failure_code"] = "failed", "debit_not_authorized"
	h.post2(h.event("evt_2", "charge.failed", charge))
	h.take()
	h.wantState(intent{id: "op_1430"}, recon.ManualReview)
	h.wantKinds("reversed")
}

func TestAPayoutThatFailsAfterItWasPaidReopensItsOperation(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	h.exec(`INSERT INTO reconciler.policies (tenant, action, version, body, created_at)
		SELECT tenant, 'payout.create', 1, body || '{"effect": "payout"}', created_at FROM reconciler.policies`)
	h.call("open_operation", map[string]any{
		"action": "payout.create", "target": "seller:1", "id": "op_po", "amount": 5000, "currency": "EUR", "request": map[string]any{},
	})
	claim := h.call("claim_operation", map[string]any{"operation_id": "op_po", "holder": "agent"})
	h.call("finish_attempt", map[string]any{"operation_id": "op_po", "token": claim["token"], "class": "indeterminate"})
	for n, told := range []struct {
		typ, status string
		want        recon.State
	}{
		{"payout.created", "pending", recon.Unknown}, {"payout.paid", "paid", recon.Succeeded},
		{"payout.failed", "failed", recon.ManualReview}, {"payout.updated", "failed", recon.ManualReview},
	} {
		h.post2(h.event(fmt.Sprintf("evt_%d", n), told.typ, map[string]any{
			"id": "po_1", "object": "payout", "amount": 5000, "currency": "eur", "status": told.status, "automatic": false, "destination": "ba_1",
			"metadata": map[string]any{testMarker: "op_po"}, "created": monday.Unix(), "original_payout": nil, "reversed_by": nil, "failure_code": nil,
		}))
		h.take()
		h.wantState(intent{id: "op_po"}, told.want)
		h.pass(24 * time.Hour)
	}
	h.wantKinds("reversed")
}

// openPayment records a payment by intent pi_1 that ended as said.
func (h *hooked) openPayment(class string) {
	h.Helper()
	h.exec(`INSERT INTO reconciler.policies (tenant, action, version, body, created_at)
		SELECT tenant, 'charge.create', 1, body || '{"effect": "payment_intent"}', created_at FROM reconciler.policies`)
	h.call("open_operation", map[string]any{
		"action": "charge.create", "target": "order:1", "id": "op_pay", "amount": 5000, "currency": "EUR", "request": map[string]any{},
	})
	claim := h.call("claim_operation", map[string]any{"operation_id": "op_pay", "holder": "agent"})
	h.call("finish_attempt", map[string]any{"operation_id": "op_pay", "token": claim["token"], "class": class, "effect_id": "pi_1"})
}

// paid is the event of that payment.
func (h *hooked) paid() string {
	return h.event("evt_0", "payment_intent.succeeded", map[string]any{
		"id": "pi_1", "object": "payment_intent", "amount": 5000, "amount_received": 5000, "currency": "eur", "status": "succeeded", "livemode": true,
		"metadata": map[string]any{testMarker: "op_pay"}, "created": monday.Unix(), "customer": nil, "invoice": nil, "latest_charge": "ch_1",
		"last_payment_error": nil, "cancellation_reason": nil, "application": nil, "canceled_at": nil,
	})
}

// disputed is an event of the dispute under it.
func (h *hooked) disputed(id, typ, status string) string {
	return h.event(id, typ, map[string]any{
		"id": "dp_1", "object": "dispute", "amount": 5000, "currency": "eur", "status": status, "charge": "ch_1", "payment_intent": "pi_1",
		"metadata": map[string]any{}, "created": monday.Unix() + 1, "reason": "fraudulent", "livemode": true, "balance_transactions": []any{},
	})
}

func TestALostDisputeReversesThePaymentThatItTookBack(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	h.intake.Kinds = map[recon.SourceName][]string{testSource: {"payment_intent"}} // no action makes a dispute
	h.openPayment("succeeded")
	h.post2(h.paid())
	h.take()
	h.wantState(intent{id: "op_pay"}, recon.Succeeded)
	for n, told := range []struct {
		typ, status string
		want        recon.State
	}{
		{"charge.dispute.created", "needs_response", recon.Succeeded}, {"charge.dispute.closed", "lost", recon.ManualReview},
		{"charge.dispute.funds_withdrawn", "lost", recon.ManualReview},
	} {
		h.pass(24 * time.Hour)
		h.post2(h.disputed(fmt.Sprintf("evt_d%d", n), told.typ, told.status))
		h.take()
		h.wantState(intent{id: "op_pay"}, told.want)
	}
	h.wantKinds("reversed")
}

func TestADisputeThatIsToldOfBeforeItsPaymentReversesItToo(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	h.intake.Kinds = map[recon.SourceName][]string{testSource: {"payment_intent"}}
	h.openPayment("indeterminate")
	h.post2(h.disputed("evt_d", "charge.dispute.closed", "lost"))
	h.take()
	h.wantState(intent{id: "op_pay"}, recon.Unknown)
	h.post2(h.paid())
	h.take()
	h.wantState(intent{id: "op_pay"}, recon.ManualReview)
	h.wantKinds("reversed")
}

func TestAnAmountOfNothingIsNotTheAmountOfTheOperation(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	h.exec(`INSERT INTO reconciler.policies (tenant, action, version, body, created_at)
		SELECT tenant, 'checkout.create', 1, body || '{"effect": "checkout_session"}', created_at FROM reconciler.policies`)
	h.call("open_operation", map[string]any{
		"action": "checkout.create", "target": "order:1", "id": "op_cs", "amount": 1000, "currency": "EUR", "request": map[string]any{},
	})
	claim := h.call("claim_operation", map[string]any{"operation_id": "op_cs", "holder": "agent"})
	h.call("finish_attempt", map[string]any{"operation_id": "op_cs", "token": claim["token"], "class": "indeterminate"})
	h.post2(h.event("evt_0", "checkout.session.completed", map[string]any{
		"id": "cs_1", "object": "checkout.session", "amount_total": 0, "currency": "eur", "status": "complete", "payment_status": "no_payment_required",
		"livemode": true, "metadata": map[string]any{testMarker: "op_cs"}, "created": monday.Unix(), "customer": nil, "payment_intent": nil,
		"invoice": nil, "subscription": nil, "client_reference_id": nil,
	}))
	h.take()
	h.wantState(intent{id: "op_cs"}, recon.ManualReview)
	h.wantKinds("mismatch")
}

func TestB53_AClosedOperationThatTurnedWithoutAnEventIsFoundByTheLadder(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	i := refund(1)
	r := h.happen(i, h.lose(i))
	h.deliver()
	h.take()
	h.wantState(i, recon.Succeeded)
	h.down = true
	h.pass(20 * 24 * time.Hour)
	if err := h.stripe.TurnRefund(r, stripetest.Turn{Status: "failed", Reason: "expired_or_canceled_card"}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.sweep.Reverify(t.Context(), Options{Now: h.now}); err != nil {
		t.Fatal(err)
	}
	h.wantState(i, recon.ManualReview)
	h.wantKinds("reversed")
}

func TestB51_MissedDeliveriesAreRecoveredFromTheProvidersOwnList(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	recovery := &Recovery{Inbox: h.inbox, Source: h.source}
	first, err := recovery.Run(t.Context(), h.now)
	if err != nil || len(first.Unseen) != 0 || len(first.Windows) != 1 || first.Windows[0].Events != 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	h.down = true
	h.pass(time.Hour)
	i := refund(1)
	h.happen(i, h.lose(i))
	for range 5 {
		h.pass(24 * time.Hour)
		h.deliver() // and nobody answers
	}
	back, err := recovery.Run(t.Context(), h.now)
	if err != nil || len(back.Unseen) != 0 || back.New() == 0 {
		t.Fatalf("after five days: %+v, %v", back, err)
	}
	h.take()
	h.wantState(i, recon.Succeeded)
	h.wantKinds()
	again, err := recovery.Run(t.Context(), h.now)
	if err != nil || again.New() != 0 {
		t.Errorf("at once again: %+v, %v", again, err)
	}
	if n := h.rows(`SELECT max(deliveries)::text FROM reconciler.events`)[0]; n != "0" {
		t.Errorf("readings count as %s deliveries", n)
	}
	h.pass(40 * 24 * time.Hour)
	late, err := recovery.Run(t.Context(), h.now)
	if err != nil || len(late.Unseen) != 1 || late.Unseen[0].To.Sub(late.Unseen[0].From) < 9*24*time.Hour {
		t.Fatalf("after forty days: %+v, %v", late, err)
	}
	if why := late.Unseen[0].Why; why != "the provider lists events of the last 30 d only" {
		t.Errorf("why: %s", why)
	}
}

func TestTheFirstReadingOfAFeedReachesBackToTheOldestOperation(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	recovery := &Recovery{Inbox: h.inbox, Source: h.source, Oldest: h.ledger.FirstOpened}
	h.down = true
	i := refund(1)
	h.happen(i, h.lose(i))
	h.pass(5 * 24 * time.Hour)
	read, err := recovery.Run(t.Context(), h.now)
	if err != nil || read.New() == 0 {
		t.Fatalf("%+v, %v", read, err)
	}
	h.take()
	h.wantState(i, recon.Succeeded)
}

// A clock that was ahead, and a trial with --now, leave a point that has not come yet.
func TestAFeedThatWasReadByAClockAheadIsReadAgain(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	recovery := &Recovery{Inbox: h.inbox, Source: h.source}
	if _, err := recovery.Run(t.Context(), func() time.Time { return h.now().Add(48 * time.Hour) }); err != nil {
		t.Fatal(err)
	}
	h.down = true
	i := refund(1)
	h.happen(i, h.lose(i))
	h.pass(time.Hour)
	read, err := recovery.Run(t.Context(), h.now)
	if err != nil || len(read.Unseen) != 0 || read.New() == 0 {
		t.Fatalf("%+v, %v", read, err)
	}
	h.take()
	h.wantState(i, recon.Succeeded)
}

func TestARecoveryThatBreaksOffGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	for n := range 5 {
		h.happen(refund(n), h.lose(refund(n)))
	}
	h.pass(time.Second)
	all := len(h.stripe.Events())
	source := h.client(receives, func(_ *stripe.Settings, o *stripe.Options) { o.PageSize = 2 })
	recovery := &Recovery{Inbox: h.inbox, Source: source}
	h.stripe.Script(stripetest.Fault{Path: "/v1/events", Nth: 3, Times: 1, Kind: stripetest.ServerError})
	first, err := recovery.Run(t.Context(), h.now)
	if err != nil || len(first.Unseen) != 1 || first.New() == 0 || first.New() == all {
		t.Fatalf("%+v, %v", first, err)
	}
	h.pass(time.Minute)
	second, err := recovery.Run(t.Context(), h.now)
	if err != nil || len(second.Unseen) != 0 || first.New()+second.New() != all {
		t.Errorf("%d and %d of %d: %+v, %v", first.New(), second.New(), all, second, err)
	}
}

// What a reading that broke off had left is listed no more, or in part no more. It is told,
// once, and what came since is read.
func TestARecoveryThatBrokeOffTooLongAgoGoesOnWithWhatIsListed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		away   time.Duration
		unseen int
		closed []int
	}{
		"all that was left is gone": {away: 40 * 24 * time.Hour, unseen: 2, closed: []int{2, 3}},
		"a part of it is gone":      {away: 25 * 24 * time.Hour, unseen: 1, closed: []int{1, 2, 3}},
		"all of it is listed":       {away: 20 * 24 * time.Hour, closed: []int{0, 1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			h.down = true
			source := h.client(receives, func(_ *stripe.Settings, o *stripe.Options) { o.PageSize = 1 })
			recovery := &Recovery{Inbox: h.inbox, Source: source, Oldest: h.ledger.FirstOpened}
			for n := range 3 { // on day 0, 2 and 4
				h.happen(refund(n), h.lose(refund(n)))
				h.pass(2 * 24 * time.Hour)
			}
			h.stripe.Script(stripetest.Fault{Path: "/v1/events", Nth: 3, Times: 1, Kind: stripetest.ServerError})
			first, err := recovery.Run(t.Context(), h.now)
			if err != nil || len(first.Unseen) != 1 {
				t.Fatalf("%+v, %v", first, err)
			}
			h.pass(c.away)
			h.happen(refund(3), h.lose(refund(3)))
			h.pass(time.Minute)
			second, err := recovery.Run(t.Context(), h.now)
			if err != nil || len(second.Unseen) != c.unseen {
				t.Fatalf("%+v, %v", second, err)
			}
			if len(second.Windows) != 2-c.unseen/2 { // of the one that is gone nothing was read
				t.Errorf("told as read: %+v", second.Windows)
			}
			for _, u := range second.Unseen {
				if u.Why != "the provider lists events of the last 30 d only" || u.To.After(h.now().Add(-30*24*time.Hour+time.Second)) {
					t.Errorf("unseen: %+v", u)
				}
			}
			h.take()
			var closed []int
			for n := range 4 {
				if h.story(refund(n)).Operation.State == recon.Succeeded {
					closed = append(closed, n)
				}
			}
			if diff := cmp.Diff(c.closed, closed); diff != "" {
				t.Errorf("closed by what was read (-want +got):\n%s", diff)
			}
			again, err := recovery.Run(t.Context(), h.now)
			if err != nil || len(again.Unseen) != 0 || again.New() != 0 {
				t.Errorf("at once again: %+v, %v", again, err)
			}
		})
	}
}

// While a reading goes on, what is left of it becomes too old to be listed.
func TestWhatWasReadBeforeTheRestBecameTooOldIsCounted(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	for n := range 2 {
		h.happen(refund(n), h.lose(refund(n)))
		h.pass(20 * time.Second)
	}
	h.pass(30*24*time.Hour - time.Minute)
	source := h.client(receives, func(_ *stripe.Settings, o *stripe.Options) { o.PageSize = 1 })
	recovery := &Recovery{Inbox: h.inbox, Source: source, Oldest: h.ledger.FirstOpened, Look: func(recon.Look) { h.pass(time.Minute) }}
	read, err := recovery.Run(t.Context(), h.now)
	if err != nil || len(read.Unseen) != 1 || len(read.Windows) != 1 {
		t.Fatalf("%+v, %v", read, err)
	}
	stored := len(h.rows(`SELECT id FROM reconciler.events`))
	if stored == 0 || read.New() != stored || !read.Windows[0].Window.From.Equal(read.Unseen[0].To) {
		t.Errorf("%d are stored, told is %+v", stored, read)
	}
}

func TestB04_AnEffectThatWaitsTooLongIsAnOrphanUntilItsOperationAppears(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	i := refund(1)
	h.post2(h.event("evt_1", "refund.created", refundObject(i, "re_1", "succeeded", h.now())))
	h.take()
	window := recon.Window{From: h.now().Add(-time.Hour), To: h.now().Add(time.Minute)}
	h.pass(30 * time.Minute)
	if r := h.audit(window); len(r.Findings) != 0 {
		t.Errorf("within its grace: %+v", r.Findings)
	}
	h.pass(time.Hour)
	h.audit(window)
	h.wantKinds("orphan")
	h.open(i)
	h.take()
	h.wantState(i, recon.Succeeded)
	rows := h.findings()
	if len(rows) != 1 || rows[0].State != recon.FindingEnded || rows[0].Ending == "" {
		t.Errorf("the orphan: %+v", rows)
	}
}

func TestWhatIsReadForItsOwnSakePassesNoLimitEither(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	h.sweep.Changes = 1
	for n := range 3 {
		i := refund(n)
		r := h.happen(i, h.lose(i))
		h.post2(h.event("evt_"+i.id, "refund.created", refundObject(i, r.ID, "succeeded", r.Created)))
		h.take()
		h.wantState(i, recon.Succeeded)
		if err := h.stripe.TurnRefund(r, stripetest.Turn{Status: "failed", Reason: "declined"}); err != nil {
			t.Fatal(err)
		}
	}
	h.exec(`UPDATE reconciler.effects SET needs_read = true WHERE kind = 'refund'`)
	h.pass(time.Minute)
	var limit *LimitError
	if _, err := h.sweep.Run(t.Context(), Options{Now: h.now}); !errors.As(err, &limit) {
		t.Fatalf("the run ends with %v", err)
	}
	for n := range 3 {
		h.wantState(refund(n), recon.Succeeded)
	}
	h.sweep.Changes = 3
	h.pass(time.Minute)
	h.run()
	for n := range 3 {
		h.wantState(refund(n), recon.ManualReview)
	}
	if left := h.rows(`SELECT effect_id FROM reconciler.wanted`); len(left) != 0 {
		t.Errorf("still to be read: %v", left)
	}
}

// second is of an operation that its sender ended as succeeded and whose own effect nobody has
// seen: another one that bears the operation's reference. What the sender named is known; where
// that is empty it is an effect that is at the provider.
func (h *hooked) second(i intent, known string) stripetest.Refund {
	h.Helper()
	h.open(i)
	token, key := h.claim(i)
	if known == "" {
		known = h.happen(i, key).ID
	}
	h.call("finish_attempt", map[string]any{"operation_id": i.id, "token": token, "class": "succeeded", "effect_id": known})
	h.pass(time.Minute)
	second := h.happen(i, "k-second")
	h.wantState(i, recon.Succeeded)
	return second
}

func TestASecondEffectIsNoMismatchBeforeTheKnownIsSought(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		told func(h *hooked, object map[string]any) string
		want []string // an event that shows the second effect has the known one sought by the next sweep
	}{
		"it is read by its own id": {told: func(h *hooked, object map[string]any) string {
			delete(object, "charge")
			return h.event("evt_1", "refund.created", object)
		}},
		"it was made under another key": {want: []string{"duplicate"}, told: func(h *hooked, object map[string]any) string {
			return strings.Replace(h.event("evt_1", "refund.created", object), `"idempotency_key":null`, `"idempotency_key":"k-second"`, 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHooked(t)
			h.down = true
			i := refund(1)
			second := h.second(i, "")
			h.post2(c.told(h, refundObject(i, second.ID, "succeeded", h.now())))
			h.take()
			h.wantKinds()
			h.run()
			h.wantState(i, recon.Succeeded)
			h.wantKinds(c.want...)
		})
	}
}
