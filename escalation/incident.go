package escalation

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	// refresh is how often an incident's messages may change in its first hour, and slow
	// afterwards.
	refresh = 30 * time.Second
	slow    = 5 * time.Minute
	// settle is how long a source that answers again has to conclude what waited for it,
	// before what is still open is told for itself.
	settle = 10 * time.Minute
	// blip is how long a source may be silent without anybody being told, unless that is a
	// finding already.
	blip = 3 * time.Minute
)

// Reasons of incidents.
const (
	SourceDown Reason = "source_down" // folded: nothing can be concluded at the source anyway
	Together   Reason = "together"    // folded: many of one kind at once
	Joins      Reason = "joins"       // folded: into the incident that takes its kind in
	Over       Reason = "over"        // nobody is needed for it any more
	Few        Reason = "few"         // the rest is told one by one
	SourceBack Reason = "source_back" // the source answers again
)

// Folds says which crowds are told as an incident.
func Folds(crowds []recon.Crowd, p Policy, now time.Time) []recon.Fold {
	var folds []recon.Fold
	for _, c := range crowds {
		f := recon.Fold{Source: c.Source, Kind: c.Kind, As: c.Kind}
		switch {
		case c.Kind == recon.FindBlind, c.Kind == recon.FindUnresolved && (c.Down || c.DownIncident != ""):
			f.As, f.Reason = recon.FindBlind, string(SourceDown)
		case c.Incident != "" && now.Sub(c.Joined) < p.foldWithin():
			f.Reason = string(Joins)
		case c.Count >= p.foldAt():
			f.Reason = string(Together)
		default:
			continue
		}
		folds = append(folds, f)
	}
	return folds
}

// PlanIncident says who is told of an incident now, whether it takes in more, and when
// it is over. Its telling is one message however many findings it holds. The second
// result is since when its source answers again.
func PlanIncident(i recon.Incident, p Policy, now time.Time) (recon.Telling, time.Time) {
	t := recon.Telling{Incident: i.ID, PlanAt: i.PlanAt, Shown: i.Shown, Total: i.Total, Open: i.Open}
	up := i.UpSince
	switch {
	case !i.DownSince.IsZero():
		up = time.Time{}
	case up.IsZero() && i.Kind == recon.FindBlind:
		up = now
	}
	t.Full, t.Over, t.Reason = standing(i, p, up, now)
	all := incidentRungs(i, p)
	t.Level = level(all, now)
	if !t.Over {
		t.Next = planAgain(i, all, p, now)
		if !momentary(i, now) {
			t.Notices = dueSteps(all, i.Told, now)
		}
	}
	if shown := shows(i, t.Over, up); shown != i.Shown {
		t.Shown = shown
		t.Notices = append(t.Notices, edits(i.Told, Reason(t.Reason), now)...)
	}
	for n := range t.Notices {
		t.Notices[n].Incident = i.ID
	}
	return t, up
}

// momentary reports whether a source has been silent for so short a time that nobody
// needs to know yet.
func momentary(i recon.Incident, now time.Time) bool {
	return i.Kind == recon.FindBlind && i.Fault == "" && now.Sub(i.DownSince) < blip
}

// standing says whether an incident takes in no more, whether it is over, and why.
func standing(i recon.Incident, p Policy, up, now time.Time) (full, over bool, reason string) {
	if i.Kind == recon.FindBlind {
		switch {
		case up.IsZero():
			return false, false, string(SourceDown)
		case i.Open == 0, len(i.Told) == 0, now.Sub(up) >= settle:
			return true, true, string(SourceBack)
		}
		return false, false, string(SourceBack)
	}
	full = !i.FullAt.IsZero() || now.Sub(i.JoinedAt) >= p.foldWithin()
	switch {
	case i.Open == 0:
		return true, true, string(Over)
	case full && i.Open <= p.foldAt()/3:
		return true, true, string(Few)
	}
	return full, false, string(Changed)
}

// incidentRungs are the steps of the ladders of all its operations.
func incidentRungs(i recon.Incident, p Policy) []rung {
	actions := i.Actions
	if len(actions) == 0 {
		actions = []string{""}
	}
	var steps []Step
	for _, action := range actions {
		for _, s := range p.ladder(action, i.Kind) {
			if !slices.ContainsFunc(steps, func(o Step) bool { return o.Name() == s.Name() && o.To == s.To && o.Mention == s.Mention }) {
				steps = append(steps, s)
			}
		}
	}
	since := i.OpenedAt
	for _, t := range []time.Time{i.Oldest, i.DownSince} {
		if !t.IsZero() && t.Before(since) {
			since = t
		}
	}
	expires := i.KeyExpires
	if i.Kind != recon.FindUnresolved && i.Kind != recon.FindMissing && i.Kind != recon.FindBlind {
		expires = time.Time{}
	}
	return p.rungs(climb{steps: steps, money: i.Money, since: since, opened: i.OpenedAt, expires: expires})
}

// planAgain is when an incident is planned next: at the next step of its ladder, when
// it may be full, and as often as its messages may change.
func planAgain(i recon.Incident, all []rung, p Policy, now time.Time) time.Time {
	again := refresh
	if now.Sub(i.OpenedAt) > time.Hour {
		again = slow
	}
	at := now.Add(again)
	for _, t := range []time.Time{next(all, now), i.JoinedAt.Add(p.foldWithin())} {
		if t.After(now) && t.Before(at) {
			at = t
		}
	}
	return at
}

// shows is what the messages of an incident depend on. The passing of time alone
// changes nothing in them: they name instants.
func shows(i recon.Incident, over bool, up time.Time) string {
	return fmt.Sprint(i.Open, " of ", i.Total, " since ", i.Oldest.Unix(), " ", i.Money, " until ", i.KeyExpires.Unix(), " up ", !up.IsZero(), " over ", over)
}
