package ledger_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/breaker"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestWritersOfTheSameEffectsWaitForEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.seed("op-1")
	var effects []recon.Effect
	for i := range 20 {
		e := refund(o, fmt.Sprintf("re_%02d", i))
		e.Reference = ""
		effects = append(effects, e)
	}
	var g sync.WaitGroup
	for i := range 8 {
		mine := slices.Clone(effects)
		if i%2 == 1 {
			slices.Reverse(mine)
		}
		g.Go(func() {
			if _, err := w.led.Record(t.Context(), ledger.Batch{Now: t0, Effects: mine}); err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
	if n := one[int](w, `SELECT count(*) FROM reconciler.effects`); n != 20 {
		t.Errorf("%d effects, want each once", n)
	}
}

func TestAnInterruptedRecordLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	for _, how := range breaker.Ways {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.seed("op-1")
			now := t0.Add(time.Minute)
			o := w.due(now, 10)[0].Operation
			h := w.hold()
			// It breaks off at every statement, until the batch gets through.
			for n := 1; n < 40; n++ {
				b := &breaker.Breaker{How: how, At: n}
				ctx := b.Context(t.Context())
				led, err := w.breaking(b)
				if err == nil {
					_, err = led.Record(ctx, closing(h, now, o))
				}
				state := one[string](w, `SELECT state FROM reconciler.operations`)
				rows := one[int](w, `SELECT (SELECT count(*) FROM reconciler.looks) + (SELECT count(*) FROM reconciler.effects) + (SELECT count(*) FROM reconciler.matches)
					+ (SELECT count(*) FROM reconciler.blobs) + (SELECT count(*) FROM reconciler.journal WHERE seq > 1)`)
				if state == "succeeded" && rows == 5 {
					if n < 6 {
						t.Fatalf("it got through when it broke off at statement %d", n)
					}
					return // whether or not the caller heard of it
				}
				if err == nil {
					t.Fatalf("broken off at statement %d, and no error", n)
				}
				if state != "unknown" || rows != 0 {
					t.Fatalf("broken off at statement %d: state %s and %d rows of evidence", n, state, rows)
				}
			}
			t.Fatal("never got through")
		})
	}
}

func TestAConcurrentFinishIsNeverOverwritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.hold()
	now := t0.Add(time.Minute)
	for i := range 10 {
		id := fmt.Sprintf("op-%d", i)
		w.seed(id)
		cases, err := w.led.Cases(t.Context(), []recon.OperationID{recon.OperationID(id)})
		if err != nil {
			t.Fatal(err)
		}
		finished := make(chan error, 1)
		go func() { // a worker's late answer, which closes the operation by its own evidence
			_, err := w.db.Exec(t.Context(), `UPDATE reconciler.operations SET state = 'failed', closed_at = now(), version = version + 1
				WHERE tenant = 'default' AND operation_id = $1 AND version = 1`, id)
			finished <- err
		}()
		got := w.record(closing(h, now, cases[0].Operation))
		if err := <-finished; err != nil {
			t.Fatal(err)
		}
		s := w.story(id)
		switch lost := len(got.Lost) == 1; {
		case lost && (s.Operation.State != recon.Failed || len(s.Journal) != 1):
			t.Errorf("%s: reported lost, but is %s with %d entries", id, s.Operation.State, len(s.Journal))
		case !lost && (s.Operation.State != recon.Succeeded || len(s.Journal) != 2):
			t.Errorf("%s: reported recorded, but is %s with %d entries", id, s.Operation.State, len(s.Journal))
		}
	}
}
