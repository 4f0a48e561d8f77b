package ledger_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestDueGivesWhatIsDueInTheOrderOfItsCheck(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	next := func(at time.Time) func(*recon.Operation, *recon.Check) {
		return func(_ *recon.Operation, k *recon.Check) { k.Next = at }
	}
	w.seed("op-late", next(t0.Add(2*time.Minute)))
	w.seed("op-first", next(t0.Add(-time.Hour)))
	w.seed("op-now", next(t0))
	w.seed("op-other", func(o *recon.Operation, k *recon.Check) { o.Source, k.Next = "bank", t0 })
	w.seed("op-closed", func(o *recon.Operation, k *recon.Check) {
		o.State, o.ClosedAt, k.Next = recon.Succeeded, t0.Add(-time.Hour), t0
	})
	ids := func(cases []recon.Case) (out []recon.OperationID) {
		for _, c := range cases {
			out = append(out, c.Operation.ID)
		}
		return out
	}
	diff(t, "due", []recon.OperationID{"op-first", "op-now"}, ids(w.due(t0, 10)))
	diff(t, "due, at most one", []recon.OperationID{"op-first"}, ids(w.due(t0, 1)))
	closed, err := w.led.Due(t.Context(), ledger.Scope{Source: source, Ladder: ledger.ClosedOperations}, t0, 10)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "due on the closed ladder", []recon.OperationID{"op-closed"}, ids(closed))
	w.calls.n.Store(0)
	if n := len(w.due(t0.Add(-2*time.Hour), 10)); n != 0 || w.calls.n.Load() != 1 {
		t.Errorf("nothing due: %d cases by %d statements, want 0 by 1", n, w.calls.n.Load())
	}
}

func TestDueReadsTheWholeOperationAndItsPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := w.seed("op-1")
	w.exec(`UPDATE reconciler.operations SET reference = 'inv-7', "group" = 'g-1', run = 'run-1', tool_call = 'call-1', "case" = 'case-1', step = 2,
		error_code = 'timeout', metadata = '{"a": 1}', last_class = 'indeterminate', key_expires_at = $1, lease_until = $1, released = false`, t0.Add(time.Hour))
	step := int64(2)
	want.Reference, want.Group, want.Run, want.ToolCall, want.Case, want.Step = "inv-7", "g-1", "run-1", "call-1", "case-1", &step
	want.ErrorCode, want.Metadata, want.LastClass = "timeout", json.RawMessage(`{"a": 1}`), recon.ClassIndeterminate
	want.KeyExpiresAt, want.LeaseUntil = t0.Add(time.Hour), t0.Add(time.Hour)
	c := w.due(t0.Add(time.Minute), 10)[0]
	diff(t, "operation", want, c.Operation)
	p := recon.DefaultPolicy()
	p.Action, p.Version, p.Source, p.Effect, p.Class = "refund.create", 1, source, "refund", recon.Irreversible
	diff(t, "policy", p, c.Policy)
	diff(t, "plan", recon.Check{Next: t0.Add(30 * time.Second), Absence: recon.Absence{LookIDs: []string{}}}, c.Check)
	// A newer version is in force for operations of an older one too.
	w.exec(`UPDATE reconciler.policies SET active = false`)
	if c := w.due(t0.Add(time.Minute), 10)[0]; c.Policy.Version != 1 || c.Policy.Effect != "refund" {
		t.Errorf("without a policy in force: version %d, want the one that it was opened under", c.Policy.Version)
	}
	w.exec(`INSERT INTO reconciler.policies (tenant, action, version, body, active, created_at) VALUES ('default', 'refund.create', 2, $1, true, $2)`, policyBody(t, true), t0)
	if c := w.due(t0.Add(time.Minute), 10)[0]; c.Policy.Version != 2 || !c.Policy.OneOpen {
		t.Errorf("policy version %d, want the one in force", c.Policy.Version)
	}
}

func TestDueFindsStoredEffects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.seed("op-1", func(o *recon.Operation, _ *recon.Check) { o.EffectID = "re_known" })
	w.exec(`UPDATE reconciler.operations SET "group" = 'g-1'`)
	stranger := func(id string, change func(*recon.Effect)) recon.Effect {
		e := refund(o, id)
		e.Reference, e.Parent, e.OtherParents, e.Money = "", "pi_elsewhere", nil, recon.Money{Minor: 1, Currency: "USD"}
		change(&e)
		return e
	}
	effects := []recon.Effect{
		stranger("re_by_reference", func(e *recon.Effect) { e.Reference = "op-1" }),
		stranger("re_by_group", func(e *recon.Effect) { e.Reference = "g-1" }),
		stranger("re_by_key", func(e *recon.Effect) { e.Key = o.Key }),
		stranger("re_known", func(*recon.Effect) {}),
		stranger("re_test_mode", func(e *recon.Effect) { e.Mode, e.Reference = "test", "op-1" }), // matchers see it and never link it
		stranger("re_alike", func(e *recon.Effect) { e.Parent, e.Money = o.Parent, o.Money }),
		stranger("re_alike_below", func(e *recon.Effect) { e.OtherParents, e.Money = []string{"x", o.Parent}, o.Money }),
		stranger("re_other_amount", func(e *recon.Effect) { e.Parent = o.Parent }),
		stranger("re_nothing", func(*recon.Effect) {}),
	}
	w.record(ledger.Batch{Now: t0, Effects: effects})
	// One that names us and belongs to somebody else is never ours, and we are not absent.
	w.exec(`INSERT INTO reconciler.effects (tenant, system, account, mode, id, source, kind, status, reference, created_at, owner, first_seen_at, seen_at)
		VALUES ('default', 'stripe', 'acct_1', 'live', 're_taken', 'stripe-main', 'refund', 'completed', 'op-1', $1, 'op-9', $1, $1),
			('default', 'stripe', 'acct_1', 'live', 're_owned', 'stripe-main', 'refund', 'completed', NULL, $1, 'op-1', $1, $1)`, t0)
	var got []string
	for _, e := range w.due(t0.Add(time.Minute), 10)[0].Effects {
		got = append(got, e.ID)
	}
	slices.Sort(got)
	diff(t, "candidates", []string{"re_alike", "re_alike_below", "re_by_group", "re_by_key", "re_by_reference", "re_known", "re_owned", "re_taken", "re_test_mode"}, got)
}

func TestLookAlikesAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.seed("op-1")
	var effects []recon.Effect
	for i := range 50 {
		e := refund(o, fmt.Sprintf("re_%02d", i))
		e.Reference = ""
		effects = append(effects, e)
	}
	w.record(ledger.Batch{Now: t0, Effects: effects})
	if n := len(w.due(t0.Add(time.Minute), 10)[0].Effects); n != 20 {
		t.Errorf("%d look-alikes, want the earliest 20", n)
	}
}

func TestB30_StuckOldOperationsNeverHideNewOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.hold()
	for i := range 501 {
		w.seed(fmt.Sprintf("old-%03d", i), func(o *recon.Operation, k *recon.Check) {
			o.CreatedAt = t0.AddDate(-1, 0, 0)
			o.SentAt, o.UnknownSince, k.Next = o.CreatedAt, o.CreatedAt, o.CreatedAt.Add(24*time.Hour)
		})
	}
	for i := range 10 {
		w.seed(fmt.Sprintf("new-%02d", i), func(_ *recon.Operation, k *recon.Check) { k.Next = t0 })
	}
	closed := 0
	now := t0
	for run := 1; run <= 2; run++ { // today's ten close in the next runs
		cases := w.due(now, 500)
		var b ledger.Batch
		var ops []recon.Operation
		for _, c := range cases {
			if c.Operation.CreatedAt.After(t0.AddDate(0, -1, 0)) {
				ops = append(ops, c.Operation)
			}
		}
		b = closing(h, now, ops...)
		closed += len(ops)
		for _, c := range cases {
			if !slices.ContainsFunc(ops, func(o recon.Operation) bool { return o.ID == c.Operation.ID }) {
				b.Decisions = append(b.Decisions, stay(c.Operation, now.Add(24*time.Hour)))
				b.Versions[c.Operation.ID] = c.Operation.Version
			}
		}
		w.record(b)
		now = now.Add(time.Minute)
	}
	if closed != 10 {
		t.Errorf("%d of today's 10 closed in two runs", closed)
	}
	if n := len(w.due(now, 500)); n != 0 {
		t.Errorf("%d operations are due again at once, want none", n)
	}
	s, err := w.led.Snapshot(t.Context(), now)
	if err != nil || len(s.Operations) != 1 || s.Operations[0].Count != 501 {
		t.Errorf("the stuck ones are counted: %+v, %v", s.Operations, err)
	}
}

func TestExpireLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.SimulatedTime(t0))
	under := func(until time.Time) func(*recon.Operation, *recon.Check) {
		return func(o *recon.Operation, k *recon.Check) {
			o.State, o.LeaseUntil, o.UnknownSince, o.InDoubt = recon.InProgress, until, time.Time{}, false
			k.Next = until.Add(time.Minute)
		}
	}
	w.seed("op-over", under(t0.Add(-time.Second)))
	w.seed("op-long-over", under(t0.Add(-time.Hour)))
	w.seed("op-just-over", under(t0))
	w.seed("op-live", under(t0.Add(time.Second)))
	// A run with another idea of time moves ages, and never takes a lease away.
	later := t0.Add(24 * time.Hour)
	n, err := w.led.ExpireLeases(t.Context(), source, later, 1)
	if err != nil || n != 1 || w.story("op-long-over").Operation.State != recon.Unknown {
		t.Fatalf("at most one: %d, %v; want the one that is longest over", n, err)
	}
	if n, err = w.led.ExpireLeases(t.Context(), source, later, 10); err != nil || n != 2 {
		t.Fatalf("the others: %d, %v; want 2", n, err)
	}
	s := w.story("op-over")
	if o := s.Operation; o.State != recon.Unknown || !o.InDoubt || !o.UnknownSince.Equal(later) || !o.LeaseUntil.Equal(t0.Add(-time.Second)) {
		t.Errorf("operation: %+v", o)
	}
	if !s.Check.Next.Equal(later.Add(30 * time.Second)) {
		t.Errorf("next check %s, want check_after from now", s.Check.Next)
	}
	if len(s.Journal) != 2 || s.Journal[1].Kind != recon.EntryDecision {
		t.Errorf("journal: %+v", s.Journal)
	}
	// An earlier idea of time makes no doubt older than the lease that left it.
	w.seed("op-early", under(t0.Add(-time.Minute)))
	if n, err = w.led.ExpireLeases(t.Context(), source, t0.Add(-30*24*time.Hour), 10); err != nil || n != 1 {
		t.Fatalf("the early one: %d, %v", n, err)
	}
	if got := w.story("op-early").Operation.UnknownSince; !got.Equal(t0.Add(-time.Minute)) {
		t.Errorf("unknown since %s, want the lease's end", got)
	}
	if n := one[int](w, `SELECT count(*) FROM reconciler.operations WHERE lease_token IS NOT NULL`); n != 1 || w.story("op-live").Operation.State != recon.InProgress {
		t.Errorf("%d leases are left, want the live one", n)
	}
	w.verifyChains()
}

func TestSnapshotCountsWhatTheGaugesShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.SimulatedTime(t0.Add(time.Hour)))
	w.seed("op-1")
	w.seed("op-2", func(o *recon.Operation, _ *recon.Check) { o.UnknownSince = t0.Add(-time.Hour) })
	w.seed("op-3", func(o *recon.Operation, _ *recon.Check) { o.UnknownSince, o.EffectID = t0.Add(-2*time.Hour), "re_3" })
	w.seed("op-4", func(o *recon.Operation, _ *recon.Check) {
		o.State, o.UnknownSince, o.LeaseUntil = recon.InProgress, time.Time{}, t0.Add(-3*time.Hour)
	})
	w.seed("op-5", func(o *recon.Operation, _ *recon.Check) { o.State, o.ClosedAt = recon.Failed, t0 })
	stray := refund(recon.Operation{ID: "nobody", SentAt: t0}, "re_stray")
	h := w.hold()
	w.record(ledger.Batch{
		Hold: h, Now: t0, Effects: []recon.Effect{stray}, SourceState: &ledger.SourceState{BlindSince: t0, Blinds: 3, ProbeAt: t0},
		Findings: []recon.Finding{{Kind: recon.FindBlind, Certainty: recon.Proof, Source: source, Reason: "no answer"}},
	})
	got, err := w.led.Snapshot(t.Context(), t0)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Tallies) != 2 || got.NotFolded != 6 {
		t.Errorf("tallies %v, %d not folded, want those of 5 openings and 1 finding", got.Tallies, got.NotFolded)
	}
	got.Tallies, got.NotFolded = nil, 0
	diff(t, "snapshot", ledger.Snapshot{
		At: t0.Add(time.Hour),
		Operations: []ledger.OperationGauge{
			{Source: source, Action: "refund.create", State: recon.InProgress, Count: 1, OldestUnknown: t0.Add(-3 * time.Hour)},
			{Source: source, Action: "refund.create", State: recon.Unknown, Count: 3, OldestUnknown: t0.Add(-time.Hour), OldestInFlight: t0.Add(-2 * time.Hour)},
		},
		Findings:       map[recon.FindingKind]int64{recon.FindBlind: 1},
		BlindSince:     map[recon.SourceName]time.Time{source: t0},
		RunLastSuccess: map[string]time.Time{},
		EffectsUnowned: map[recon.SourceName]int64{source: 1},
	}, got)
}

func TestOperationsAreListedByWhatIsAsked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 3 {
		w.seed(fmt.Sprintf("op-%d", i), func(o *recon.Operation, _ *recon.Check) { o.CreatedAt = t0.Add(time.Duration(i) * time.Second) })
	}
	w.exec(`UPDATE reconciler.operations SET "case" = 'case-1', reference = 'inv-7' WHERE operation_id = 'op-1'`)
	tests := []struct {
		name string
		f    ledger.OperationFilter
		want []recon.OperationID
	}{
		{"all, newest first", ledger.OperationFilter{}, []recon.OperationID{"op-2", "op-1", "op-0"}},
		{"at most two", ledger.OperationFilter{Limit: 2}, []recon.OperationID{"op-2", "op-1"}},
		{"by case", ledger.OperationFilter{Case: "case-1"}, []recon.OperationID{"op-1"}},
		{"by key", ledger.OperationFilter{Key: "k-op-0"}, []recon.OperationID{"op-0"}},
		{"by natural reference", ledger.OperationFilter{Reference: "inv-7"}, []recon.OperationID{"op-1"}},
		{"by state and action", ledger.OperationFilter{Source: source, Action: "refund.create", States: []recon.State{recon.Unknown}}, []recon.OperationID{"op-2", "op-1", "op-0"}},
		{"of another state", ledger.OperationFilter{States: []recon.State{recon.Failed, recon.Pending}}, nil},
		{"of another source", ledger.OperationFilter{Source: "bank"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ops, err := w.led.Operations(t.Context(), tt.f)
			if err != nil {
				t.Fatal(err)
			}
			var got []recon.OperationID
			for _, o := range ops {
				got = append(got, o.ID)
			}
			diff(t, "operations", tt.want, got)
		})
	}
}
