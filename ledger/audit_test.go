package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// closed makes an operation of the seed one that succeeded with an effect.
func closed(id string, at time.Time) func(*recon.Operation, *recon.Check) {
	return func(o *recon.Operation, k *recon.Check) {
		o.State, o.EffectID, o.CreatedAt, o.SentAt, o.UnknownSince, o.InDoubt = recon.Succeeded, "re_"+id, at, at, time.Time{}, false
		k.Next = time.Time{}
	}
}

// shown puts an effect of an operation into the ledger; change is more of its row.
func (w *world) shown(id, owner string, at time.Time, change string) {
	w.Helper()
	w.exec(`INSERT INTO reconciler.effects (tenant, system, account, mode, id, source, kind, status, amount, currency, owner, reference, created_at, first_seen_at, seen_at)
		VALUES ('default', 'stripe-main', 'acct_1', 'live', $1, 'stripe-main', 'refund', 'completed', 4200, 'EUR', nullif($2, ''), nullif($2, ''), $3, $3, $3)`, id, owner, at)
	if change != "" {
		w.exec(`UPDATE reconciler.effects SET `+change+` WHERE tenant = 'default' AND id = $1`, id)
	}
}

func day(w *world) ledger.AuditScope {
	return ledger.AuditScope{Source: source, Window: recon.Window{From: t0.Add(-12 * time.Hour), To: t0.Add(12 * time.Hour)}}
}

func TestAuditOperationsCountsPlainOnesAndGivesTheOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	odd := map[string]string{ // what differs at the provider
		"amount": "amount = 4100", "currency": "currency = 'USD'", "status": "status = 'failed'", "account": "account = 'acct_2'", "parent": "parent = 'pi_other'",
		"target": "target = 'order:other'", "key": "key = 'k-other'", "reference": "reference = 'op_other'", "doubt": "needs_read = true", "another": "id = 're_other'",
	}
	for _, id := range []string{"plain1", "plain2", "told", "unknown", "without", "twice", "early"} {
		at := t0
		if id == "early" {
			at = t0.Add(-13 * time.Hour)
		}
		w.seed(id, closed(id, at))
	}
	for id, change := range odd {
		w.seed(id, closed(id, t0))
		w.shown("re_"+id, id, t0, change)
	}
	for _, id := range []string{"plain1", "plain2", "told", "unknown", "twice", "early"} {
		w.shown("re_"+id, id, t0, "")
	}
	w.shown("re_twice2", "twice", t0, "")
	w.exec(`UPDATE reconciler.effects SET created_at = $1 WHERE id = 're_plain2'`, t0.Add(13*time.Hour))
	w.exec(`UPDATE reconciler.operations SET state = 'manual_review' WHERE operation_id = 'unknown'`)
	w.exec(`INSERT INTO reconciler.findings (tenant, finding_id, fingerprint, kind, certainty, state, source, operation_ids, reason, opened_at)
		VALUES ('default', 'f', 'f', 'mismatch', 'proof', 'open', 'stripe-main', '{told}', 'r', $1)`, t0)
	c, err := w.led.AuditOperations(t.Context(), day(w), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	want := []recon.OperationID{"told", "twice", "unknown", "without"}
	for id := range odd {
		want = append(want, recon.OperationID(id))
	}
	slices.Sort(want)
	// Of the plain ones one has its effect outside the window.
	diff(t, "the chunk", ledger.AuditChunk{Plain: 2, PlainEffects: 1, Effects: 1 + len(odd) + 4, Odd: want}, c)
	again, err := w.led.AuditOperations(t.Context(), day(w), want[2], 2)
	if err != nil || !slices.Equal(again.Odd, want[3:5]) || again.Plain != 2 {
		t.Errorf("after %s: %+v, %v", want[2], again, err)
	}
	all := day(w)
	all.All = true
	if c, err := w.led.AuditOperations(t.Context(), all, "", 100); err != nil || c.Plain != 0 || len(c.Odd) != len(want)+2 {
		t.Errorf("all to be judged: %+v, %v", c, err)
	}
}

func TestAuditTwinsGivesWhatMayBeOneIntent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	put := func(id, target string, at time.Time, more string) {
		w.seed(id, closed(id, at), func(o *recon.Operation, _ *recon.Check) { o.Target = target })
		if more != "" {
			w.exec(`UPDATE reconciler.operations SET `+more+` WHERE tenant = 'default' AND operation_id = $1`, id)
		}
	}
	put("near1", "order:1", t0, "")
	put("near2", "order:1", t0.Add(time.Hour), "")
	put("far1", "order:2", t0.Add(-20*time.Hour), "")
	put("far2", "order:2", t0.Add(20*time.Hour), "")
	put("edge1", "order:3", t0.Add(-20*time.Hour), "") // outside, and close to one inside
	put("edge2", "order:3", t0.Add(-11*time.Hour), "")
	put("call1", "order:4", t0.Add(-30*time.Hour), "run = 'r', tool_call = 'c'")
	put("call2", "order:4", t0.Add(5*time.Hour), "run = 'r', tool_call = 'c'")
	put("ref1", "order:5", t0.Add(-100*24*time.Hour), "reference = 'inv-1'")
	put("ref2", "order:5", t0, "reference = 'inv-1'")
	put("mail", "order:7", t0.Add(-100*24*time.Hour), "reference = 'ACME / RE-0042'")
	put("portal", "order:7", t0, "reference = 'ＡＣＭＥ re 42'")
	put("signs1", "order:8", t0.Add(-100*24*time.Hour), "reference = '--'")
	put("signs2", "order:8", t0, "reference = '//'")
	put("other1", "order:6", t0, "")
	put("other2", "order:6", t0, "amount = 1")
	var groups []string
	err := w.led.AuditTwins(t.Context(), day(w), 24*time.Hour, func(ids []recon.OperationID) error {
		groups = append(groups, fmt.Sprint(ids))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(groups)
	diff(t, "groups", []string{"[call1 call2]", "[edge1 edge2]", "[mail portal]", "[near1 near2]", "[ref1 ref2]"}, groups)
}

func TestALargeGroupOfTwinsComesInPartsThatOverlap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 4500
	w.exec(`INSERT INTO reconciler.operations (tenant, operation_id, source, action, target, amount, currency, state, created_at, account, mode, policy_version)
		SELECT 'default', 'op_' || lpad(i::text, 5, '0'), 'stripe-main', 'refund.create', 'list', 1, 'EUR', 'succeeded', $1::timestamptz + i * interval '1 second', 'acct_1', 'live', 1
		FROM generate_series(1, $2::int) i`, t0, n)
	seen := map[recon.OperationID]int{}
	parts, most := 0, 0
	var last recon.OperationID
	err := w.led.AuditTwins(t.Context(), day(w), 24*time.Hour, func(ids []recon.OperationID) error {
		if parts++; parts > 1 && !slices.Contains(ids, last) {
			t.Errorf("part %d begins at %s and does not meet the one before, which ended at %s", parts, ids[0], last)
		}
		most, last = max(most, len(ids)), ids[len(ids)-1]
		for _, id := range ids {
			seen[id]++
		}
		return nil
	})
	if err != nil || len(seen) != n || parts < 3 || most > 2500 {
		t.Errorf("%d of %d operations in %d parts of at most %d: %v", len(seen), n, parts, most, err)
	}
}

func TestAuditFailedGivesTargetsWithThreeFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for n := range 4 {
		id := fmt.Sprintf("op%d", n)
		w.seed(id, closed(id, t0), func(o *recon.Operation, _ *recon.Check) { o.Target = "order:bad" })
		w.shown("re_"+id, id, t0.Add(time.Duration(n)*time.Minute), "status = 'failed'")
	}
	w.shown("re_x", "", t0, "status = 'failed', target = 'order:twice'")
	w.shown("re_y", "", t0, "status = 'failed', target = 'order:twice'")
	w.shown("re_z", "", t0, "status = 'failed'") // of which nobody knows what for
	var got []string
	err := w.led.AuditFailed(t.Context(), day(w), func(list []ledger.FailedEffect) error {
		for _, f := range list {
			got = append(got, fmt.Sprint(f.Target, " ", f.Effect.ID, " ", f.Operation))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"order:bad re_op0 op0", "order:bad re_op1 op1", "order:bad re_op2 op2", "order:bad re_op3 op3"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestAListIsRememberedWithItsPageAndNeedsTheHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hold, err := w.led.HoldSource(t.Context(), source, "test", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	state := ledger.ListState{
		Kind: "refund", Account: "acct_1", Mode: "live", Window: recon.Window{From: t0, To: t0.Add(time.Hour)}, Cursor: "page 2", BeganAt: t0.Add(time.Hour),
	}
	if _, err := w.led.Record(t.Context(), ledger.Batch{Hold: hold, Now: t0, List: &state}); err != nil {
		t.Fatal(err)
	}
	got, err := w.led.ListStates(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "the list", []ledger.ListState{state}, got)
	if _, err := w.led.Record(t.Context(), ledger.Batch{Now: t0, List: &state}); err == nil {
		t.Error("a list was remembered without a hold")
	}
	hold.Token--
	if _, err := w.led.Record(t.Context(), ledger.Batch{Hold: hold, Now: t0, List: &state}); err == nil {
		t.Error("a stale hold moved a list")
	}
}
