package escalation

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Reason says why a finding is told now, or why it is not.
type Reason string

const (
	StepDue   Reason = "step_due"   // told: a step of its ladder has come due
	HasEnded  Reason = "has_ended"  // shown in its message
	Changed   Reason = "changed"    // shown in its message
	PauseOver Reason = "pause_over" // told: somebody took care of it, and it is still open

	Waiting      Reason = "waiting"        // for the next step of its ladder
	Gathering    Reason = "gathering"      // whether others open with it
	Paused       Reason = "paused"         // acknowledged or snoozed
	NamedByOther Reason = "named_by_other" // a graver one that opened with it names it
	InIncident   Reason = "in_incident"    // an incident tells it
	ToldNobody   Reason = "told_nobody"    // its ladder has no step for it
	LadderDone   Reason = "ladder_done"    // every step was told
)

// StepEdit is the step of a change of a message.
const StepEdit = "edit"

const (
	// gather is how long a finding waits for others that open with it before it is told
	// by itself: long enough for one batch of a sweep.
	gather = 5 * time.Second
	// besideAgain is when a finding that another one names is looked at again, should
	// nobody have woken it.
	besideAgain = 10 * time.Minute
)

// gravity orders the kinds: first what may be happening twice or wrongly while people
// believe otherwise, then what is merely not known yet, last what only tells why.
var gravity = []recon.FindingKind{
	recon.FindDuplicate, recon.FindConflict, recon.FindMismatch, recon.FindReversed, recon.FindMissing,
	recon.FindOrphan, recon.FindUnresolved, recon.FindFailing, recon.FindNeverSent, recon.FindBlind,
}

// Graver reports whether a is to be told before b: by kind, then the one that was
// opened first, then by fingerprint, so that the order is always the same.
func Graver(a, b recon.Finding) bool {
	return cmp.Or(cmp.Compare(Gravity(a.Kind), Gravity(b.Kind)), a.OpenedAt.Compare(b.OpenedAt),
		cmp.Compare(a.Fingerprint(), b.Fingerprint())) < 0
}

// Gravity is the place of a kind among the others, the gravest first. One that this
// program does not know comes last.
func Gravity(k recon.FindingKind) int {
	if i := slices.Index(gravity, k); i >= 0 {
		return i
	}
	return len(gravity)
}

// Plan says for each finding who is told now and when to plan it again. Each is judged
// for itself: the same findings, policy and now give the same tellings in any order.
func Plan(alarms []recon.Alarm, p Policy, now time.Time) []recon.Telling {
	tellings := make([]recon.Telling, 0, len(alarms))
	for _, a := range alarms {
		tellings = append(tellings, tell(a, p, now))
	}
	return tellings
}

// tell plans one finding.
func tell(a recon.Alarm, p Policy, now time.Time) recon.Telling {
	t := recon.Telling{Finding: a.Finding.ID, Version: a.Finding.Version, Planned: a.Planned, PlanAt: a.PlanAt}
	all := rungs(a, p)
	t.Level = level(all, now)
	switch {
	case !a.Finding.Open():
		t.Reason, t.Wake = string(HasEnded), true
	case a.Incident != "":
		t.Reason = string(InIncident)
	case now.Before(a.PausedUntil):
		t.Reason, t.Next = string(Paused), a.PausedUntil
	case len(a.Told) == 0 && named(a):
		t.Level, t.Reason, t.Next = 0, string(NamedByOther), now.Add(besideAgain)
	default:
		ascend(&t, a, all, now)
	}
	// Its messages show what is so now.
	if a.Planned != a.Finding.Version || len(t.Notices) > 0 {
		reason := Changed
		if !a.Finding.Open() {
			reason = HasEnded
		}
		t.Notices = append(t.Notices, edits(a.Told, reason, now)...)
	}
	for i := range t.Notices {
		t.Notices[i].Finding, t.Notices[i].Opening = a.Finding.ID, a.Opening
	}
	return t
}

// ascend tells what has come due and was not told, and finds when the next step does.
func ascend(t *recon.Telling, a recon.Alarm, all []rung, now time.Time) {
	t.Next = next(all, now)
	if len(a.Told) == 0 && t.Level > 0 {
		if ready := firstDue(all, now).Add(gather); now.Before(ready) {
			t.Level, t.Next, t.Reason = 0, ready, string(Gathering)
			return
		}
	}
	t.Notices = dueSteps(all, a.Told, now)
	t.Resume = !a.PausedUntil.IsZero()
	if t.Resume {
		t.Notices = append(t.Notices, reminders(a, t.Notices, now)...)
	}
	switch {
	case len(t.Notices) > 0 && t.Resume:
		t.Reason = string(PauseOver)
	case len(t.Notices) > 0:
		t.Reason = string(StepDue)
	case !t.Next.IsZero():
		t.Reason = string(Waiting)
	case len(all) == 0:
		t.Reason = string(ToldNobody)
	default:
		t.Reason = string(LadderDone)
	}
}

// dueSteps gives a notice for each destination in which a step has come due and
// neither that nor a later one was told. What it overtakes is told with it: whoever
// would have been called is called.
func dueSteps(all []rung, told []recon.ToldStep, now time.Time) []recon.Notice {
	var notices []recon.Notice
	done := map[string]bool{} // destinations that are dealt with
	for i, r := range slices.Backward(all) {
		if now.Before(r.at) || done[r.To] {
			continue
		}
		done[r.To] = true
		if toldFrom(all[i:], told, r.To) {
			continue
		}
		n := recon.Notice{Act: recon.ActTell, Step: r.Name(), Destination: r.To, Reason: string(StepDue), DueAt: now}
		for j := i; j >= 0; j-- {
			e := all[j]
			switch {
			case e.To != r.To || now.Before(e.at):
			case slices.Contains(told, recon.ToldStep{Step: e.Name(), Destination: e.To}):
				j = 0 // what came before that was told with it
			case e.Mention != "" && !slices.Contains(n.Mention, e.Mention):
				n.Mention = append(n.Mention, e.Mention)
			}
		}
		notices = append(notices, n)
	}
	slices.Reverse(notices) // the ladder's order
	return notices
}

// toldFrom reports whether any of the steps was told in a destination.
func toldFrom(steps []rung, told []recon.ToldStep, destination string) bool {
	return slices.ContainsFunc(steps, func(r rung) bool {
		return r.To == destination && slices.Contains(told, recon.ToldStep{Step: r.Name(), Destination: destination})
	})
}

// reminders tell those who knew of the finding that whoever took care of it did not
// end it, where no step tells them anyway.
func reminders(a recon.Alarm, planned []recon.Notice, now time.Time) []recon.Notice {
	var notices []recon.Notice
	for _, d := range destinations(a.Told) {
		if slices.ContainsFunc(planned, func(n recon.Notice) bool { return n.Destination == d }) {
			continue
		}
		notices = append(notices, recon.Notice{
			Act: recon.ActTell, Step: "still open at " + a.PausedUntil.UTC().Format(time.RFC3339), Destination: d,
			Reason: string(PauseOver), DueAt: now,
		})
	}
	return notices
}

// edits change the messages that stand in the destinations which were told.
func edits(told []recon.ToldStep, r Reason, due time.Time) []recon.Notice {
	var notices []recon.Notice
	for _, d := range destinations(told) {
		notices = append(notices, recon.Notice{Act: recon.ActEdit, Step: StepEdit, Destination: d, Reason: string(r), DueAt: due})
	}
	return notices
}

// destinations are those that were told, once each, in the order in which they were.
func destinations(told []recon.ToldStep) []string {
	var list []string
	for _, s := range told {
		if !slices.Contains(list, s.Destination) {
			list = append(list, s.Destination)
		}
	}
	return list
}

// named reports whether every operation of a finding has a graver one that opened in
// the same pass, whose message then names it. One operation without such a message is
// enough for a message of its own: a finding told twice costs a minute, one told to
// nobody costs more.
func named(a recon.Alarm) bool {
	for _, op := range a.Finding.Operations {
		if !slices.ContainsFunc(a.Beside, func(o recon.Finding) bool {
			return o.OpenedAt.Equal(a.Finding.OpenedAt) && slices.Contains(o.Operations, op) && Graver(o, a.Finding)
		}) {
			return false
		}
	}
	return len(a.Finding.Operations) > 0
}

// rung is a step with when it comes due for one finding.
type rung struct {
	Step
	at time.Time
}

// rungs are the steps for a finding in the order of the ladder: by the time at which
// they would come due without quiet hours.
func rungs(a recon.Alarm, p Policy) []rung {
	f := a.Finding
	since := a.Since
	if since.IsZero() || since.After(f.OpenedAt) {
		since = f.OpenedAt
	}
	expires := a.KeyExpiresAt
	if f.Kind != recon.FindUnresolved && f.Kind != recon.FindMissing {
		expires = time.Time{} // an effect was found: no repeat is a choice
	}
	return p.rungs(climb{steps: p.ladder(a.Action, f.Kind), money: []recon.Money{f.Money}, since: since, opened: f.OpenedAt, expires: expires})
}

// climb is what the times of a ladder's steps are counted from.
type climb struct {
	steps   []Step
	money   []recon.Money // at risk
	since   time.Time     // when it came into question
	opened  time.Time
	expires time.Time // of the key; zero: no repeat is a choice
}

// rungs gives the steps that concern so much money, each with its time.
func (p Policy) rungs(c climb) []rung {
	var list []rung
	first, last := time.Duration(-1), time.Duration(0)
	for _, s := range c.steps {
		if s.BeforeKeyExpiry == 0 && s.concerns(c.money) {
			if first < 0 || s.After < first {
				first = s.After
			}
			last = max(last, s.After)
		}
	}
	for _, s := range c.steps {
		switch {
		case !s.concerns(c.money):
		case s.BeforeKeyExpiry == 0:
			list = append(list, rung{s, latest(c.since.Add(s.After), c.opened.Add(s.After-first))})
		case c.opened.Before(c.expires):
			list = append(list, rung{s, latest(c.expires.Add(-s.BeforeKeyExpiry), c.opened)})
		}
	}
	slices.SortStableFunc(list, func(a, b rung) int { return a.at.Compare(b.at) })
	for i, r := range list {
		if r.BeforeKeyExpiry == 0 && r.After != last {
			list[i].at = p.loud(r.at)
		}
	}
	return list
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// upcoming gives the step that a finding climbs to next if nobody acts; nil where none
// does, or where a pause or an incident comes first.
func upcoming(a recon.Alarm, p Policy, now time.Time) *Upcoming {
	if !a.Finding.Open() || a.Incident != "" || now.Before(a.PausedUntil) {
		return nil
	}
	var first *Upcoming
	for _, r := range rungs(a, p) {
		if now.Before(r.at) && (first == nil || r.at.Before(first.At)) {
			first = &Upcoming{At: r.at, To: r.To, Mention: r.Mention}
		}
	}
	return first
}

// level counts the steps that have come due.
func level(all []rung, now time.Time) int {
	n := 0
	for _, r := range all {
		if !now.Before(r.at) {
			n++
		}
	}
	return n
}

// firstDue is when the earliest step that has come due did so.
func firstDue(all []rung, now time.Time) time.Time {
	first := now
	for _, r := range all {
		if r.at.Before(first) {
			first = r.at
		}
	}
	return first
}

// next is when the next step comes due; zero when none does.
func next(all []rung, now time.Time) time.Time {
	var at time.Time
	for _, r := range all {
		if now.Before(r.at) && (at.IsZero() || r.at.Before(at)) {
			at = r.at
		}
	}
	return at
}
