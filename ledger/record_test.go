package ledger_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
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
	if v, err := w.led.Verify(t.Context()); err != nil || len(v.Broken) != 0 || v.Entries != 2 {
		t.Errorf("the chain that was written: %+v, %v", v, err)
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
	counts, trips := map[int]int64{}, int64(0)
	for _, size := range []int{1, 300} {
		w := newWorld(t)
		for i := range size {
			w.seed(fmt.Sprintf("op-%04d", i))
		}
		now := t0.Add(time.Minute)
		h := w.hold()
		w.calls.n.Store(0)
		w.calls.trips.Store(0)
		cases := w.due(now, 1000)
		ops := make([]recon.Operation, 0, size)
		for _, c := range cases {
			ops = append(ops, c.Operation)
		}
		b := closing(h, now, ops...)
		f := recon.Finding{Kind: recon.FindDuplicate, Certainty: recon.Proof, Source: source, Operations: []recon.OperationID{ops[0].ID}, Reason: "twice"}
		b.Decisions[0].Findings = []recon.Finding{f}
		b.Coverage = []recon.Coverage{{Source: source, Kind: "refund", Account: "acct_1", Mode: "live", At: now, LookID: b.Looks[0].ID,
			Window: recon.Window{From: t0.Add(-time.Hour), To: now}}}
		b.SourceState = &ledger.SourceState{}
		w.record(b)
		counts[size], trips = w.calls.n.Load(), w.calls.trips.Load()
		if n := one[int](w, `SELECT count(*) FROM reconciler.operations WHERE state = 'succeeded'`); n != size {
			t.Fatalf("%d of %d operations closed", n, size)
		}
		w.verifyChains()
	}
	// The limit is 12 with reading what is due; begin and commit are counted too.
	if counts[1] != counts[300] || counts[300] > 14 || trips > 7 {
		t.Errorf("statements by batch size: %v, in %d round trips; want equal, at most 12 besides begin and commit, in 7", counts, trips)
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
	got := w.record(b)
	diff(t, "lost", []recon.OperationID{"op-1"}, got.Lost)
	if s := w.story("op-1"); s.Operation.State != recon.Unknown || len(s.Journal) != 1 || len(s.Findings) != 0 || len(s.Effects) != 0 || !s.Check.Next.Equal(t0.Add(30*time.Second)) {
		t.Errorf("something of the lost operation was written: %+v", s)
	}
	if s := w.story("op-2"); s.Operation.State != recon.Succeeded {
		t.Errorf("the other operation is %s, want succeeded", s.Operation.State)
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

func TestALiveLeaseIsEndedByProofAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pgtest.SimulatedTime(t0))
	under := func(until time.Time) func(*recon.Operation, *recon.Check) {
		return func(o *recon.Operation, _ *recon.Check) {
			o.State, o.LeaseUntil, o.UnknownSince = recon.InProgress, until, time.Time{}
		}
	}
	live := w.seed("op-live", under(t0.Add(time.Second)))
	over := w.seed("op-over", under(t0))
	proven := w.seed("op-proven", under(t0.Add(time.Second)))
	// A run with another idea of time (--now): the database's clock judges leases.
	later := t0.Add(24 * time.Hour)
	e := refund(proven, "re_1")
	k := lookFound(proven, later, e)
	b := deciding(w.hold(), later, []recon.Operation{live, over, proven}, stay(live, later.Add(time.Hour)), stay(over, later.Add(time.Hour)), succeed(proven, e, k, later))
	b.Decisions[0].To, b.Decisions[1].To = recon.Unknown, recon.Unknown
	b.Looks, b.Effects = []recon.Look{k}, []recon.Effect{e}
	diff(t, "lost", []recon.OperationID{"op-live"}, w.record(b).Lost)
	for id, want := range map[string]recon.State{"op-live": recon.InProgress, "op-over": recon.Unknown, "op-proven": recon.Succeeded} {
		if got := w.story(id).Operation.State; got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	if n := one[int](w, `SELECT count(*) FROM reconciler.operations WHERE lease_token IS NOT NULL`); n != 1 {
		t.Errorf("%d leases are left, want the live one", n)
	}
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

// What is decided later, from what is stored, has no look of its own.
func TestALinkNamesTheLookThatShowedItsEffect(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed("op-1")
	now := t0.Add(time.Minute)
	o := w.due(now, 10)[0].Operation
	h := w.hold()
	e := refund(o, "re_1")
	k := lookFound(o, now, e)
	w.record(ledger.Batch{Hold: h, Now: now, Looks: []recon.Look{k}, Effects: []recon.Effect{e}})
	w.record(deciding(h, now.Add(time.Minute), []recon.Operation{o}, succeed(o, e, k, now)))
	diff(t, "look", k.ID, one[string](w, `SELECT coalesce(look_id, 'none') FROM reconciler.matches WHERE effect_id = 're_1'`))
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
	kept := one[int](w, `SELECT count(*) FROM reconciler.coverage WHERE look_id = $1 AND window_from = $2 AND window_to = $3`, k.ID, c.Window.From, c.Window.To)
	diff(t, "rows of coverage", 1, kept)
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
