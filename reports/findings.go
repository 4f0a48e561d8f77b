package reports

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// FindingRow is a finding as it is listed. It has the shape of the ledger's, so that one
// converts to the other.
type FindingRow struct {
	recon.Finding
	EndedAt           time.Time
	SettledAt         time.Time
	SettledBy         string
	SettledAs         string
	Level             int
	Assignee          string
	AcknowledgedUntil time.Time
	SnoozedUntil      time.Time
	Proposal          *recon.Proposal
}

// FindingStory is one finding with everything that a person needs to decide on it.
type FindingStory struct {
	FindingRow
	Effects []recon.Effect
	Stories []recon.Story
	Acts    []recon.PersonAct
}

// FindingList is a list of findings and how it is shown.
type FindingList struct {
	Rows      []FindingRow
	Now       time.Time
	Zone      *time.Location
	Exponents map[string]int // of the currencies that a provider counts in other units than ISO 4217
}

// Findings writes a list of findings, in the order given: what, how much, how old, and
// why in one line each.
func Findings(w io.Writer, l FindingList) error {
	p := newPage(l.Now, l.Zone)
	for _, f := range l.Rows {
		p.line(fmt.Sprintf("%s  %s  %s  %s  %s", pad(f.ID, 36), pad(string(f.Kind), 10), pad(state(f.Finding), 12),
			left(amount(f.Money, l.Exponents), 15), left(span(age(f, l.Now)), 11)))
		p.line("  " + f.Reason)
		for _, note := range f.notes(p) {
			p.line("  " + note)
		}
	}
	switch len(l.Rows) {
	case 0:
		p.line("no findings")
	default:
		p.line(count(len(l.Rows), "finding") + "; `reconciler findings show ID` tells everything about one")
	}
	return p.writeTo(w)
}

func amount(m recon.Money, exponents map[string]int) string {
	if m.IsZero() {
		return ""
	}
	return m.Text(exponents)
}

// age is how long a finding is or was open.
func age(f FindingRow, now time.Time) time.Duration {
	if over := closedAt(f); !over.IsZero() {
		now = over
	}
	return now.Sub(f.OpenedAt)
}

func closedAt(f FindingRow) time.Time {
	switch f.State {
	case recon.FindingSettled:
		return f.SettledAt
	case recon.FindingEnded:
		return f.EndedAt
	}
	return time.Time{}
}

// notes are what people did with it, and how it ended.
func (f FindingRow) notes(p *page) []string {
	var notes []string
	add := func(set bool, format string, args ...any) {
		if set {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	add(f.Assignee != "", "assigned to %s", f.Assignee)
	add(f.State == recon.FindingAcknowledged && !f.AcknowledgedUntil.IsZero(), "acknowledged until %s", p.when(f.AcknowledgedUntil))
	add(f.State == recon.FindingSnoozed, "snoozed until %s", p.when(f.SnoozedUntil))
	if f.Proposal != nil {
		add(true, "waits for %s", f.Proposal.Text())
	}
	add(f.State == recon.FindingSettled, "settled: %s", f.Ending)
	add(f.State == recon.FindingEnded, "ended by itself: %s", f.Ending)
	return notes
}

// Finding writes one finding on one screen: what is wrong, both sides' values, what was
// asked and answered, what happens by itself, and what people may do and did.
func Finding(w io.Writer, s FindingStory, now time.Time, zone *time.Location) error {
	p := newPage(now, zone)
	var exponents map[string]int
	if len(s.Stories) > 0 {
		exponents = s.Stories[0].Policy.Exponents
	}
	p.line(fmt.Sprintf("%s: %s", s.Kind, s.Kind.Text()))
	p.line(s.ID)
	p.blank()
	p.findingHead(s, exponents)
	p.effectsNamed(s, exponents)
	for _, story := range s.Stories {
		p.blank()
		p.line("Operation " + string(story.Operation.ID) + ": " + story.Title())
		p.state(story)
		if s.Open() {
			p.row("By itself", story.ByItself(s.Finding, now, zone))
		}
		p.effects(story)
		p.journal(story)
	}
	if more := len(s.Operations) - len(s.Stories); more > 0 {
		p.line(fmt.Sprintf("and %d more: `reconciler operations show ID` tells them", more))
	}
	p.acts(s.Acts)
	p.ways(s)
	return p.writeTo(w)
}

func (p *page) findingHead(s FindingStory, exponents map[string]int) {
	p.row("State", state(s.Finding))
	p.row("Why", s.Reason)
	for _, d := range s.Observed {
		if s.Kind == recon.FindOrphan {
			break // nothing of ours is there to differ from
		}
		p.row("Differs", fmt.Sprintf("%s: ours %s, theirs %s", recon.Noun(d.Field), orNone(d.Ours), orNone(d.Theirs)))
	}
	p.row("Money", amount(s.Money, exponents))
	p.row("Certainty", string(s.Certainty))
	p.row("Source", string(s.Source))
	if s.Open() {
		p.row("Open for", p.since(s.OpenedAt))
	} else {
		p.row("Opened", p.when(s.OpenedAt))
		p.row("Over since", p.ago(closedAt(s.FindingRow)))
	}
	for _, note := range s.notes(p) {
		p.row("Now", note)
	}
	if s.Proposal != nil {
		p.row("They said", s.Proposal.Reason)
	}
	if s.Open() {
		p.row("What to do", s.Kind.Advice())
	}
	p.row("Version", fmt.Sprint(s.Version))
}

// effectsNamed lists the effects that the finding names and no operation below shows.
func (p *page) effectsNamed(s FindingStory, exponents map[string]int) {
	shown := map[recon.EffectIdentity]bool{}
	for _, story := range s.Stories {
		for _, e := range story.Effects {
			shown[e.Identity()] = true
		}
	}
	lead := "Effect"
	for _, e := range s.Effects {
		if shown[e.Identity()] {
			continue
		}
		p.row(lead, effectText(e, exponents, p))
	}
}

// effectText tells one effect: what, how much, where, and who made it.
func effectText(e recon.Effect, exponents map[string]int, p *page) string {
	s := fmt.Sprintf("%s: %s of %s, %s, made %s", e.ID, recon.Noun(e.Kind), e.Money.Text(exponents), e.Status.Text(), p.when(e.CreatedAt))
	if e.CreatedBy != "" {
		s += " by " + e.CreatedBy
	}
	if e.Parent != "" {
		s += ", under " + e.Parent
	}
	s += fmt.Sprintf(", account %s, mode %s", orNone(e.Account), orNone(e.Mode))
	if e.Owner != "" {
		s += ", belongs to " + e.Owner
	}
	return s
}

// acts tells who did what.
func (p *page) acts(acts []recon.PersonAct) {
	if len(acts) == 0 {
		return
	}
	p.blank()
	p.line("Who did what")
	for _, a := range acts {
		text := a.Text(p.zone)
		if a.Via != "" {
			text += ", by " + a.Via
		}
		if a.Reason != "" {
			text += ": " + strings.TrimSuffix(a.Reason, ".")
		}
		p.text("  "+p.when(a.At)+"  ", text)
	}
}

// ways says how to settle it from here.
func (p *page) ways(s FindingStory) {
	if !s.Open() || s.Kind == recon.FindBlind {
		return
	}
	if s.Proposal != nil {
		p.blank()
		p.line("To agree with " + s.Proposal.Person)
		p.text("  ", agreement(s))
	}
	p.blank()
	p.line("To settle it")
	p.text("  ", "reconciler findings resolve "+s.ID+" --as ANSWER --reason TEXT")
	for _, v := range fitting(s, p.now) {
		p.text("    "+pad(string(v), 15)+" ", answerText(v, s.Kind))
	}
}

// agreement is the command by which a second person says the same.
func agreement(s FindingStory) string {
	text := fmt.Sprintf("reconciler findings resolve %s --as %s", s.ID, s.Proposal.Verb)
	if s.Proposal.Effect != "" {
		text += " --effect " + s.Proposal.Effect
	}
	if op := string(s.Proposal.Operation); op != "" && (len(s.Operations) != 1 || s.Proposal.Verb == recon.Adopt) {
		text += " --operation " + op
	}
	if s.Proposal.Action != "" {
		text += " --action " + s.Proposal.Action
	}
	return text + " --reason TEXT"
}

// answerText says what an answer means for a finding of this kind, and what it takes.
func answerText(v recon.Verb, k recon.FindingKind) string {
	switch v {
	case recon.Happened:
		return v.Text("") + " (--effect ID says as which effect; it is looked up first)"
	case recon.Adopt:
		return v.Text("") + " (--operation ID says whose; else a new one is made for it)"
	case recon.Accept:
		return k.Accepted()
	}
	return v.Text("")
}

// fitting are the answers that lead on from a finding of this kind. What is refused for
// everyone, or would only hide what is not known, is offered to nobody.
func fitting(s FindingStory, now time.Time) []recon.Verb {
	switch s.Kind {
	case recon.FindOrphan:
		return []recon.Verb{recon.Adopt, recon.Ignore}
	case recon.FindFailing, recon.FindDuplicate, recon.FindMismatch, recon.FindConflict:
		return []recon.Verb{recon.Accept}
	case recon.FindReversed:
		return []recon.Verb{recon.DidNotHappen, recon.Accept}
	}
	verbs := []recon.Verb{recon.Happened, recon.DidNotHappen}
	if len(s.Stories) == 1 && s.Stories[0].Releasable(now) {
		verbs = append(verbs, recon.Release)
	}
	return verbs
}
