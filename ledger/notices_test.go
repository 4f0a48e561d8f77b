package ledger_test

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

var (
	_ escalation.Outbox  = (*ledger.Ledger)(nil)
	_ escalation.Stories = (*ledger.Ledger)(nil)
)

// outbox is a ledger with one open finding and its first notice.
type outbox struct {
	*world
	f recon.Finding
	h ledger.Hold
}

func newOutbox(t *testing.T) *outbox {
	t.Helper()
	x := &outbox{world: newWorld(t)}
	o := x.seed("op-1")
	x.f, x.h = mismatch(o, "4100"), x.hold()
	x.tell(t0, []recon.Finding{x.f}, nil, notice(x.f, "op-1", "first", t0))
	return x
}

// tell records a pass over op-1.
func (x *outbox) tell(now time.Time, find []recon.Finding, ends []string, notices ...recon.Notice) {
	x.Helper()
	o := x.story("op-1").Operation
	d := stay(o, now.Add(time.Hour))
	d.Findings, d.Ends = find, ends
	b := deciding(x.h, now, []recon.Operation{o}, d)
	b.Notices = notices
	x.record(b)
}

func (x *outbox) dueAt(now time.Time) []recon.Notice {
	x.Helper()
	due, err := x.led.DueNotices(x.Context(), now, 10)
	if err != nil {
		x.Fatal(err)
	}
	return due
}

func (x *outbox) claim(id string, now time.Time) bool {
	x.Helper()
	ok, err := x.led.ClaimNotice(x.Context(), id, now, now.Add(time.Minute))
	if err != nil {
		x.Fatal(err)
	}
	return ok
}

func (x *outbox) settle(id string, d recon.Delivery, now time.Time) {
	x.Helper()
	if err := x.led.SettleNotice(x.Context(), id, d, now); err != nil {
		x.Fatal(err)
	}
}

func TestANoticeIsClaimedByOne(t *testing.T) {
	t.Parallel()
	x := newOutbox(t)
	n := x.dueAt(t0)[0]
	diff(t, "notice", recon.Notice{ID: n.ID, Finding: x.f.Fingerprint(), Operation: "op-1", Step: "first", Destination: "recon", Reason: "a person is needed", DueAt: t0}, n)
	if !x.claim(n.ID, t0) || x.claim(n.ID, t0) {
		t.Error("the first claim must win and the second must not")
	}
	if due := x.dueAt(t0.Add(59 * time.Second)); len(due) != 0 {
		t.Errorf("due while it is held: %+v", due)
	}
	// The process ended without a word: it may have been sent.
	due := x.dueAt(t0.Add(time.Minute))
	if len(due) != 1 || !due[0].Doubt || due[0].Tries != 1 || !due[0].FirstTry.Equal(t0) {
		t.Errorf("due after the claim is over: %+v, want it in doubt", due)
	}
	x.claim(n.ID, t0.Add(time.Minute))
	x.settle(n.ID, recon.Delivery{Receipt: recon.Receipt{Channel: "C1", TS: "1.2"}}, t0.Add(time.Minute))
	if due := x.dueAt(t0.Add(time.Hour)); len(due) != 0 || x.claim(n.ID, t0.Add(time.Hour)) {
		t.Errorf("a delivered notice is due again: %+v", due)
	}
	// A second process that reports its failure later changes nothing.
	x.settle(n.ID, recon.Delivery{Next: t0.Add(2 * time.Hour), Reason: "unavailable"}, t0.Add(time.Hour))
	if due := x.dueAt(t0.Add(3 * time.Hour)); len(due) != 0 {
		t.Errorf("a late report made it due again: %+v", due)
	}
}

func TestANoticeThatFailedIsTriedAgainWhenItSays(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		d         recon.Delivery
		due       bool // an hour later
		doubt     bool
		state     string
		undeliver int64
	}{
		{"certainly not taken, try later", recon.Delivery{Next: t0.Add(time.Minute), Reason: "unavailable"}, true, false, "due", 0},
		{"the answer was lost", recon.Delivery{Next: t0.Add(time.Minute), Doubt: true, Reason: "lost_answer"}, true, true, "due", 0},
		{"refused until mended", recon.Delivery{Next: t0.Add(10 * time.Minute), Undelivered: true, Reason: "refused: is_archived"}, true, false, "undelivered", 1},
		{"refused for good", recon.Delivery{Undelivered: true, Reason: "rejected"}, false, false, "undelivered", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newOutbox(t)
			n := x.dueAt(t0)[0]
			x.claim(n.ID, t0)
			x.settle(n.ID, tt.d, t0)
			if due := x.dueAt(t0.Add(30 * time.Second)); len(due) != 0 {
				t.Errorf("due before its next try: %+v", due)
			}
			due := x.dueAt(t0.Add(time.Hour))
			if got := len(due) == 1; got != tt.due || got && due[0].Doubt != tt.doubt {
				t.Errorf("due later: %+v", due)
			}
			if got := one[string](x.world, `SELECT state FROM reconciler.notices`); got != tt.state {
				t.Errorf("state %s, want %s", got, tt.state)
			}
			s, err := x.led.Snapshot(t.Context(), t0.Add(time.Hour))
			if err != nil || s.UndeliveredOpen != tt.undeliver || !s.OldestNotice.Equal(t0) {
				t.Errorf("gauges: %+v, %v", s, err)
			}
		})
	}
}

func TestAnEditWaitsForItsMessage(t *testing.T) {
	t.Parallel()
	x := newOutbox(t)
	first := x.dueAt(t0)[0]
	later := t0.Add(time.Minute)
	x.tell(later, nil, []string{x.f.Fingerprint()}, notice(x.f, "op-1", "ended", later))
	if due := x.dueAt(later); len(due) != 1 || due[0].Step != "first" {
		t.Fatalf("due before the message stands: %+v, want the first one only", due)
	}
	x.claim(first.ID, later)
	x.settle(first.ID, recon.Delivery{Receipt: recon.Receipt{Channel: "C1", TS: "1.2"}}, later)
	due := x.dueAt(later)
	if len(due) != 1 || due[0].Step != "ended" || due[0].Root != (recon.Receipt{Channel: "C1", TS: "1.2"}) || due[0].Message != x.f.Fingerprint() {
		t.Errorf("due after the message stands: %+v", due)
	}
}

func TestAnEditFindsTheMessageThatNamedItsFinding(t *testing.T) {
	t.Parallel()
	x := newOutbox(t)
	// A second finding that was never told by itself ends.
	lesser := recon.Finding{Kind: recon.FindUnresolved, Certainty: recon.Proof, Source: source, Operations: []recon.OperationID{"op-1"}, Reason: "old"}
	x.tell(t0.Add(time.Minute), []recon.Finding{lesser}, nil)
	x.tell(t0.Add(2*time.Minute), nil, []string{lesser.Fingerprint()}, notice(lesser, "op-1", "ended", t0.Add(2*time.Minute)))
	first := x.dueAt(t0)[0]
	x.claim(first.ID, t0)
	x.settle(first.ID, recon.Delivery{Receipt: recon.Receipt{Channel: "C1", TS: "1.2"}}, t0)
	due := x.dueAt(t0.Add(2 * time.Minute))
	if len(due) != 1 || due[0].Finding != lesser.Fingerprint() || due[0].Message != x.f.Fingerprint() || due[0].Root.TS != "1.2" {
		t.Errorf("due: %+v, want the end of the lesser finding on the first message", due)
	}
}

func TestAnEndThatNobodyWasToldOfIsNotTold(t *testing.T) {
	t.Parallel()
	x := newOutbox(t)
	quiet := recon.Finding{Kind: recon.FindUnresolved, Certainty: recon.Proof, Source: source, Operations: []recon.OperationID{"op-9"}, Reason: "old"}
	x.record(ledger.Batch{Now: t0, Findings: []recon.Finding{quiet}})
	x.record(ledger.Batch{Now: t0, Ends: []string{quiet.Fingerprint()}, Notices: []recon.Notice{notice(quiet, "op-9", "ended", t0)}})
	if n := one[int](x.world, `SELECT count(*) FROM reconciler.notices`); n != 1 {
		t.Errorf("%d notices, want only the first one of the other finding", n)
	}
}
