package escalation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

var now = time.Date(2026, 3, 1, 2, 13, 32, 0, time.UTC)

// alarm is a finding of an operation that opened a time ago.
func alarm(k recon.FindingKind, ago time.Duration) recon.Alarm {
	return recon.Alarm{
		Finding: recon.Finding{ID: "f1", Kind: k, Source: "stripe-main", Operations: []recon.OperationID{"a"},
			Money: recon.Money{Minor: 4200, Currency: "EUR"}, OpenedAt: now.Add(-ago), State: recon.FindingOpen, Version: 3},
		Opening: 1, Action: "refund.create", Planned: 3,
	}
}

func with(a recon.Alarm, change func(*recon.Alarm)) recon.Alarm {
	change(&a)
	return a
}

// told writes notices as "STEP>DESTINATION@MENTION…", edits as "edit>DESTINATION".
func told(notices []recon.Notice) string {
	var list []string
	for _, n := range notices {
		s := n.Step + ">" + n.Destination
		for _, m := range n.Mention {
			s += "@" + m
		}
		list = append(list, s)
	}
	return strings.Join(list, ", ")
}

// documented is the ladder of the contract.
func documented() Policy {
	return Policy{Everybody: []string{"recon", "leads"}, Ladders: map[string][]Step{"default": {
		{After: 15 * time.Minute, To: "recon"}, {After: time.Hour, To: "recon", Mention: "oncall"},
		{After: 4 * time.Hour, To: "leads"}, {BeforeKeyExpiry: 4 * time.Hour, To: "leads"},
	}}}
}

func TestEachFindingIsPlannedWithAReason(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	first := recon.ToldStep{Step: "after 15 min", Destination: "recon"}
	second := recon.ToldStep{Step: "after 1 h", Destination: "recon"}
	third := recon.ToldStep{Step: "after 4 h", Destination: "leads"}
	// One that became unknown so long ago, and was told that and since.
	unknown := func(ago time.Duration, steps ...recon.ToldStep) recon.Alarm {
		return with(alarm(recon.FindUnresolved, ago-15*time.Minute), func(a *recon.Alarm) {
			a.Since, a.KeyExpiresAt, a.Told = now.Add(-ago), now.Add(day-ago), steps
		})
	}
	tests := []struct {
		name   string
		alarm  recon.Alarm
		told   string
		reason Reason
		next   time.Duration // from now; 0: when it changes
		level  int
	}{
		{"just opened: others may come", unknown(15 * time.Minute), "", Gathering, 5 * time.Second, 0},
		{"nobody came", unknown(15*time.Minute + 5*time.Second), "after 15 min>recon", StepDue, 45*time.Minute - 5*time.Second, 1},
		{"told, and not old enough", unknown(50*time.Minute, first), "", Waiting, 10 * time.Minute, 1},
		{"an hour", unknown(time.Hour, first), "after 1 h>recon@oncall, edit>recon", StepDue, 3 * time.Hour, 2},
		{"four hours", unknown(4*time.Hour, first, second), "after 4 h>leads, edit>recon", StepDue, 16 * time.Hour, 3},
		{"the key expires in four hours", unknown(20*time.Hour, first, second, third), "4 h before the key expires>leads, edit>recon, edit>leads", StepDue, 0, 4},
		{"told nobody for hours: each destination once, the newest step", unknown(5 * time.Hour), "after 1 h>recon@oncall, after 4 h>leads", StepDue, 15 * time.Hour, 3},
		{"every step was told", unknown(21*time.Hour, first, second, third, recon.ToldStep{Step: "4 h before the key expires", Destination: "leads"}), "", LadderDone, 0, 4},
		{"a year old when it was opened: the ladder begins then", with(alarm(recon.FindUnresolved, time.Minute), func(a *recon.Alarm) { a.Since = now.Add(-365 * day) }),
			"after 15 min>recon", StepDue, 44 * time.Minute, 1},
		{"another kind counts from when its operation came into question", with(alarm(recon.FindMismatch, time.Minute), func(a *recon.Alarm) { a.Since = now.Add(-20 * time.Minute) }),
			"after 15 min>recon", StepDue, 44 * time.Minute, 1},
		{"an effect was found: no repeat is a choice, so no step before the key expires", with(unknown(22*time.Hour, first, second, third), func(a *recon.Alarm) { a.Finding.Kind = recon.FindMismatch }),
			"", LadderDone, 0, 3},
		{"opened after its key expired", with(alarm(recon.FindMissing, time.Minute), func(a *recon.Alarm) { a.Since, a.KeyExpiresAt = now.Add(-25*time.Hour), now.Add(-time.Hour) }),
			"after 15 min>recon", StepDue, 44 * time.Minute, 1},
		{"acknowledged", with(unknown(2*time.Hour, first), func(a *recon.Alarm) { a.PausedUntil, a.Planned = now.Add(time.Hour), 2 }), "edit>recon", Paused, time.Hour, 2},
		{"the acknowledgement is over and a step came due meanwhile", with(unknown(2*time.Hour, first), func(a *recon.Alarm) { a.PausedUntil = now }),
			"after 1 h>recon@oncall, edit>recon", PauseOver, 2 * time.Hour, 2},
		{"the acknowledgement is over and no step came due", with(unknown(50*time.Minute, first), func(a *recon.Alarm) { a.PausedUntil = now }),
			"still open at 2026-03-01T02:13:32Z>recon, edit>recon", PauseOver, 10 * time.Minute, 1},
		{"acknowledged before anybody was told", with(unknown(20*time.Minute), func(a *recon.Alarm) { a.PausedUntil = now.Add(time.Hour) }), "", Paused, time.Hour, 1},
		{"folded", with(unknown(5*time.Hour), func(a *recon.Alarm) { a.Incident = "i" }), "", InIncident, 0, 3},
		{"its values changed", with(unknown(50*time.Minute, first), func(a *recon.Alarm) { a.Planned = 2 }), "edit>recon", Waiting, 10 * time.Minute, 1},
		{"it ended", with(unknown(5*time.Hour, first, second, third), func(a *recon.Alarm) { a.Finding.State, a.Planned = recon.FindingEnded, 2 }), "edit>recon, edit>leads", HasEnded, 0, 3},
		{"a person settled it", with(unknown(5*time.Hour, first), func(a *recon.Alarm) { a.Finding.State, a.Planned = recon.FindingSettled, 2 }), "edit>recon", HasEnded, 0, 3},
		{"it ended before anybody was told", with(unknown(5*time.Hour), func(a *recon.Alarm) { a.Finding.State, a.Planned = recon.FindingEnded, 2 }), "", HasEnded, 0, 3},
		{"a graver one of the same pass names it", with(unknown(20*time.Minute), func(a *recon.Alarm) {
			a.Beside = []recon.Finding{{Kind: recon.FindDuplicate, Operations: []recon.OperationID{"a", "b"}, OpenedAt: a.Finding.OpenedAt}}
		}), "", NamedByOther, 10 * time.Minute, 0},
		{"a graver one of an earlier pass does not", with(unknown(20*time.Minute), func(a *recon.Alarm) {
			a.Beside = []recon.Finding{{Kind: recon.FindDuplicate, Operations: []recon.OperationID{"a"}, OpenedAt: a.Finding.OpenedAt.Add(-time.Minute)}}
		}), "after 15 min>recon", StepDue, 40 * time.Minute, 1},
		{"a lesser one does not", with(unknown(20*time.Minute), func(a *recon.Alarm) {
			a.Beside = []recon.Finding{{Kind: recon.FindNeverSent, Operations: []recon.OperationID{"a"}, OpenedAt: a.Finding.OpenedAt}}
		}), "after 15 min>recon", StepDue, 40 * time.Minute, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := Plan([]recon.Alarm{tt.alarm}, documented(), now)[0]
			next := time.Duration(0)
			if !got.Next.IsZero() {
				next = got.Next.Sub(now)
			}
			if told(got.Notices) != tt.told || got.Reason != string(tt.reason) || next != tt.next || got.Level != tt.level {
				t.Errorf("got %q, %s, next in %v, level %d\nwant %q, %s, next in %v, level %d",
					told(got.Notices), got.Reason, next, got.Level, tt.told, tt.reason, tt.next, tt.level)
			}
			if got.Wake != !tt.alarm.Finding.Open() || got.Resume != (tt.reason == PauseOver) {
				t.Errorf("wake %v, resume %v", got.Wake, got.Resume)
			}
		})
	}
}

// What a message says of the next step is what the plan then does.
func TestTheStepThatComesNextIfNobodyActs(t *testing.T) {
	t.Parallel()
	unknown := with(alarm(recon.FindUnresolved, 0), func(a *recon.Alarm) {
		a.Since, a.KeyExpiresAt = now.Add(-15*time.Minute), now.Add(24*time.Hour-15*time.Minute)
	})
	in := func(d time.Duration, to, mention string) *Upcoming { return &Upcoming{now.Add(d), to, mention} }
	tests := []struct {
		name   string
		change func(*recon.Alarm)
		policy Policy
		want   *Upcoming
	}{
		{"the second step", nil, documented(), in(45*time.Minute, "recon", "oncall")},
		{"the last step", func(a *recon.Alarm) {
			a.Since, a.Finding.OpenedAt, a.KeyExpiresAt = now.Add(-5*time.Hour), now.Add(-5*time.Hour), now.Add(5*time.Hour)
		}, documented(), in(time.Hour, "leads", "")},
		{"no step is left", func(a *recon.Alarm) {
			a.Since, a.Finding.OpenedAt, a.KeyExpiresAt = now.Add(-23*time.Hour), now.Add(-23*time.Hour), now.Add(time.Hour)
		}, documented(), nil},
		{"somebody takes care of it", func(a *recon.Alarm) { a.PausedUntil = now.Add(time.Minute) }, documented(), nil},
		{"an incident tells it", func(a *recon.Alarm) { a.Incident = "i1" }, documented(), nil},
		{"it is over", func(a *recon.Alarm) { a.Finding.State = recon.FindingEnded }, documented(), nil},
		{"everybody was told at once", nil, Policy{Everybody: []string{"recon"}}, nil},
		{"quiet hours put one step after another", nil, Policy{
			Ladders: map[string][]Step{"default": {{To: "recon"}, {After: time.Hour, To: "recon"}, {After: 2 * time.Hour, To: "leads"}}},
			Quiet:   []Quiet{{From: 0, To: 8 * time.Hour}},
		}, in(2*time.Hour, "leads", "")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := unknown
			if tt.change != nil {
				a = with(a, tt.change)
			}
			got := upcoming(a, tt.policy, now)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Fatalf("-want +got:\n%s", diff)
			}
			if got == nil {
				return
			}
			if told(Plan([]recon.Alarm{a}, tt.policy, got.At.Add(-time.Second))[0].Notices) == told(Plan([]recon.Alarm{a}, tt.policy, got.At.Add(gather))[0].Notices) {
				t.Error("the plan tells nobody then")
			}
		})
	}
}

func TestTheMostSpecificLadderHolds(t *testing.T) {
	t.Parallel()
	to := func(d string) []Step { return []Step{{To: d}} }
	tests := []struct {
		name    string
		ladders map[string][]Step
		want    string
	}{
		{"none: everybody at once", nil, "after 0 s>a, after 0 s>b"},
		{"default", map[string][]Step{"default": to("d")}, "after 0 s>d"},
		{"a kind before default", map[string][]Step{"default": to("d"), "duplicate": to("k")}, "after 0 s>k"},
		{"an action before a kind", map[string][]Step{"duplicate": to("k"), "refund.create": to("r")}, "after 0 s>r"},
		{"both before all", map[string][]Step{"duplicate": to("k"), "refund.create": to("r"), "refund.create/duplicate": to("x")}, "after 0 s>x"},
		{"another kind's is not ours", map[string][]Step{"missing": to("m")}, "after 0 s>a, after 0 s>b"},
		{"an empty one tells nobody", map[string][]Step{"duplicate": {}, "default": to("d")}, ""},
		{"above an amount", map[string][]Step{"default": {{To: "d", Above: map[string]int64{"EUR": 4199}}, {To: "e", Above: map[string]int64{"EUR": 4200}}, {To: "f", Above: map[string]int64{"USD": 1}}}}, "after 0 s>d"},
	}
	for _, tt := range tests {
		a := alarm(recon.FindDuplicate, time.Minute)
		if got := told(Plan([]recon.Alarm{a}, Policy{Everybody: []string{"a", "b"}, Ladders: tt.ladders}, now)[0].Notices); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestQuietHours(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	night := Quiet{From: 22 * time.Hour, To: 7 * time.Hour, Zone: berlin}
	weekend := Quiet{From: 0, To: 24 * time.Hour, Days: []time.Weekday{time.Saturday, time.Sunday}, Zone: berlin}
	at := func(s string) time.Time {
		v, err := time.ParseInLocation("2006-01-02 15:04", s, berlin)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	tests := []struct{ name, at, want string }{
		{"by day", "2026-03-03 12:00", "2026-03-03 12:00"},
		{"it begins", "2026-03-03 22:00", "2026-03-04 07:00"},
		{"after midnight", "2026-03-04 03:00", "2026-03-04 07:00"},
		{"it ends", "2026-03-04 07:00", "2026-03-04 07:00"},
		{"Friday night goes over into the weekend and the night after", "2026-03-06 23:00", "2026-03-09 07:00"},
		{"the night in which the clock goes forward", "2026-03-29 01:30", "2026-03-30 07:00"},
		{"the night in which it goes back", "2026-10-25 02:30", "2026-10-26 07:00"},
	}
	for _, tt := range tests {
		if got := (Policy{Quiet: []Quiet{night, weekend}}).loud(at(tt.at)); !got.Equal(at(tt.want)) {
			t.Errorf("%s: %s is told at %s, want %s", tt.name, tt.at, got.In(berlin), tt.want)
		}
	}
	always := Policy{Quiet: []Quiet{{From: 0, To: 12 * time.Hour}, {From: 12 * time.Hour, To: 24 * time.Hour}}}
	if got := always.loud(now); got.Before(now) {
		t.Errorf("hours that are always quiet give %s", got)
	}
}

func TestADigestIsDueOnceADayAndNotLate(t *testing.T) {
	t.Parallel()
	eight := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	d := Digest{To: []string{"recon"}, Last: func(t time.Time) time.Time {
		if t.Before(eight) {
			return eight.AddDate(0, 0, -1)
		}
		return eight
	}}
	for _, tt := range []struct {
		at   time.Time
		want string
	}{{eight, "2026-03-01"}, {eight.Add(11 * time.Hour), "2026-03-01"}, {eight.Add(13 * time.Hour), ""}, {eight.Add(-time.Second), ""}} {
		if got := d.due(tt.at); got != tt.want {
			t.Errorf("at %s: %q, want %q", tt.at, got, tt.want)
		}
	}
	if (Digest{Last: d.Last}).due(eight) != "" || (Digest{To: d.To}).due(eight) != "" {
		t.Error("a digest without a time or a destination is due")
	}
}

// drawPolicy draws ladders, quiet hours and amounts.
func drawPolicy(rt *rapid.T) Policy {
	step := rapid.Custom(func(rt *rapid.T) Step {
		s := Step{To: rapid.SampledFrom([]string{"recon", "leads", "team"}).Draw(rt, "to"), Mention: rapid.SampledFrom([]string{"", "oncall", "ana"}).Draw(rt, "mention")}
		if rapid.IntRange(0, 3).Draw(rt, "expiry") == 0 {
			s.BeforeKeyExpiry = time.Duration(rapid.IntRange(1, 12).Draw(rt, "before")) * time.Hour
		} else {
			s.After = time.Duration(rapid.IntRange(0, 30).Draw(rt, "after")) * 20 * time.Minute
		}
		if rapid.IntRange(0, 4).Draw(rt, "above") == 0 {
			s.Above = map[string]int64{"EUR": rapid.Int64Range(0, 9000).Draw(rt, "limit")}
		}
		return s
	})
	steps := rapid.SliceOfNDistinct(step, 0, 6, func(s Step) string { return s.Name() + s.To }).Draw(rt, "ladder")
	p := Policy{Ladders: map[string][]Step{"default": steps}}
	if rapid.Bool().Draw(rt, "quiet") {
		p.Quiet = []Quiet{{From: time.Duration(rapid.IntRange(0, 23).Draw(rt, "from")) * time.Hour, To: time.Duration(rapid.IntRange(0, 24).Draw(rt, "to")) * time.Hour}}
	}
	return p
}

// Laws of the ladder, over the life of one finding that is planned whenever it asks for
// it, and at other times: no step is told twice; no destination whose step has come due
// is left untold; the last step and the one before a key expires are never late.
func TestALadderLosesNothingAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPolicy(rt)
		a := alarm(rapid.SampledFrom([]recon.FindingKind{recon.FindUnresolved, recon.FindMismatch}).Draw(rt, "kind"), 0)
		if rapid.Bool().Draw(rt, "keyed") {
			a.KeyExpiresAt = now.Add(time.Duration(rapid.IntRange(-2, 24).Draw(rt, "key")) * time.Hour)
		}
		a.Since = now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(rt, "since")) * time.Hour)
		clock := now
		for range 40 {
			if rapid.IntRange(0, 9).Draw(rt, "acknowledged") == 0 {
				a.PausedUntil = clock.Add(time.Hour)
			}
			got := Plan([]recon.Alarm{a}, p, clock)[0]
			a.PlanAt = got.Next
			for _, n := range got.Notices {
				s := recon.ToldStep{Step: n.Step, Destination: n.Destination}
				if n.Act == recon.ActEdit {
					continue
				}
				if slices.Contains(a.Told, s) {
					rt.Fatalf("told twice: %+v", s)
				}
				a.Told = append(a.Told, s)
			}
			paused := clock.Before(a.PausedUntil)
			if got.Resume {
				a.PausedUntil = time.Time{}
			}
			if !paused && got.Reason != string(Gathering) {
				checkNoneLost(rt, rungs(a, p), a.Told, clock)
			}
			if got.Next.IsZero() {
				break
			}
			if !got.Next.After(clock) {
				rt.Fatalf("planned again at %s, which is not after %s", got.Next, clock)
			}
			clock = got.Next
			if rapid.IntRange(0, 3).Draw(rt, "late") == 0 {
				clock = clock.Add(time.Duration(rapid.IntRange(0, 600).Draw(rt, "minutes")) * time.Minute)
			}
		}
		checkNeverMuted(rt, rungs(a, p), rungs(a, Policy{Ladders: p.Ladders}))
	})
}

// checkNoneLost fails when a step has come due and neither it nor a later one was told.
func checkNoneLost(rt *rapid.T, all []rung, told []recon.ToldStep, at time.Time) {
	for i, r := range all {
		if !at.Before(r.at) && !toldFrom(all[i:], told, r.To) {
			rt.Fatalf("%s in %s came due at %s and is not told at %s: %v", r.Name(), r.To, r.at, at, told)
		}
	}
}

// checkNeverMuted compares a ladder with the same one without quiet hours.
func checkNeverMuted(rt *rapid.T, quiet, loud []rung) {
	last := time.Duration(0)
	for _, r := range loud {
		last = max(last, r.After)
	}
	for i, r := range loud {
		if (r.BeforeKeyExpiry > 0 || r.After == last) && !quiet[i].at.Equal(r.at) {
			rt.Fatalf("%s is the last step or one before a key expires, and is told at %s instead of %s", r.Name(), quiet[i].at, r.at)
		}
		if quiet[i].at.Before(r.at) {
			rt.Fatalf("%s is told before its time", r.Name())
		}
	}
}

// The plan of a finding depends on nothing but itself.
func TestTheOrderOfFindingsChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPolicy(rt)
		var all []recon.Alarm
		for i := range rapid.IntRange(0, 8).Draw(rt, "findings") {
			all = append(all, with(alarm(rapid.SampledFrom(recon.FindingKinds).Draw(rt, "kind"), time.Duration(rapid.IntRange(0, 500).Draw(rt, "age"))*time.Minute), func(a *recon.Alarm) {
				a.Finding.ID = fmt.Sprint("f", i)
				a.Finding.State = rapid.SampledFrom([]recon.FindingState{recon.FindingOpen, recon.FindingEnded}).Draw(rt, "state")
			}))
		}
		want := Plan(all, p, now)
		back := slices.Clone(all)
		slices.Reverse(back)
		got := Plan(back, p, now)
		slices.Reverse(got)
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatalf("the order changes what is told:\n%s", d)
		}
	})
}
