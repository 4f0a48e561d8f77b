package ledger_test

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// mismatch is a finding on o with one differing amount.
func mismatch(o recon.Operation, theirs string) recon.Finding {
	return recon.Finding{
		Kind: recon.FindMismatch, Certainty: recon.Proof, Source: source, Operations: []recon.OperationID{o.ID},
		Effects:  []recon.EffectRef{{Source: source, Account: "acct_1", Mode: "live", Kind: "refund", ID: "re_x"}},
		Observed: []recon.Difference{{Field: "amount", Ours: "4200", Theirs: theirs}},
		Reason:   "the refund has another amount", Money: recon.Money{Minor: 4200, Currency: "EUR"},
	}
}

func notice(f recon.Finding, op recon.OperationID, step string, due time.Time) recon.Notice {
	return recon.Notice{Finding: f.Fingerprint(), Operation: op, Step: step, Destination: "recon", Reason: "a person is needed", DueAt: due}
}

func TestAFindingLivesOnceForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.hold()
	o := w.seed("op-1")
	now := t0
	// pass records one pass over op-1 and says what became of its findings.
	pass := func(find []recon.Finding, ends []string, notices ...recon.Notice) ledger.Recorded {
		t.Helper()
		now = now.Add(time.Minute)
		o := w.story("op-1").Operation
		d := stay(o, now.Add(time.Hour))
		d.Findings, d.Ends = find, ends
		b := deciding(h, now, []recon.Operation{o}, d)
		b.Notices = notices
		return w.record(b)
	}
	only := func() ledger.FindingRow {
		t.Helper()
		rows, err := w.led.Findings(t.Context(), ledger.FindingFilter{Operation: "op-1"})
		if err != nil || len(rows) != 1 {
			t.Fatalf("findings: %+v, %v; want one", rows, err)
		}
		return rows[0]
	}
	entries := func() int { return len(w.story("op-1").Journal) }
	notices := func() int { return one[int](w, `SELECT count(*) FROM reconciler.notices`) }
	f := mismatch(o, "4100")

	got := pass([]recon.Finding{f}, nil, notice(f, "op-1", "first", now))
	if r := only(); got.Opened[recon.FindMismatch] != 1 || r.State != recon.FindingOpen || !r.OpenedAt.Equal(now) || r.Version != 1 || notices() != 1 || entries() != 2 {
		t.Fatalf("opened: %+v %+v, %d notices, %d entries", got, r, notices(), entries())
	}
	id, opened := only().ID, now
	diff(t, "observed", f.Observed, only().Observed)
	diff(t, "effects", f.Effects, only().Effects)
	diff(t, "money", f.Money, only().Money)

	got = pass([]recon.Finding{f}, nil, notice(f, "op-1", "first", now))
	if r := only(); len(got.Opened) != 0 || r.Version != 1 || notices() != 1 || entries() != 2 {
		t.Fatalf("seen again, the same: %+v %+v, %d notices, %d entries", got, r, notices(), entries())
	}

	changed := mismatch(o, "4000")
	got = pass([]recon.Finding{changed}, nil)
	if r := only(); len(got.Opened) != 0 || r.Version != 2 || !r.OpenedAt.Equal(opened) || r.Observed[0].Theirs != "4000" || entries() != 3 {
		t.Fatalf("seen again with other values: %+v %+v, %d entries", got, r, entries())
	}

	got = pass(nil, []string{f.Fingerprint()}, notice(f, "op-1", "ended", now))
	if r := only(); got.Ended[recon.FindMismatch] != 1 || r.State != recon.FindingEnded || !r.EndedAt.Equal(now) || notices() != 2 || entries() != 4 {
		t.Fatalf("ended: %+v %+v, %d notices", got, r, notices())
	}
	got = pass(nil, []string{f.Fingerprint()}, notice(f, "op-1", "ended", now))
	if len(got.Ended) != 0 || notices() != 2 || entries() != 4 {
		t.Fatalf("ended a second time: %+v, %d notices, %d entries", got, notices(), entries())
	}

	got = pass([]recon.Finding{changed}, nil, notice(f, "op-1", "first", now))
	if r := only(); got.Opened[recon.FindMismatch] != 1 || r.ID != id || r.State != recon.FindingOpen || !r.OpenedAt.Equal(now) || !r.EndedAt.IsZero() || notices() != 3 {
		t.Fatalf("opened again: %+v %+v, %d notices", got, r, notices())
	}

	w.exec(`UPDATE reconciler.findings SET state = 'settled', settled_at = $1, settled_by = 'ana', settled_as = 'accept'`, now)
	got = pass([]recon.Finding{changed}, nil, notice(f, "op-1", "first", now))
	if r := only(); len(got.Opened) != 0 || r.State != recon.FindingSettled || r.SettledBy != "ana" || notices() != 3 {
		t.Fatalf("settled by a person and seen again, the same: %+v %+v, %d notices", got, r, notices())
	}
	got = pass([]recon.Finding{f}, nil, notice(f, "op-1", "first", now))
	if r := only(); got.Opened[recon.FindMismatch] != 1 || r.State != recon.FindingOpen || r.SettledBy != "" || notices() != 4 {
		t.Fatalf("settled by a person and seen with other values: %+v %+v, %d notices", got, r, notices())
	}
	w.verifyChains()
}

func TestOneFindingOfTwoDecisionsIsOneRow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.seed("op-1"), w.seed("op-2")
	f := recon.Finding{Kind: recon.FindDuplicate, Certainty: recon.Suspected, Source: source, Operations: []recon.OperationID{"op-2", "op-1"}, Reason: "twins"}
	da, db := stay(a, t0.Add(time.Hour)), stay(b, t0.Add(time.Hour))
	da.Findings, db.Ends = []recon.Finding{f}, []string{f.Fingerprint()}
	db.Findings = []recon.Finding{f}
	got := w.record(deciding(w.hold(), t0, []recon.Operation{a, b}, da, db))
	if got.Opened[recon.FindDuplicate] != 1 || len(got.Ended) != 0 {
		t.Errorf("recorded: %+v, want one opened", got)
	}
	for _, c := range w.due(t0.Add(2*time.Hour), 10) {
		if len(c.Findings) != 1 || c.Findings[0].Fingerprint() != f.Fingerprint() {
			t.Errorf("%s is judged with findings %+v, want the one", c.Operation.ID, c.Findings)
		}
		if s := w.story(string(c.Operation.ID)); len(s.Journal) != 2 || len(s.Findings) != 1 {
			t.Errorf("story of %s: %d entries, %d findings", c.Operation.ID, len(s.Journal), len(s.Findings))
		}
	}
}

func TestABlindSourceIsAFindingOfNoOperation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := recon.Finding{Kind: recon.FindBlind, Certainty: recon.Proof, Source: source, Reason: "no answer for 15 minutes"}
	got := w.record(ledger.Batch{Hold: w.hold(), Now: t0, Findings: []recon.Finding{f}, Notices: []recon.Notice{notice(f, "", "first", t0)}})
	if got.Opened[recon.FindBlind] != 1 {
		t.Errorf("recorded: %+v", got)
	}
	due, err := w.led.DueNotices(t.Context(), t0, 10)
	if err != nil || len(due) != 1 || due[0].Finding != f.Fingerprint() {
		t.Errorf("due notices: %+v, %v", due, err)
	}
	got = w.record(ledger.Batch{Now: t0.Add(time.Minute), Ends: []string{f.Fingerprint()}})
	if got.Ended[recon.FindBlind] != 1 {
		t.Errorf("recorded: %+v", got)
	}
}
