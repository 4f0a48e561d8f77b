package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestB13_ClosingStoresTheEffectAndHowItMatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("op-1")
	now := t0.Add(time.Minute)
	cases := w.due(now, 10)
	if len(cases) != 1 {
		t.Fatalf("due: got %d cases, want 1", len(cases))
	}
	o := cases[0].Operation
	got := w.record(closing(w.hold(), now, o))
	diff(t, "recorded", ledger.Recorded{Opened: map[recon.FindingKind]int{}, Ended: map[recon.FindingKind]int{}}, got)

	if basis := one[string](w, `SELECT basis || ' ' || certainty || ' ' || role FROM reconciler.matches WHERE operation_id = 'op-1' AND effect_id = 're_op-1' AND look_id IS NOT NULL`); basis != "reference proof main" {
		t.Errorf("matched by %s", basis)
	}
	s := w.story("op-1")
	if s.Operation.State != recon.Succeeded || s.Operation.EffectID != "re_op-1" || !s.Operation.ClosedAt.Equal(now) || s.Operation.Version != 2 {
		t.Errorf("operation after closing: %+v", s.Operation)
	}
	e := refund(o, "re_op-1")
	e.Owner, e.Metadata = "op-1", json.RawMessage(`{"op_id": "op-1"}`)
	diff(t, "effects", []recon.Effect{e}, s.Effects)
	if len(s.Looks) != 1 || s.Looks[0].Method != recon.ByReference || s.Looks[0].RequestID != "req_1" {
		t.Errorf("looks of the story: %+v", s.Looks)
	}
	if len(s.Journal) != 2 || s.Journal[1].Kind != recon.EntryDecision {
		t.Fatalf("journal: %+v", s.Journal)
	}
	var body map[string]any
	if err := json.Unmarshal(s.Journal[1].Body, &body); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"kind", "at", "by", "rule", "reason", "policy_version", "from", "to", "effect_id", "look_ids", "effects", "method", "outcome", "run_id"} {
		if body[k] == nil {
			t.Errorf("the entry does not tell %s: %s", k, s.Journal[1].Body)
		}
	}
	diff(t, "plan", recon.Check{Next: now.Add(24 * time.Hour), Looks: 1, Absence: recon.Absence{LookIDs: []string{}}}, s.Check)
	if n := one[int](w, `SELECT count(*) FROM reconciler.blobs b JOIN reconciler.effects e ON e.blob_id = b.id WHERE b.tenant = 'default' AND length(b.salt) = 16`); n != 1 {
		t.Errorf("the provider's bytes are kept %d times, want once", n)
	}
	if n := len(w.due(now.Add(time.Hour), 10)); n != 0 {
		t.Errorf("%d operations are due after closing, want none", n)
	}
	closed, err := w.led.Due(t.Context(), ledger.Scope{Source: source, Ladder: ledger.ClosedOperations}, now.Add(25*time.Hour), 10)
	if err != nil || len(closed) != 1 || len(closed[0].Effects) != 1 {
		t.Errorf("re-verification a day later: %+v, %v", closed, err)
	}
	w.verifyChains()
}

func TestRecordMakesTheSameNumberOfStatementsForAnySize(t *testing.T) {
	t.Parallel()
	counts := map[int]int64{}
	for _, size := range []int{1, 300} {
		w := newWorld(t)
		for i := range size {
			w.seed(fmt.Sprintf("op-%04d", i))
		}
		now := t0.Add(time.Minute)
		h := w.hold()
		w.calls.n.Store(0)
		cases := w.due(now, 1000)
		ops := make([]recon.Operation, 0, size)
		for _, c := range cases {
			ops = append(ops, c.Operation)
		}
		b := closing(h, now, ops...)
		f := recon.Finding{Kind: recon.FindDuplicate, Certainty: recon.Proof, Source: source, Operations: []recon.OperationID{ops[0].ID}, Reason: "twice"}
		b.Decisions[0].Findings = []recon.Finding{f}
		b.Notices = []recon.Notice{{Finding: f.Fingerprint(), Operation: ops[0].ID, Step: "first", Destination: "recon", Reason: "x", DueAt: now}}
		b.Coverage = []recon.Coverage{{Source: source, Kind: "refund", Account: "acct_1", Mode: "live", At: now, LookID: b.Looks[0].ID,
			Window: recon.Window{From: t0.Add(-time.Hour), To: now}}}
		b.SourceState = &ledger.SourceState{}
		w.record(b)
		counts[size] = w.calls.n.Load()
		if n := one[int](w, `SELECT count(*) FROM reconciler.operations WHERE state = 'succeeded'`); n != size {
			t.Fatalf("%d of %d operations closed", n, size)
		}
		w.verifyChains()
	}
	// The limit is 12 with reading what is due; begin and commit are counted too.
	if counts[1] != counts[300] || counts[300] > 14 {
		t.Errorf("statements by batch size: %v; want equal, and at most 12 besides begin and commit", counts)
	}
}

func TestALookThatAddsNothingWritesNoEntry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("op-1")
	now := t0.Add(time.Minute)
	o := w.due(now, 10)[0].Operation
	w.record(deciding(w.hold(), now, []recon.Operation{o}, stay(o, now.Add(5*time.Minute))))
	s := w.story("op-1")
	if len(s.Journal) != 1 || s.Operation.Version != 1 {
		t.Errorf("journal has %d entries at version %d, want 1 at version 1", len(s.Journal), s.Operation.Version)
	}
	if !s.Check.Next.Equal(now.Add(5*time.Minute)) || s.Check.Looks != 1 {
		t.Errorf("plan: %+v", s.Check)
	}
}

func TestB12_ABlindOrEarlyLookChangesNothingAndALaterOneCloses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("op-1060")
	h := w.hold()
	now := t0.Add(time.Minute)
	for _, outcome := range []recon.Outcome{recon.Absent, recon.Blind} {
		o := w.due(now, 10)[0].Operation
		k := recon.Look{ID: newID(), Source: source, Method: recon.ByReference, Outcome: outcome, Kind: "refund", Account: "acct_1", Mode: "live",
			Reference: "op-1060", At: now, Complete: outcome == recon.Absent, Calls: 1, Detail: "cut off \x00 here"}
		d := stay(o, now.Add(time.Minute))
		d.LookIDs, d.Blind = []string{k.ID}, outcome == recon.Blind
		b := deciding(h, now, []recon.Operation{o}, d)
		b.Looks = []recon.Look{k}
		w.record(b)
		s := w.story("op-1060")
		if s.Operation.State != recon.Unknown || s.Operation.Version != 1 || len(s.Journal) != 1 || len(s.Findings) != 0 || !s.Check.Next.Equal(now.Add(time.Minute)) {
			t.Errorf("after a look that is %s: %+v", outcome, s)
		}
		now = now.Add(time.Minute)
	}
	if n := one[int](w, `SELECT count(*) FROM reconciler.looks`) + one[int](w, `SELECT count(*) FROM reconciler.notices`); n != 2 {
		t.Errorf("%d looks and notices, want the two looks only", n)
	}
	w.record(closing(h, now, w.due(now, 10)[0].Operation))
	if s := w.story("op-1060"); s.Operation.State != recon.Succeeded || len(s.Journal) != 2 {
		t.Errorf("after the look that found it: %+v", s)
	}
}

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

func TestRecordReportsALostOperationAndWritesNothingOfIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("op-1")
	w.seed("op-2")
	now := t0.Add(time.Minute)
	cases := w.due(now, 10)
	ops := []recon.Operation{cases[0].Operation, cases[1].Operation}
	w.exec(`UPDATE reconciler.operations SET version = version + 1 WHERE operation_id = 'op-1'`) // another writer
	b := closing(w.hold(), now, ops...)
	f := recon.Finding{Kind: recon.FindMismatch, Certainty: recon.Proof, Source: source, Operations: []recon.OperationID{"op-1"}, Reason: "x"}
	b.Decisions[0].Findings = []recon.Finding{f}
	b.Notices = []recon.Notice{{Finding: f.Fingerprint(), Operation: "op-1", Step: "first", Destination: "recon", Reason: "x", DueAt: now}}
	got := w.record(b)
	diff(t, "lost", []recon.OperationID{"op-1"}, got.Lost)
	if s := w.story("op-1"); s.Operation.State != recon.Unknown || len(s.Journal) != 1 || len(s.Findings) != 0 || len(s.Effects) != 0 || !s.Check.Next.Equal(t0.Add(30*time.Second)) {
		t.Errorf("something of the lost operation was written: %+v", s)
	}
	if s := w.story("op-2"); s.Operation.State != recon.Succeeded {
		t.Errorf("the other operation is %s, want succeeded", s.Operation.State)
	}
	if n := one[int](w, `SELECT count(*) FROM reconciler.notices`); n != 0 {
		t.Errorf("%d notices of the lost operation were planned", n)
	}
	// Its effect is on the shelf, so that the next pass concludes from what is stored.
	again := w.due(now, 10)
	if len(again) != 1 || len(again[0].Effects) != 1 || again[0].Effects[0].ID != "re_op-1" || again[0].Effects[0].Owner != "" {
		t.Errorf("the next pass sees %+v, want op-1 with its effect without owner", again)
	}
}

func TestAStaleHoldWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("op-1")
	now := t0.Add(time.Minute)
	old := w.hold()
	w.exec(`UPDATE reconciler.source_state SET lease_until = now() - interval '1 second'`)
	fresh := w.hold() // another process took the source over
	o := w.due(now, 10)[0].Operation
	b := closing(old, now, o)
	b.SourceState = &ledger.SourceState{Blinds: 7}
	for _, state := range []*ledger.SourceState{nil, {Blinds: 7}} {
		b.SourceState = state
		_, err := w.led.Record(t.Context(), b)
		if _, stale := errors.AsType[*ledger.StaleHoldError](err); !stale {
			t.Fatalf("recording under a stale hold: %v, want a StaleHoldError", err)
		}
	}
	for _, table := range []string{"looks", "effects", "matches", "blobs", "findings"} {
		if n := one[int](w, `SELECT count(*) FROM reconciler.`+table); n != 0 {
			t.Errorf("%d rows in %s, want none", n, table)
		}
	}
	if s := w.story("op-1"); s.Operation.State != recon.Unknown || len(s.Journal) != 1 {
		t.Errorf("the operation changed: %+v", s.Operation)
	}
	w.record(closing(fresh, now, o))
}

func TestAnEffectIsNeverTakenFromItsOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("op-1")
	w.seed("op-2")
	now := t0.Add(time.Minute)
	cases := w.due(now, 10)
	h := w.hold()
	w.record(closing(h, now, cases[0].Operation))

	thief := cases[1].Operation
	e := refund(cases[0].Operation, "re_op-1")
	k := lookFound(thief, now, e)
	b := deciding(h, now, []recon.Operation{thief}, succeed(thief, e, k, now))
	b.Looks, b.Effects = []recon.Look{k}, []recon.Effect{e}
	got := w.record(b)
	diff(t, "lost", []recon.OperationID{"op-2"}, got.Lost)
	owners, err := w.led.Owners(t.Context(), []recon.EffectIdentity{e.Identity(), {System: "stripe", Account: "acct_1", Mode: "test", ID: e.ID}})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "owners", map[recon.EffectIdentity]string{e.Identity(): "op-1"}, owners)
}

func TestTwoDecisionsOfOneBatchCannotShareAnEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("op-1")
	w.seed("op-2")
	now := t0.Add(time.Minute)
	cases := w.due(now, 10)
	b := closing(w.hold(), now, cases[0].Operation, cases[1].Operation)
	b.Decisions[1].Links[0].Effect = b.Effects[0].Identity()
	diff(t, "lost", []recon.OperationID{"op-2"}, w.record(b).Lost)
}

func TestAnInterruptedRecordLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("op-1")
	now := t0.Add(time.Minute)
	o := w.due(now, 10)[0].Operation
	h := w.hold()
	// The context ends after n statements, for every n until the batch gets through.
	for n := int64(1); ; n++ {
		ctx, cancel := context.WithCancel(t.Context())
		led, err := ledger.Open(t.Context(), ledger.Options{URL: w.url, MaxConns: 1, Tracer: &breaker{left: n + openingStatements, cancel: cancel}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = led.Record(ctx, closing(h, now, o))
		led.Close()
		cancel()
		state := one[string](w, `SELECT state FROM reconciler.operations`)
		rows := one[int](w, `SELECT (SELECT count(*) FROM reconciler.looks) + (SELECT count(*) FROM reconciler.effects) + (SELECT count(*) FROM reconciler.matches)
			+ (SELECT count(*) FROM reconciler.blobs) + (SELECT count(*) FROM reconciler.journal WHERE seq > 1)`)
		if state == "succeeded" && rows == 5 {
			if n < 6 {
				t.Fatalf("only %d statements were interrupted", n-1)
			}
			return // got through, whether or not the caller heard of it
		}
		if err == nil {
			t.Fatalf("interrupted after %d statements, and no error", n)
		}
		if state != "unknown" || rows != 0 {
			t.Fatalf("interrupted after %d statements: state %s and %d rows of evidence", n, state, rows)
		}
		if n > 30 {
			t.Fatal("never got through")
		}
	}
}

// openingStatements are those that Open makes before any call.
const openingStatements = 3

// breaker ends a context at the start of a statement.
type breaker struct {
	left   int64
	cancel context.CancelFunc
}

func (b *breaker) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	if b.left--; b.left == 0 {
		b.cancel()
	}
	return ctx
}

func (b *breaker) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

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

func TestAnIllegalChangeIsSetAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("op-1", func(o *recon.Operation, k *recon.Check) { o.State, o.ClosedAt = recon.Succeeded, t0 })
	o := w.story("op-1").Operation
	d := stay(o, t0.Add(time.Hour))
	d.To = recon.Failed
	got := w.record(deciding(w.hold(), t0, []recon.Operation{o}, d))
	if len(got.SetAside) != 1 || w.story("op-1").Operation.State != recon.Succeeded {
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

func TestCoverageAndSourceStateAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.hold()
	k := recon.Look{ID: newID(), Source: source, Method: recon.ByList, Outcome: recon.Absent, Kind: "refund", Account: "acct_1", Mode: "live",
		Window: recon.Window{From: t0.Add(-time.Hour), To: t0}, At: t0, Complete: true, Calls: 2}
	c := recon.Coverage{Source: source, Kind: "refund", Account: "acct_1", Mode: "live", Window: k.Window, At: t0, LookID: k.ID}
	state := ledger.SourceState{BlindSince: t0.Add(-time.Minute), Blinds: 2, ProbeAt: t0.Add(30 * time.Second)}
	b := ledger.Batch{Hold: h, Now: t0, Looks: []recon.Look{k}, Coverage: []recon.Coverage{c}, SourceState: &state}
	w.record(b)
	w.record(b) // said twice, kept once
	got, err := w.led.Covered(t.Context(), source, t0.Add(-time.Second))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "coverage", []recon.Coverage{c}, got)
	if got, err := w.led.Covered(t.Context(), source, t0.Add(time.Second)); err != nil || len(got) != 0 {
		t.Errorf("coverage of later: %v, %v", got, err)
	}
	gotState, err := w.led.SourceState(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	diff(t, "state", state, gotState)
	if d := cmp.Diff(ledger.SourceState{}, mustState(w, "another"), cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
}

func mustState(w *world, s recon.SourceName) ledger.SourceState {
	w.Helper()
	got, err := w.led.SourceState(w.Context(), s)
	if err != nil {
		w.Fatal(err)
	}
	return got
}
