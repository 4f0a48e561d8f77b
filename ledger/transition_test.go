package ledger_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestB29_AConclusionEndsTheLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("op-1210", func(o *recon.Operation, k *recon.Check) {
		o.State, o.UnknownSince, o.LeaseUntil = recon.InProgress, time.Time{}, t0.Add(time.Hour)
	})
	now := t0.Add(time.Minute)
	o := w.due(now, 10)[0].Operation
	w.record(closing(w.hold(), now, o))
	if n := one[int](w, `SELECT count(*) FROM reconciler.operations WHERE lease_token IS NULL AND state = 'succeeded'`); n != 1 {
		t.Error("the worker's token still serves after the conclusion")
	}
	// The worker wakes and says something else: kept as evidence, changes nothing.
	answer := one[json.RawMessage](w, `SELECT reconciler.finish_attempt('{"operation_id": "op-1210", "token": "token-op-1210", "class": "refused"}')`)
	var said struct {
		State   string
		Applied bool
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		t.Fatal(err)
	}
	if said.Applied || said.State != "succeeded" {
		t.Errorf("the late finish answered %s, want not applied, succeeded", answer)
	}
	w.verifyChains()
}

func TestReleaseGrantsOneClaimAndTakesItsSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`UPDATE reconciler.policies SET body = $1`, policyBody(t, true))
	same := func(o *recon.Operation, _ *recon.Check) { o.Target, o.Parent = "order:7", "pi_7" }
	w.seed("op-1", same)
	w.seed("op-2", same)
	now := t0.Add(time.Minute)
	h := w.hold()
	release := func(o recon.Operation) recon.Decision {
		d := stay(o, now.Add(time.Hour))
		d.Rule, d.To, d.Release = "absent_release", recon.Pending, true
		return d
	}
	cases := w.due(now, 10)
	ops := []recon.Operation{cases[0].Operation, cases[1].Operation}
	got := w.record(deciding(h, now, ops, release(ops[0]), release(ops[1])))
	if len(got.Kept) != 1 || got.Kept[0].Operation != "op-2" || len(got.Lost) != 0 {
		t.Fatalf("recorded: %+v, want op-2 kept", got)
	}
	s := w.story("op-1")
	if s.Operation.State != recon.Pending || !s.Operation.Released || !s.Operation.UnknownSince.IsZero() {
		t.Errorf("released operation: %+v", s.Operation)
	}
	slot := one[string](w, `SELECT slot FROM reconciler.operations WHERE operation_id = 'op-1'`)
	if want := one[string](w, `SELECT reconciler.intent_slot(o) FROM reconciler.operations o WHERE o.operation_id = 'op-1'`); slot != want {
		t.Errorf("slot %s is not the one that open_operation makes, %s", slot, want)
	}
	// The other one, still unknown, is looked at again soon and is refused again.
	s = w.story("op-2")
	if s.Operation.State != recon.Unknown || s.Check.Next.After(now.Add(15*time.Minute)) {
		t.Errorf("kept operation: state %s, next %s", s.Operation.State, s.Check.Next)
	}
	later := now.Add(16 * time.Minute)
	o := s.Operation
	if got := w.record(deciding(h, later, []recon.Operation{o}, release(o))); len(got.Kept) != 1 {
		t.Errorf("second release while op-1 is open: %+v, want kept", got)
	}
	// Once the first one is closed its slot is free.
	first := w.story("op-1").Operation
	w.record(closing(h, later, first))
	o = w.story("op-2").Operation
	if got := w.record(deciding(h, later, []recon.Operation{o}, release(o))); len(got.Kept) != 0 || w.story("op-2").Operation.State != recon.Pending {
		t.Errorf("release after op-1 closed: %+v", got)
	}
	w.verifyChains()
}

func TestUnknownSinceKeepsItsAge(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		from, to   recon.State
		have, want time.Time
	}{
		{"unknown that becomes a person's keeps it", recon.Unknown, recon.ManualReview, t0, t0},
		{"a person's that becomes unknown keeps it", recon.ManualReview, recon.Unknown, t0, t0},
		{"failed that becomes unknown begins anew", recon.Failed, recon.Unknown, t0, t0.Add(time.Minute)},
		{"in progress that becomes unknown begins now", recon.InProgress, recon.Unknown, time.Time{}, t0.Add(time.Minute)},
		{"a repeat that becomes unknown keeps it", recon.InProgress, recon.Unknown, t0, t0},
		{"released begins without", recon.Unknown, recon.Pending, t0, time.Time{}},
	}
	w := newWorld(t)
	h := w.hold()
	now := t0.Add(time.Minute)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id := fmt.Sprintf("op-%d", i)
			w.seed(id, func(o *recon.Operation, k *recon.Check) {
				o.State, o.UnknownSince = tt.from, tt.have
				if tt.from == recon.InProgress {
					o.LeaseUntil = t0
				}
				if tt.from == recon.Failed {
					o.ClosedAt = t0
				}
			})
			o := w.story(id).Operation
			d := stay(o, now.Add(time.Hour))
			d.To = tt.to
			w.record(deciding(h, now, []recon.Operation{o}, d))
			got := w.story(id).Operation
			if got.State != tt.to || !got.UnknownSince.Equal(tt.want) || !got.ClosedAt.IsZero() {
				t.Errorf("got %s since %s, closed %s; want %s since %s", got.State, got.UnknownSince, got.ClosedAt, tt.to, tt.want)
			}
		})
	}
}
