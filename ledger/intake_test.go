package ledger_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// shelve stores effects that belong to nobody.
func (w *world) shelve(effects ...recon.Effect) {
	w.Helper()
	w.record(ledger.Batch{Now: t0, Effects: effects})
}

func TestOperationsThatCameAfterTheirEffectsAreFoundByEveryNameOfThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	opened := func(at time.Time) func(*recon.Operation, *recon.Check) {
		return func(o *recon.Operation, _ *recon.Check) { o.CreatedAt = at }
	}
	named := func(id string, name func(recon.Operation, *recon.Effect), change ...func(*recon.Operation, *recon.Check)) {
		o := w.seed(id, append([]func(*recon.Operation, *recon.Check){opened(t0)}, change...)...)
		e := refund(o, "re_"+id)
		e.Reference = ""
		name(o, &e)
		w.shelve(e)
	}
	named("op_reference", func(o recon.Operation, e *recon.Effect) { e.Reference = string(o.ID) })
	named("op_key", func(o recon.Operation, e *recon.Effect) { e.Key = o.Key })
	named("op_effect", func(recon.Operation, *recon.Effect) {}, func(o *recon.Operation, _ *recon.Check) { o.EffectID = "re_op_effect" })
	named("op_before", func(o recon.Operation, e *recon.Effect) { e.Reference = string(o.ID) }, opened(t0.Add(-time.Hour)))
	named("op_alike", func(recon.Operation, *recon.Effect) {}) // parent and amount only
	w.seed("op_alone", opened(t0))
	got, err := w.led.Appeared(t.Context(), t0.Add(-time.Minute), 100)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]recon.OperationID{"op_effect", "op_key", "op_reference"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err = w.led.Appeared(t.Context(), t0.Add(-2*time.Hour), 1); err != nil || len(got) != 1 || got[0] != "op_before" {
		t.Errorf("the oldest first, at most one: %v, %v", got, err)
	}
}

func TestOpenOperationsBecomeDueAndClosedOnesOnlyWhereTheyAreWoken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	later := func(_ *recon.Operation, k *recon.Check) { k.Next = t0.Add(time.Hour) }
	w.seed("op_open", later)
	w.seed("op_due", func(_ *recon.Operation, k *recon.Check) { k.Next = t0.Add(-time.Hour) })
	w.seed("op_closed", later, func(o *recon.Operation, _ *recon.Check) { o.State, o.ClosedAt = recon.Succeeded, t0 })
	if err := w.led.CheckNow(t.Context(), []recon.OperationID{"op_open", "op_due", "op_closed", "op_nobody"}, t0); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]time.Time{"op_open": t0, "op_due": t0.Add(-time.Hour), "op_closed": t0.Add(time.Hour)} {
		if got := one[time.Time](w, `SELECT next_check FROM reconciler.checks WHERE operation_id = $1`, id); !got.Equal(want) {
			t.Errorf("%s is due at %s, want %s", id, got.UTC(), want)
		}
	}
	w.seed("op_done", func(o *recon.Operation, k *recon.Check) { // with its ladder
		o.State, o.ClosedAt, k.Next = recon.Succeeded, t0, time.Time{}
	})
	if err := w.led.Wake(t.Context(), []recon.OperationID{"op_due", "op_closed", "op_done"}, t0); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]time.Time{"op_due": t0.Add(-time.Hour), "op_closed": t0, "op_done": t0} {
		if got := one[time.Time](w, `SELECT next_check FROM reconciler.checks WHERE operation_id = $1`, id); !got.Equal(want) {
			t.Errorf("woken, %s is due at %s, want %s", id, got.UTC(), want)
		}
	}
}

func TestWhatIsWantedIsReadUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	wish := ledger.Reading{Source: source, Kind: "refund", Account: "acct_1", Mode: "live", Parent: "ch_1", From: t0.Add(-time.Minute)}
	want := func(at time.Time) {
		t.Helper()
		if err := w.led.WantReadings(t.Context(), []ledger.Reading{wish, wish}, at); err != nil {
			t.Fatal(err)
		}
	}
	readings := func(at time.Time) []ledger.Reading {
		t.Helper()
		list, err := w.led.Readings(t.Context(), source, at, 10)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	finish := func(at time.Time, r ledger.Read) {
		t.Helper()
		if err := w.led.FinishReadings(t.Context(), r, at); err != nil {
			t.Fatal(err)
		}
	}
	want(t0)
	first := readings(t0)
	if len(first) != 1 || first[0].Parent != "ch_1" || !first[0].From.Equal(wish.From) || !first[0].Since.Equal(t0) {
		t.Fatalf("to be read: %+v", first)
	}
	finish(t0, ledger.Read{Unanswered: first})
	if list := readings(t0.Add(59 * time.Second)); len(list) != 0 {
		t.Errorf("at once again: %+v", list)
	}
	again := readings(t0.Add(time.Minute))
	if len(again) != 1 || again[0].Attempts != 1 {
		t.Fatalf("after its wait: %+v", again)
	}
	want(t0.Add(time.Minute + time.Second)) // another event, while it is read
	finish(t0.Add(2*time.Minute), ledger.Read{Answered: again})
	if list := readings(t0.Add(2 * time.Minute)); len(list) != 1 || list[0].Attempts != 0 {
		t.Errorf("asked for again meanwhile: %+v", list)
	}
	finish(t0.Add(3*time.Minute), ledger.Read{Answered: readings(t0.Add(2 * time.Minute))})
	if list := readings(t0.Add(time.Hour)); len(list) != 0 {
		t.Errorf("after the answer: %+v", list)
	}
}

func TestADoubtAboutAnEffectIsReadAndEndsWhereTheProviderHasItNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := refund(w.seed("op_1"), "re_1")
	w.shelve(e)
	w.exec(`UPDATE reconciler.effects SET needs_read = true`)
	read := func(at time.Time) []ledger.Reading {
		t.Helper()
		list, err := w.led.Readings(t.Context(), source, at, 10)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	list := read(t0)
	if len(list) != 1 || list[0].EffectID != "re_1" || !list[0].Since.IsZero() {
		t.Fatalf("to be read: %+v", list)
	}
	if err := w.led.FinishReadings(t.Context(), ledger.Read{Unanswered: list}, t0); err != nil {
		t.Fatal(err)
	}
	if list = read(t0); len(list) != 0 {
		t.Errorf("at once again: %+v", list)
	}
	if list = read(t0.Add(time.Minute)); len(list) != 1 {
		t.Fatalf("after its wait: %+v", list)
	}
	if err := w.led.FinishReadings(t.Context(), ledger.Read{Answered: list, Gone: list}, t0.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if list = read(t0.Add(24 * time.Hour)); len(list) != 0 || one[bool](w, `SELECT needs_read FROM reconciler.effects`) {
		t.Errorf("still in doubt: %+v", list)
	}
}
