package reports

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// How much of a long story is shown. What is left out is said, and stands in the JSON.
const (
	shownFirst   = 8  // entries of the journal from its beginning
	shownLast    = 16 // and up to its end
	shownLooks   = 4  // looks below one entry
	shownEffects = 12
)

// Story writes one operation on one screen: what was meant, what is believed, what a
// person must know, and all that happened, in order.
func Story(w io.Writer, s recon.Story, now time.Time, zone *time.Location) error {
	p := newPage(now, zone)
	p.line(s.Title())
	p.line(string(s.Operation.ID))
	p.blank()
	p.state(s)
	p.findings(s)
	p.effects(s)
	p.journal(s)
	return p.writeTo(w)
}

// state tells what is believed and what comes next.
func (p *page) state(s recon.Story) {
	for _, r := range p.stateRows(s) {
		p.row(r.Label, r.Value)
	}
}

// stateRows are labels and values; a row without value says nothing.
func (p *page) stateRows(s recon.Story) []StoryRow {
	o := s.Operation
	unknownFor := ""
	if o.State == recon.Unknown || o.State == recon.ManualReview {
		unknownFor = p.since(o.UnknownSince)
	}
	return []StoryRow{
		{"State", o.State.Text()},
		{"Unknown for", unknownFor},
		{"Asked for", o.Action + place(o)},
		{"Tried", tried(o)},
		{"Effect", o.EffectID},
		{"Error", o.ErrorCode},
		{"Safe retry", strings.TrimPrefix(s.SafeRetry(p.now, p.zone), "safe retry ")},
		{"Next check", p.nextCheck(s)},
		{"Looked", looked(s)},
		{"Key", o.Key},
		{"Part of", partOf(o)},
		{"Closed", p.ago(o.ClosedAt)},
	}
}

func (p *page) nextCheck(s recon.Story) string {
	switch next := s.Check.Next; {
	case next.IsZero() && s.Operation.State.Open():
		return "none is planned"
	case next.IsZero():
		return "none: it is closed"
	case next.After(p.now):
		return p.ago(next)
	default:
		return "now; due since " + p.when(next)
	}
}

// since writes how long something lasts, and from when.
func (p *page) since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return span(p.now.Sub(t)) + ", since " + p.when(t)
}

// place says where the operation's effect would be.
func place(o recon.Operation) string {
	s := ""
	if o.Parent != "" {
		s += " under " + o.Parent
	}
	s += " at " + string(o.Source)
	switch {
	case o.Account != "":
		s += ", account " + o.Account
	default:
		s += ", account not known"
	}
	if o.Mode != "" {
		s += ", mode " + o.Mode
	}
	return s
}

func tried(o recon.Operation) string {
	switch {
	case o.Attempts == 0 && o.SentAt.IsZero():
		return "never sent"
	case o.Attempts == 0:
		return "sent, by another ledger's word"
	}
	s := count(o.Attempts, "attempt")
	if text := classText(o.LastClass); text != "" {
		s += "; the last one " + text
	}
	return s
}

// classText says how an attempt ended.
func classText(c recon.AttemptClass) string {
	switch c {
	case recon.ClassSucceeded:
		return "was told that it worked"
	case recon.ClassAccepted:
		return "was taken on, not final"
	case recon.ClassRefused:
		return "was refused for good"
	case recon.ClassNotSent:
		return "did nothing"
	case recon.ClassStoredError:
		return "got an error that the provider stored as its answer"
	case recon.ClassIndeterminate:
		return "got no answer that says what happened"
	}
	return ""
}

func partOf(o recon.Operation) string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	add("group", o.Group)
	add("case", o.Case)
	if o.Step != nil {
		add("step", fmt.Sprint(*o.Step))
	}
	add("run", o.Run)
	add("tool call", o.ToolCall)
	add("reference", o.Reference)
	return strings.Join(parts, ", ")
}

// findings tells what a person must know, open ones first.
func (p *page) findings(s recon.Story) {
	if len(s.Findings) == 0 {
		return
	}
	p.blank()
	p.line("Findings")
	for _, open := range []bool{true, false} {
		for _, f := range s.Findings {
			if f.Open() == open {
				p.finding(s, f)
			}
		}
	}
}

func (p *page) finding(s recon.Story, f recon.Finding) {
	p.text("  ", fmt.Sprintf("%s, %s: %s", f.Kind, state(f), f.Kind.Text()))
	for _, r := range p.findingRows(s, f) {
		p.text("    "+r.Label, r.Value)
	}
}

// findingRows tell a finding below its head; a label is part of the sentence.
func (p *page) findingRows(s recon.Story, f recon.Finding) []StoryRow {
	var rows []StoryRow
	if f.Reason != "" {
		rows = append(rows, StoryRow{"", f.Reason})
	}
	for _, d := range f.Observed {
		rows = append(rows, StoryRow{"", fmt.Sprintf("%s: ours %s, theirs %s", d.Field, orNone(d.Ours), orNone(d.Theirs))})
	}
	if f.Open() {
		rows = append(rows, StoryRow{"open for ", p.since(f.OpenedAt)}, StoryRow{"by itself: ", s.ByItself(f, p.now, p.zone)}, StoryRow{"→ ", f.Kind.Advice()})
		if f.ID != "" {
			rows = append(rows, StoryRow{"→ ", "`reconciler findings show " + f.ID + "` tells the ways to settle it"})
		}
		return rows
	}
	at, how := s.Ending(f)
	return append(rows, StoryRow{state(f) + " ", strings.TrimSuffix(p.when(at)+": "+how, ": ")})
}

func state(f recon.Finding) string {
	if f.State == "" {
		return string(recon.FindingOpen)
	}
	return string(f.State)
}

func orNone(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// effects lists what exists at the provider because of it.
func (p *page) effects(s recon.Story) {
	if len(s.Effects) == 0 {
		return
	}
	p.blank()
	p.line("At the provider")
	for i, e := range s.Effects {
		if i == shownEffects {
			p.line(fmt.Sprintf("  and %d more; --format json shows all", len(s.Effects)-i))
			return
		}
		p.text("  ", p.effect(s, e))
	}
}

func (p *page) effect(s recon.Story, e recon.Effect) string {
	return fmt.Sprintf("%s: %s of %s%s, %s, made %s, account %s, mode %s", e.ID, recon.Noun(e.Kind), e.Money.Text(s.Policy.Exponents),
		share(s, e), e.Status.Text(), p.when(e.CreatedAt), orNone(e.Account), orNone(e.Mode))
}

// share says what of a group's effect is the operation's.
func share(s recon.Story, e recon.Effect) string {
	if e.Owner == "" || e.Owner != s.Operation.Group {
		return ""
	}
	if minor, ok := s.Shares[e.Identity()]; ok {
		return fmt.Sprintf(" for group %s, %s of it for this operation", e.Owner, recon.Money{Minor: minor, Currency: e.Money.Currency}.Text(s.Policy.Exponents))
	}
	return " for group " + e.Owner
}
