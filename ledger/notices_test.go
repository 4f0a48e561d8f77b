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
	_ escalation.Desk    = (*ledger.Ledger)(nil)
)

// outbox is a ledger with one open finding that was told.
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
	x.find(t0, []recon.Finding{x.f}, nil)
	x.plan(t0, step("after 0 s"))
	return x
}

// find records a pass over op-1.
func (x *outbox) find(now time.Time, find []recon.Finding, ends []string) {
	x.Helper()
	o := x.story("op-1").Operation
	d := stay(o, now.Add(time.Hour))
	d.Findings, d.Ends = find, ends
	x.record(deciding(x.h, now, []recon.Operation{o}, d))
}

func step(name string) recon.Notice {
	return recon.Notice{Act: recon.ActTell, Step: name, Destination: "recon", Reason: "step_due", Mention: []string{"oncall"}}
}

func edit() recon.Notice {
	return recon.Notice{Act: recon.ActEdit, Step: escalation.StepEdit, Destination: "recon", Reason: "changed"}
}

// alarms gives what is to be planned.
func (x *outbox) alarms(now time.Time) []recon.Alarm {
	x.Helper()
	a, err := x.led.Alarms(x.Context(), now, 10)
	if err != nil {
		x.Fatal(err)
	}
	return a
}

// telling is the plan of an alarm with notices.
func telling(a recon.Alarm, now time.Time, notices ...recon.Notice) recon.Telling {
	t := recon.Telling{Finding: a.Finding.ID, Version: a.Finding.Version, Planned: a.Planned, PlanAt: a.PlanAt, Level: 1}
	for _, n := range notices {
		n.Finding, n.DueAt = a.Finding.ID, now
		t.Notices = append(t.Notices, n)
	}
	return t
}

func (x *outbox) save(now time.Time, tellings ...recon.Telling) {
	x.Helper()
	if err := x.led.SaveTellings(x.Context(), tellings, now); err != nil {
		x.Fatal(err)
	}
}

// plan plans the one finding that is to be planned.
func (x *outbox) plan(now time.Time, notices ...recon.Notice) {
	x.Helper()
	all := x.alarms(now)
	if len(all) != 1 {
		x.Fatalf("%d findings are to be planned, want 1", len(all))
	}
	x.save(now, telling(all[0], now, notices...))
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
	version := one[int64](x.world, `SELECT coalesce(max(f.version), 0) FROM reconciler.notices n
		JOIN reconciler.findings f ON f.finding_id = n.finding_id WHERE n.notice_id = $1`, id)
	ok, err := x.led.ClaimNotice(x.Context(), id, version, now, now.Add(time.Minute))
	if err != nil {
		x.Fatal(err)
	}
	return ok
}

func (x *outbox) settle(n recon.Notice, d recon.Delivery, now time.Time) {
	x.Helper()
	if err := x.led.SettleNotice(x.Context(), n.ID, n.Edition, d, now); err != nil {
		x.Fatal(err)
	}
}

// deliver claims and settles a notice with a receipt.
func (x *outbox) deliver(n recon.Notice, ts string, root bool, now time.Time) {
	x.Helper()
	if !x.claim(n.ID, now) {
		x.Fatalf("notice %s cannot be claimed", n.Step)
	}
	x.settle(n, recon.Delivery{Receipt: recon.Receipt{Channel: "C1", TS: ts}, Root: root}, now)
}

func TestANoticeIsClaimedByOne(t *testing.T) {
	t.Parallel()
	x := newOutbox(t)
	n := x.dueAt(t0)[0]
	id := x.story("op-1").Findings[0].ID
	diff(t, "notice", recon.Notice{ID: n.ID, Finding: id, Opening: 1, Act: recon.ActTell, Step: "after 0 s", Destination: "recon",
		Mention: []string{"oncall"}, Reason: "step_due", DueAt: t0, Edition: 1}, n)
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
	x.deliver(n, "1.2", true, t0.Add(time.Minute))
	if due := x.dueAt(t0.Add(time.Hour)); len(due) != 0 || x.claim(n.ID, t0.Add(time.Hour)) {
		t.Errorf("a delivered notice is due again: %+v", due)
	}
	// A second process that reports its failure later changes nothing.
	x.settle(n, recon.Delivery{Next: t0.Add(2 * time.Hour), Reason: "unavailable"}, t0.Add(time.Hour))
	if due := x.dueAt(t0.Add(3 * time.Hour)); len(due) != 0 {
		t.Errorf("a late report made it due again: %+v", due)
	}
}

func TestANoticeThatFailedIsTriedAgainWhenItSays(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		d         recon.Delivery
		due       int // an hour later
		doubt     bool
		state     string
		undeliver int64
	}{
		{"certainly not taken, try later", recon.Delivery{Next: t0.Add(time.Minute), Reason: "unavailable"}, 1, false, "due", 0},
		{"the answer was lost", recon.Delivery{Next: t0.Add(time.Minute), Doubt: true, Reason: "lost_answer"}, 1, true, "due", 0},
		{"refused until mended", recon.Delivery{Next: t0.Add(10 * time.Minute), Undelivered: true, Reason: "refused: is_archived"}, 1, false, "undelivered", 1},
		{"refused for good", recon.Delivery{Undelivered: true, Reason: "rejected"}, 0, false, "undelivered", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := newOutbox(t)
			n := x.dueAt(t0)[0]
			x.claim(n.ID, t0)
			x.settle(n, tt.d, t0)
			if due := x.dueAt(t0.Add(30 * time.Second)); len(due) != 0 {
				t.Errorf("due before its next try: %+v", due)
			}
			due := x.dueAt(t0.Add(time.Hour))
			if len(due) != tt.due || len(due) == 1 && due[0].Doubt != tt.doubt {
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

func TestWhatIsRefusedGoesToTheOneThatStandsInOnce(t *testing.T) {
	t.Parallel()
	x := newOutbox(t)
	n := x.dueAt(t0)[0]
	for i := range 3 { // tried again and refused again
		now := t0.Add(time.Duration(i) * 10 * time.Minute)
		x.claim(n.ID, now)
		x.settle(n, recon.Delivery{Next: now.Add(10 * time.Minute), Undelivered: true, Instead: "leads", Reason: "refused: is_archived"}, now)
	}
	due := x.dueAt(t0.Add(25 * time.Minute))
	if len(due) != 1 || due[0].Destination != "leads" || due[0].Refused != "recon" || due[0].Step != n.Step || due[0].Finding != n.Finding ||
		len(due[0].Mention) != 1 || due[0].Doubt {
		t.Fatalf("due: %+v, want the same for leads", due)
	}
	x.deliver(due[0], "9.9", true, t0.Add(25*time.Minute))
	// Its message is changed with the other ones.
	if told := x.alarmAgain().Told; len(told) != 2 {
		t.Errorf("told %+v, want both destinations", told)
	}
}

// alarmAgain makes the finding change and gives its alarm.
func (x *outbox) alarmAgain() recon.Alarm {
	x.Helper()
	x.exec(`UPDATE reconciler.findings SET version = version + 1`)
	all := x.alarms(t0.Add(time.Hour))
	if len(all) != 1 {
		x.Fatalf("%d to plan, want 1", len(all))
	}
	return all[0]
}

func TestAChangeWaitsForItsMessageAndIsMadeOnce(t *testing.T) {
	t.Parallel()
	x := newOutbox(t)
	first := x.dueAt(t0)[0]
	later := t0.Add(time.Minute)
	for range 3 {
		x.save(later, telling(x.alarmAgain(), later, edit()))
	}
	if due := x.dueAt(later); len(due) != 1 || due[0].Act != recon.ActTell {
		t.Fatalf("due before the message stands: %+v, want the first one only", due)
	}
	x.deliver(first, "1.2", true, later)
	due := x.dueAt(later)
	if len(due) != 1 || due[0].Act != recon.ActEdit || due[0].Edition != 3 || due[0].Root != (recon.Receipt{Channel: "C1", TS: "1.2"}) {
		t.Fatalf("due after the message stands: %+v, want one change", due)
	}
	// It changes while the change is under way: what was sent may not show it.
	x.claim(due[0].ID, later)
	x.save(later, telling(x.alarmAgain(), later, edit()))
	x.settle(due[0], recon.Delivery{Done: true}, later)
	again := x.dueAt(later)
	if len(again) != 1 || again[0].Edition != 4 {
		t.Fatalf("due after a change in between: %+v, want it once more", again)
	}
	x.claim(again[0].ID, later)
	x.settle(again[0], recon.Delivery{Done: true}, later)
	if due := x.dueAt(later.Add(time.Hour)); len(due) != 0 {
		t.Errorf("due when all is shown: %+v", due)
	}
	// A day later it changes again: what waits is a day younger.
	day := later.Add(24 * time.Hour)
	x.save(day, telling(x.alarmAgain(), day, edit()))
	if s, err := x.led.Snapshot(t.Context(), day); err != nil || !s.OldestNotice.Equal(day) {
		t.Errorf("oldest undelivered %s (%v), want %s", s.OldestNotice, err, day)
	}
}

func TestAStepWaitsForTheMessageInWhoseThreadItBelongs(t *testing.T) {
	t.Parallel()
	x := newOutbox(t)
	hour := t0.Add(time.Hour)
	x.save(hour, telling(x.alarmAgain(), hour, step("after 1 h"), edit()))
	due := x.dueAt(hour)
	if len(due) != 1 || due[0].Step != "after 0 s" {
		t.Fatalf("due: %+v, want the first step alone", due)
	}
	x.deliver(due[0], "1.2", true, hour)
	due = x.dueAt(hour)
	if len(due) != 2 || due[0].Step != "after 1 h" || due[0].Root.TS != "1.2" || due[1].Act != recon.ActEdit {
		t.Fatalf("due: %+v, want the answer before the change", due)
	}
	x.deliver(due[0], "1.5", false, hour)
	if due := x.dueAt(hour); len(due) != 1 || due[0].Root.TS != "1.2" {
		t.Errorf("due: %+v, want the change of the message, not of the answer", due)
	}
	// The message is deleted, and told anew: from then on that one is changed.
	x.deliver(x.dueAt(hour)[0], "7.7", true, hour)
	x.save(hour, telling(x.alarmAgain(), hour, edit()))
	if due := x.dueAt(hour); len(due) != 1 || due[0].Root.TS != "7.7" {
		t.Errorf("due: %+v, want the change of the new message", due)
	}
}

func TestAPlanOfWhatChangedMeanwhileIsDropped(t *testing.T) {
	t.Parallel()
	x := newOutbox(t)
	stale := x.alarmAgain()
	fresh := x.alarmAgain()
	x.save(t0, telling(stale, t0, step("stale")))
	x.save(t0, telling(fresh, t0, step("fresh")))
	x.save(t0, telling(fresh, t0, step("twice"))) // another process had read the same
	if n := one[string](x.world, `SELECT string_agg(step, ', ' ORDER BY step) FROM reconciler.notices`); n != "after 0 s, fresh" {
		t.Errorf("planned: %s", n)
	}
	if again := x.alarms(t0.Add(time.Hour)); len(again) != 0 {
		t.Errorf("still to be planned: %+v", again)
	}
}

func TestAFindingThatOpensAgainIsToldFromTheBeginning(t *testing.T) {
	t.Parallel()
	x := newOutbox(t)
	x.exec(`UPDATE reconciler.findings SET acknowledged_until = $1, state = 'acknowledged'`, t0.Add(48*time.Hour))
	x.find(t0.Add(time.Hour), nil, []string{x.f.Fingerprint()})
	x.find(t0.Add(2*time.Hour), []recon.Finding{x.f}, nil)
	all := x.alarms(t0.Add(2 * time.Hour))
	if len(all) != 1 || all[0].Opening != 2 || len(all[0].Told) != 0 || !all[0].PausedUntil.IsZero() || all[0].Finding.State != recon.FindingOpen {
		t.Fatalf("to plan: %+v, want its second opening, of which nobody was told", all)
	}
	x.save(t0.Add(2*time.Hour), telling(all[0], t0.Add(2*time.Hour), step("after 0 s")))
	if n := one[int](x.world, `SELECT count(*) FROM reconciler.notices WHERE step = 'after 0 s'`); n != 2 {
		t.Errorf("%d notices, want one for each opening", n)
	}
}

func TestAnEndWakesWhatItsMessageNamed(t *testing.T) {
	t.Parallel()
	x := newOutbox(t)
	lesser := recon.Finding{Kind: recon.FindUnresolved, Certainty: recon.Proof, Source: source, Operations: []recon.OperationID{"op-1"}, Reason: "old"}
	now := t0.Add(time.Minute)
	x.find(now, []recon.Finding{lesser}, nil)
	all := x.alarms(now)
	if len(all) != 1 || len(all[0].Beside) != 1 || all[0].Beside[0].Fingerprint() != x.f.Fingerprint() {
		t.Fatalf("to plan: %+v, want the lesser one beside the other", all)
	}
	x.save(now, telling(all[0], now)) // it is named by the other
	if again := x.alarms(now.Add(time.Hour)); len(again) != 0 {
		t.Fatalf("to plan: %+v", again)
	}
	x.find(now, nil, []string{x.f.Fingerprint()})
	end := telling(x.alarms(now)[0], now)
	end.Wake = true
	x.save(now, end)
	again := x.alarms(now)
	if len(again) != 1 || again[0].Finding.Kind != recon.FindUnresolved || len(again[0].Beside) != 0 {
		t.Errorf("to plan after the end: %+v, want the lesser one, alone", again)
	}
}

func TestAPauseThatIsOverOpensTheFindingAgain(t *testing.T) {
	t.Parallel()
	x := newOutbox(t)
	x.exec(`UPDATE reconciler.findings SET state = 'acknowledged', acknowledged_until = $1, version = version + 1`, t0.Add(time.Hour))
	a := x.alarms(t0)[0]
	if !a.PausedUntil.Equal(t0.Add(time.Hour)) || a.Finding.State != recon.FindingAcknowledged {
		t.Fatalf("alarm %+v, want it paused", a)
	}
	pause := telling(a, t0)
	pause.Next = a.PausedUntil
	x.save(t0, pause)
	over := t0.Add(time.Hour)
	a = x.alarms(over)[0]
	resume := telling(a, over)
	resume.Resume = true
	x.save(over, resume)
	f := x.story("op-1").Findings[0]
	if f.State != recon.FindingOpen || f.Version != a.Finding.Version+1 {
		t.Errorf("finding %+v, want it open in a new version, for which old buttons no longer hold", f)
	}
	if again := x.alarms(over.Add(time.Hour)); len(again) != 0 {
		t.Errorf("to plan again: %+v", again)
	}
}
