package sweep

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

const personal = "ana@example.com"

// traces counts the rows of the whole schema in which the personal text stands.
func (h *hooked) traces() []string {
	h.Helper()
	var found []string
	for _, table := range h.rows(`SELECT table_name FROM information_schema.tables WHERE table_schema = 'reconciler' AND table_type = 'BASE TABLE'`) {
		sql := `SELECT '` + table + ` ' || x::text FROM reconciler.` + table + ` x WHERE x::text LIKE '%` + personal + `%'`
		if table == "blobs" {
			sql = `SELECT 'blobs ' || id FROM reconciler.blobs WHERE position(convert_to('` + personal + `', 'UTF8') IN bytes) > 0`
		}
		found = append(found, h.rows(sql)...)
	}
	return found
}

func TestErasingLeavesNoTraceAndBreaksNoChain(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	i, other := refund(1), refund(2)
	for _, o := range []intent{i, other} {
		key := h.lose(o)
		h.exec(`UPDATE reconciler.operations SET request = $2, metadata = jsonb_build_object('mail', $2::text), reference = $3 WHERE operation_id = $1`, o.id, personal, "INV-"+o.id)
		_, err := h.stripe.AddRefund(stripetest.Refund{
			Account: testAccount, Mode: "live", Charge: o.charge, Amount: o.amount, Currency: "eur", Key: key,
			Metadata: map[string]string{testMarker: o.id, "mail": personal},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var open *ledger.OpenOperationsError
	if _, err := h.ledger.Erase(t.Context(), i.id, h.now()); !errors.As(err, &open) {
		t.Fatalf("an open operation: %v", err)
	}
	h.deliver()
	h.take()
	h.wantState(i, recon.Succeeded)
	// A second reading keeps bytes of its own, and another telling is kept beside.
	h.exec(`UPDATE reconciler.effects SET needs_read = true, failure_reason = 'x'`)
	h.pass(time.Minute)
	h.run()
	// Sources keep little; what a less careful one may have kept must go too.
	h.exec(`UPDATE reconciler.effects SET metadata = jsonb_build_object('mail', $1::text), created_by = $1 WHERE kind = 'refund'`, personal)
	h.exec(`UPDATE reconciler.blobs SET bytes = convert_to($1, 'UTF8') WHERE about LIKE '% re\_%'`, personal)
	h.exec(`INSERT INTO reconciler.effect_changes (tenant, system, account, mode, id, change_id, at, before, after)
		SELECT tenant, system, account, mode, id, 'x', $2, jsonb_build_object('metadata', $1::text), jsonb_build_object('created_by', $1::text) FROM reconciler.effects WHERE kind = 'refund'`,
		personal, h.now())
	if before := h.traces(); len(before) < 12 {
		t.Fatalf("only %d traces: %v", len(before), before)
	}
	var missing *ledger.NotFoundError
	if _, err := h.ledger.Erase(t.Context(), "INV-9", h.now()); !errors.As(err, &missing) {
		t.Errorf("an unknown reference: %v", err)
	}
	for n, reference := range []string{i.id, "INV-" + other.id} {
		done, err := h.ledger.Erase(t.Context(), reference, h.now())
		if err != nil {
			t.Fatal(err)
		}
		events, err := h.inbox.EraseBytes(t.Context(), done.About, h.now())
		if err != nil {
			t.Fatal(err)
		}
		if done.Requests != 1 || done.Effects != 1 || done.Bytes < 1 || events < 1 {
			t.Errorf("%s: %+v and %d events", reference, done, events)
		}
		if left := h.traces(); n == 0 && len(left) == 0 || n == 1 && len(left) != 0 {
			t.Errorf("after %s: %v", reference, left)
		}
	}
	for _, o := range []intent{i, other} {
		story := h.wantState(o, recon.Succeeded)
		if last := story.Journal[len(story.Journal)-1]; last.Kind != recon.EntryErased {
			t.Errorf("the last entry is %s", last.Kind)
		}
	}
	verified, err := h.ledger.Verify(t.Context())
	if err != nil || len(verified.Broken) != 0 {
		t.Errorf("chains: %+v, %v", verified, err)
	}
	again, err := h.ledger.Erase(t.Context(), i.id, h.now())
	if err != nil || again.Requests+again.Effects+again.Bytes != 0 {
		t.Errorf("once more: %+v, %v", again, err)
	}
}

func TestWhatNoActionMakesIsLeftAloneAndItsBytesAreErasedWithWhatHangsUnderIt(t *testing.T) {
	t.Parallel()
	h := newHooked(t)
	h.down = true
	h.intake.Kinds = map[recon.SourceName][]string{testSource: {"refund"}}
	i := refund(1)
	h.happen(i, h.lose(i))
	h.post2(h.event("evt_1", "charge.refunded", map[string]any{
		"id": i.charge, "object": "charge", "amount": 5000, "amount_captured": 5000, "amount_refunded": i.amount, "captured": true, "currency": "eur",
		"customer": nil, "metadata": map[string]any{}, "payment_intent": nil, "refunded": false, "status": "succeeded", "created": h.now().Unix(),
		"billing_details": map[string]any{"email": personal},
	}))
	h.take()
	if got := h.rows(`SELECT kind || ' ' || id FROM reconciler.effects`); len(got) != 0 {
		t.Errorf("stored: %v", got)
	}
	h.run() // the charge's refunds are listed all the same
	h.wantState(i, recon.Succeeded)
	if len(h.traces()) == 0 {
		t.Fatal("no trace to be erased")
	}
	done, err := h.ledger.Erase(t.Context(), i.id, h.now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.inbox.EraseBytes(t.Context(), done.About, h.now()); err != nil {
		t.Fatal(err)
	}
	if left := h.traces(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
