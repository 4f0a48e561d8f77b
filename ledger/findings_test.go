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

func TestAFindingLivesOnceForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.hold()
	o := w.seed("op-1")
	f, changed := mismatch(o, "4100"), mismatch(o, "4000")
	ends := []string{f.Fingerprint()}
	find := func(f recon.Finding) []recon.Finding { return []recon.Finding{f} }
	// One pass over op-1 after the other; each line says what is so afterwards.
	steps := []struct {
		name          string
		settled       bool // by a person, before the pass
		find          []recon.Finding
		ends          []string
		opened, ended int
		state         recon.FindingState
		openedIn      int // the pass
		version       int64
		theirs        string
		entries       int
	}{
		{"opened", false, find(f), nil, 1, 0, recon.FindingOpen, 0, 1, "4100", 2},
		{"seen again, the same", false, find(f), nil, 0, 0, recon.FindingOpen, 0, 1, "4100", 2},
		{"seen again with other values", false, find(changed), nil, 0, 0, recon.FindingOpen, 0, 2, "4000", 3},
		{"ended", false, nil, ends, 0, 1, recon.FindingEnded, 0, 3, "4000", 4},
		{"ended a second time", false, nil, ends, 0, 0, recon.FindingEnded, 0, 3, "4000", 4},
		{"opened again in place", false, find(changed), nil, 1, 0, recon.FindingOpen, 5, 4, "4000", 5},
		{"settled by a person and seen again, the same", true, find(changed), nil, 0, 0, recon.FindingSettled, 5, 4, "4000", 5},
		{"settled by a person and ended", true, nil, ends, 0, 0, recon.FindingSettled, 5, 4, "4000", 5},
		{"settled by a person and seen with other values", true, find(f), nil, 1, 0, recon.FindingOpen, 8, 5, "4100", 6},
	}
	at := func(pass int) time.Time { return t0.Add(time.Duration(pass) * time.Minute) }
	for i, tt := range steps {
		if tt.settled {
			w.exec(`UPDATE reconciler.findings SET state = 'settled', settled_at = $1, settled_by = 'ana', settled_as = 'accept'`, at(i))
		}
		o := w.story("op-1").Operation
		d := stay(o, at(i).Add(time.Hour))
		d.Findings, d.Ends = tt.find, tt.ends
		b := deciding(h, at(i), []recon.Operation{o}, d)
		got := w.record(b)
		rows, err := w.led.Findings(t.Context(), ledger.FindingFilter{Operation: "op-1"})
		if err != nil || len(rows) != 1 {
			t.Fatalf("%s: findings %+v, %v; want one", tt.name, rows, err)
		}
		r := rows[0]
		if got.Opened[recon.FindMismatch] != tt.opened || got.Ended[recon.FindMismatch] != tt.ended || r.State != tt.state ||
			!r.OpenedAt.Equal(at(tt.openedIn)) || r.Version != tt.version || r.Observed[0].Theirs != tt.theirs ||
			(r.SettledBy == "ana") != (tt.state == recon.FindingSettled) || r.EndedAt.IsZero() != (tt.state != recon.FindingEnded) {
			t.Errorf("%s: recorded %+v, finding %+v", tt.name, got, r)
		}
		if e := len(w.story("op-1").Journal); e != tt.entries {
			t.Errorf("%s: %d entries, want %d", tt.name, e, tt.entries)
		}
	}
	rows, err := w.led.Findings(t.Context(), ledger.FindingFilter{Source: source, Kinds: []recon.FindingKind{recon.FindMismatch}, States: []recon.FindingState{recon.FindingOpen}})
	if err != nil || len(rows) != 1 {
		t.Fatalf("findings by source, kind and state: %+v, %v", rows, err)
	}
	diff(t, "effects", f.Effects, rows[0].Effects)
	diff(t, "money", f.Money, rows[0].Money)
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
	got := w.record(ledger.Batch{Hold: w.hold(), Now: t0, Findings: []recon.Finding{f}})
	if got.Opened[recon.FindBlind] != 1 {
		t.Errorf("recorded: %+v", got)
	}
	got = w.record(ledger.Batch{Now: t0.Add(time.Minute), Ends: []string{f.Fingerprint()}})
	if got.Ended[recon.FindBlind] != 1 {
		t.Errorf("recorded: %+v", got)
	}
}
