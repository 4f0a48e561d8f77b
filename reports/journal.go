package reports

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// entryBody is what a screen knows of an entry's body. An entry of a newer version
// may hold more; what is unknown here is left out.
type entryBody struct {
	By         string             `json:"by"`
	Holder     string             `json:"holder"`
	Attempt    int                `json:"attempt"`
	Class      recon.AttemptClass `json:"class"`
	Applied    *bool              `json:"applied"`
	LeaseUntil time.Time          `json:"lease_until"`
	EffectID   string             `json:"effect_id"`
	ErrorCode  string             `json:"error_code"`
	RequestID  string             `json:"request_id"`
	Rule       string             `json:"rule"`
	Reason     string             `json:"reason"`
	From       recon.State        `json:"from"`
	To         recon.State        `json:"to"`
	Release    bool               `json:"release"`
	EventID    string             `json:"event_id"`
	LookIDs    []string           `json:"look_ids"`
	Findings   []findingBody      `json:"findings"`
	Ended      []findingBody      `json:"ended"`

	// Of what a person did.
	Verb       recon.Verb        `json:"verb"`
	Via        string            `json:"via"`
	Kind       recon.FindingKind `json:"finding_kind"`
	Proposed   bool              `json:"proposed"`
	ProposedBy string            `json:"proposed_by"`
	Assignee   string            `json:"assignee"`
	Until      *time.Time        `json:"until"`
}

type findingBody struct {
	Kind recon.FindingKind `json:"kind"`
}

// journal tells all that happened, in order. Of a long story the middle is left out.
func (p *page) journal(s recon.Story) {
	p.blank()
	p.line("What happened")
	days, hidden := p.days(s)
	told := 0
	for _, d := range days {
		p.line("  " + d.Day)
		for _, e := range d.Entries {
			p.text("    "+e.Time+"  ", e.Text)
			for _, l := range e.Looks {
				p.text("      - ", l)
			}
			if e.MoreLooks > 0 {
				p.line(fmt.Sprintf("      and %d looks more", e.MoreLooks))
			}
			if told++; told == shownFirst && hidden > 0 {
				p.line(fmt.Sprintf("  … %d entries more; --format json shows all", hidden))
			}
		}
	}
	if len(s.Journal) == 0 {
		p.line("  nothing is recorded")
	}
}

// days tells the entries of the journal day by day, and how many are left out behind the
// first ones.
func (p *page) days(s recon.Story) (days []StoryDay, hidden int) {
	looks := map[string]recon.Look{}
	for _, l := range s.Looks {
		looks[l.ID] = l
	}
	told := map[string]bool{}
	hidden = max(len(s.Journal)-shownFirst-shownLast, 0)
	for i, e := range s.Journal {
		if i >= shownFirst && i < shownFirst+hidden {
			continue
		}
		if d := e.At.In(p.zone).Format("Monday 2006-01-02"); len(days) == 0 || days[len(days)-1].Day != d {
			days = append(days, StoryDay{Day: d})
		}
		last := &days[len(days)-1]
		last.Entries = append(last.Entries, p.entry(e, s, looks, told))
	}
	return days, hidden
}

// entry tells one entry of the journal, and the looks that it rests on which were not told
// before.
func (p *page) entry(e recon.Entry, s recon.Story, looks map[string]recon.Look, told map[string]bool) StoryEntry {
	var b entryBody
	line := StoryEntry{Time: e.At.In(p.zone).Format("15:04:05 MST"), Text: string(e.Kind), Kind: e.Kind}
	if json.Unmarshal(e.Body, &b) == nil {
		line.Text = p.sentence(e.Kind, b)
	}
	for _, id := range b.LookIDs {
		l, ok := looks[id]
		if !ok || told[id] {
			continue
		}
		told[id] = true
		if len(line.Looks) == shownLooks {
			line.MoreLooks++
			continue
		}
		line.Looks = append(line.Looks, p.lookedAt(l, e)+s.QuestionIn(l, p.zone)+": "+s.Answer(l))
	}
	return line
}

// lookedAt says when a look was made, where that is not the time of its entry.
func (p *page) lookedAt(l recon.Look, e recon.Entry) string {
	if l.At.Truncate(time.Second).Equal(e.At.Truncate(time.Second)) {
		return ""
	}
	return "at " + l.At.In(p.zone).Format("15:04:05 MST") + " "
}

// sentence says in words what an entry tells.
func (p *page) sentence(k recon.EntryKind, b entryBody) string {
	var s string
	switch k {
	case recon.EntryOpened:
		s = "recorded" + by(b.By)
	case recon.EntryStarted:
		s = fmt.Sprintf("attempt %d began%s", b.Attempt, by(b.Holder))
		if !b.LeaseUntil.IsZero() {
			s += ", which may send until " + b.LeaseUntil.In(p.zone).Format("15:04:05 MST")
		}
	case recon.EntryFinished:
		s = finished(b)
	case recon.EntrySeen:
		s = "seen" + because(b.Reason)
	case recon.EntryEvent:
		s = "the provider sent event " + orNone(b.EventID) + because(b.Reason)
	case recon.EntryDecision:
		s = "decided by " + orNone(b.Rule) + because(b.Reason)
	case recon.EntryPerson:
		s = p.acted(b) + because(b.Reason)
	case recon.EntryRelease:
		s = "released for one more attempt" + by(b.By) + because(b.Reason)
	case recon.EntryErased:
		s = "data was erased" + by(b.By) + because(b.Reason)
	default:
		s = recon.Noun(string(k)) + because(b.Reason)
	}
	return s + consequences(k, b)
}

// acted says what a person did.
func (p *page) acted(b entryBody) string {
	if b.Verb == "" {
		return "a person acted" + by(b.By)
	}
	a := recon.PersonAct{Person: orNone(b.By), Verb: b.Verb, Proposed: b.Proposed, ProposedBy: b.ProposedBy,
		Effect: b.EffectID, Assignee: b.Assignee, Until: b.Until}
	s := a.Text(p.zone)
	if b.Kind != "" && !b.Verb.Settles() {
		s += " (" + string(b.Kind) + ")"
	}
	if b.Via != "" {
		s += ", by " + b.Via
	}
	return s
}

func finished(b entryBody) string {
	s := "an attempt"
	if b.Attempt > 0 {
		s = fmt.Sprintf("attempt %d", b.Attempt)
	}
	s += " ended: it " + orNone(classText(b.Class))
	if b.ErrorCode != "" {
		s += " (" + b.ErrorCode + ")"
	}
	if b.RequestID != "" {
		s += ", request " + b.RequestID
	}
	if b.Applied != nil && !*b.Applied {
		s += ". Its lease was over, so it changed nothing"
	}
	return s
}

// consequences says what the entry changed.
func consequences(k recon.EntryKind, b entryBody) string {
	var parts []string
	if b.From != b.To && b.From != "" && b.To != "" && k != recon.EntryStarted { // which says it by itself
		parts = append(parts, "now "+string(b.To))
	}
	if b.EffectID != "" && k != recon.EntryPerson { // whose sentence names it
		parts = append(parts, "effect "+b.EffectID)
	}
	if b.Release && k != recon.EntryRelease {
		parts = append(parts, "released for one more attempt")
	}
	for _, f := range b.Findings {
		parts = append(parts, "finding "+string(f.Kind))
	}
	for _, f := range b.Ended {
		if k == recon.EntryPerson {
			parts = append(parts, string(f.Kind)+" settled")
			continue
		}
		parts = append(parts, string(f.Kind)+" ended")
	}
	if len(parts) == 0 {
		return ""
	}
	return " [" + strings.Join(parts, ", ") + "]"
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + strings.TrimSuffix(reason, ".")
}
