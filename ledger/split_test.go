package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestABadRowIsSetAsideAndStopsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 7 {
		w.seed(fmt.Sprintf("op-%d", i))
	}
	now := t0.Add(time.Minute)
	h := w.hold()
	var ops []recon.Operation
	for _, c := range w.due(now, 10) {
		ops = append(ops, c.Operation)
	}
	poisoned := func(now time.Time, ops ...recon.Operation) ledger.Batch {
		b := closing(h, now, ops...)
		for i, d := range b.Decisions {
			if d.Operation == "op-3" {
				b.Effects[i].FailureReason = "a zero \x00 inside"
			}
		}
		// One that nobody asked for is as bad, and another one is good.
		stray := refund(ops[0], "re_stray")
		stray.Reference, stray.Metadata = "", json.RawMessage(`{"broken": "\u0000"}`)
		good := refund(ops[0], "re_good")
		good.Reference = ""
		b.Effects = append(b.Effects, stray, good)
		return b
	}
	got := w.record(poisoned(now, ops...))
	if len(got.SetAside) != 1 || got.SetAside[0].Operation != "op-3" || got.SetAside[0].Failures != 1 {
		t.Fatalf("set aside: %+v, want op-3 once", got.SetAside)
	}
	if n := one[int](w, `SELECT count(*) FROM reconciler.operations WHERE state = 'succeeded'`); n != 6 {
		t.Errorf("%d operations closed, want 6", n)
	}
	if n := one[int](w, `SELECT count(*) FROM reconciler.effects WHERE id = 're_good'`); n != 1 {
		t.Error("the good effect beside the bad one is not on the shelf")
	}
	w.verifyChains()

	// Each further failure waits longer; the fifth one is told to people.
	for i := 2; i <= 5; i++ {
		s := w.story("op-3")
		if len(s.Findings) != 0 || s.Check.Failures != i-1 || !s.Check.Next.After(now) {
			t.Fatalf("before failure %d: %d findings, plan %+v", i, len(s.Findings), s.Check)
		}
		now = s.Check.Next
		w.record(poisoned(now, s.Operation))
	}
	s := w.story("op-3")
	if len(s.Findings) != 1 || s.Findings[0].Kind != recon.FindUnresolved || s.Check.Failures != 5 {
		t.Errorf("after five failures: findings %+v, plan %+v", s.Findings, s.Check)
	}
	// Mended, it closes and starts counting anew.
	w.record(closing(h, now, s.Operation))
	if s := w.story("op-3"); s.Operation.State != recon.Succeeded || s.Check.Failures != 0 {
		t.Errorf("after mending: %s with %d failures", s.Operation.State, s.Check.Failures)
	}
}

// What belongs to nobody is no fault of the only operation beside it.
func TestTheOnlyOperationBesideABadRowIsConcluded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.seed("op-1")
	now := t0.Add(time.Minute)
	b := closing(w.hold(), now, o)
	stray := refund(o, "re_stray")
	stray.Reference, stray.FailureReason = "", "a zero \x00 inside"
	b.Effects = append(b.Effects, stray)
	b.Findings = []recon.Finding{{Kind: recon.FindBlind, Certainty: recon.Proof, Source: source, Reason: "it does not answer"}}
	got := w.record(b)
	if len(got.SetAside) != 0 || len(got.LeftOut) != 1 || got.LeftOut[0] != stray.Identity() {
		t.Errorf("set aside %+v, left out %+v: want %s left out alone", got.SetAside, got.LeftOut, stray.ID)
	}
	if s := w.story("op-1"); s.Operation.State != recon.Succeeded || s.Check.Failures != 0 {
		t.Errorf("the operation is %s with %d failures", s.Operation.State, s.Check.Failures)
	}
	if got.Opened[recon.FindBlind] != 1 {
		t.Errorf("findings opened: %v, want the one of the source", got.Opened)
	}
}

// That a range was seen completely answers for operations of which nothing is stored.
func TestARangeThatShowedWhatCannotBeStoredWasNotSeen(t *testing.T) {
	t.Parallel()
	bad := func(e *recon.Effect) { e.FailureReason = "a zero \x00 inside" }
	for name, spoil := range map[string]func(*ledger.Batch){
		"of an operation": func(b *ledger.Batch) { bad(&b.Effects[0]) },
		"of nobody":       func(b *ledger.Batch) { bad(&b.Effects[2]) },
		"of nobody, with no operation": func(b *ledger.Batch) {
			bad(&b.Effects[2])
			b.Decisions, b.Versions = nil, nil
		},
		"nothing": func(*ledger.Batch) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.seed("op-1")
			w.seed("op-2")
			now := t0.Add(time.Minute)
			cases := w.due(now, 10)
			b := closing(w.hold(), now, cases[0].Operation, cases[1].Operation)
			for _, id := range []string{"re_stray", "re_other"} {
				e := refund(cases[0].Operation, id)
				e.Reference = ""
				b.Effects = append(b.Effects, e)
			}
			b.Coverage = []recon.Coverage{{
				Source: source, Kind: "refund", Account: "acct_1", Mode: "live", Window: recon.Window{From: t0.Add(-time.Hour), To: t0}, At: now, LookID: b.Looks[0].ID,
			}}
			spoil(&b)
			got := w.record(b)
			stored := one[int](w, `SELECT count(*) FROM reconciler.effects`)
			ranges := one[int](w, `SELECT count(*) FROM reconciler.coverage`)
			switch whole := name == "nothing"; {
			case whole && (stored != 4 || ranges != 1):
				t.Errorf("%d effects and %d ranges are stored, want 4 and 1", stored, ranges)
			case !whole && (stored != 3 || ranges != 0 || len(got.SetAside)+len(got.LeftOut) != 1):
				t.Errorf("%d effects and %d ranges are stored, %d set aside, %d left out: want 3, none, and one of the last two", stored, ranges, len(got.SetAside), len(got.LeftOut))
			}
		})
	}
}

func TestAnIllegalChangeIsSetAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("op-1", func(o *recon.Operation, k *recon.Check) { o.State, o.ClosedAt = recon.Succeeded, t0 })
	o := w.story("op-1").Operation
	d := stay(o, t0.Add(time.Hour))
	d.To = recon.Failed
	got := w.record(deciding(w.hold(), t0, []recon.Operation{o}, d))
	if len(got.SetAside) != 1 || !strings.Contains(got.SetAside[0].Fault, "succeeded may not become failed") || w.story("op-1").Operation.State != recon.Succeeded {
		t.Errorf("succeeded to failed: %+v", got)
	}
}

func TestABatchIsCheckedBeforeItIsWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.seed("op-1")
	d := stay(o, t0)
	tests := []struct {
		name  string
		batch ledger.Batch
	}{
		{"without a time", deciding(ledger.Hold{}, time.Time{}, []recon.Operation{o}, d)},
		{"without a guard", deciding(ledger.Hold{}, t0, nil, d)},
		{"with two decisions on one operation", deciding(ledger.Hold{}, t0, []recon.Operation{o}, d, d)},
		{"with a source's state and no hold", ledger.Batch{Now: t0, SourceState: &ledger.SourceState{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.led.Record(t.Context(), tt.batch)
			if _, usage := errors.AsType[*ledger.UsageError](err); !usage {
				t.Errorf("got %v, want a UsageError", err)
			}
		})
	}
}
