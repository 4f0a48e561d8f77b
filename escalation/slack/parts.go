package slack

import (
	"fmt"
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// hasOperation reports whether the finding is about an operation of ours.
func (v view) hasOperation() bool { return v.Story.Operation.ID != "" }

// title says in one line what it is about.
func (v view) title() string {
	if v.hasOperation() {
		return v.Story.Title()
	}
	what := kindName(v.About.Kind)
	if len(v.Story.Effects) > 0 {
		e := v.Story.Effects[0]
		if what = recon.Noun(e.Kind); !e.Money.IsZero() {
			what += " of " + e.Money.Text(v.Story.Policy.Exponents)
		}
		if n := len(v.Story.Effects) - 1; n > 0 {
			what += fmt.Sprintf(" and %d more", n)
		}
	}
	return what + " at " + string(v.About.Source)
}

// age says since when, and where.
func (v view) age() string {
	o := v.Story.Operation
	if !v.hasOperation() {
		return v.ageOfEffect()
	}
	since := o.SentAt
	s := "First sent *%s* ago, at %s"
	switch {
	case o.State == recon.Unknown && !o.UnknownSince.IsZero():
		since, s = o.UnknownSince, "Unknown for *%s*, since %s"
	case since.IsZero():
		since, s = o.CreatedAt, "Recorded *%s* ago, at %s"
	}
	s = fmt.Sprintf(s, span(v.Now, since), clock(since, v.Now, v.zone))
	where := []string{string(o.Source), o.Account, o.Mode}
	where = slices.DeleteFunc(where, func(w string) bool { return w == "" })
	return s + " · " + code(strings.Join(where, " / "), 300)
}

// ageOfEffect is age for what no operation explains.
func (v view) ageOfEffect() string {
	since, s := v.About.OpenedAt, "Found *%s* ago, at %s"
	where := []string{string(v.About.Source)}
	if len(v.Story.Effects) > 0 {
		e := v.Story.Effects[0]
		since, s = e.CreatedAt, "Made *%s* ago, at %s"
		where = append(where, e.Account, e.Mode)
	}
	where = slices.DeleteFunc(where, func(w string) bool { return w == "" })
	return fmt.Sprintf(s, span(v.Now, since), clock(since, v.Now, v.zone)) + " · " + code(strings.Join(where, " / "), 300)
}

// effects tells what is known of effects that no operation explains.
func (v view) effects() slackgo.Block {
	var list []string
	for i, e := range v.Story.Effects {
		if i == shownEffects {
			list = append(list, fmt.Sprintf("and %d more", len(v.Story.Effects)-i))
			break
		}
		parts := []string{recon.Noun(e.Kind) + " " + e.ID + ", " + e.Status.Text()}
		if !e.Money.IsZero() {
			parts = append(parts, e.Money.Text(v.Story.Policy.Exponents))
		}
		parts = append(parts, "made "+recon.TimeText(e.CreatedAt, v.zone))
		for _, p := range []struct{ label, value string }{{"under ", e.Parent}, {"for ", e.Target}, {"by ", e.CreatedBy}, {"with reference ", e.Reference}} {
			if p.value != "" {
				parts = append(parts, p.label+recon.Shorten(p.value, shownID))
			}
		}
		list = append(list, "• "+recon.Shorten(strings.Join(parts, ", "), 600))
	}
	return text(lines(list, maxSection))
}

// why gives the finding's own sentence, the differing values and the findings told
// with it.
func (v view) why() []string {
	var list []string
	if v.About.Reason != "" {
		list = append(list, recon.Shorten(first(v.About.Reason), 600))
	}
	for i, d := range v.About.Observed {
		if i == shownDifferences {
			list = append(list, fmt.Sprintf("and %d more differences", len(v.About.Observed)-i))
			break
		}
		list = append(list, fmt.Sprintf("• %s: ours %s, theirs %s",
			recon.Shorten(d.Field, 40), recon.Shorten(orNone(d.Ours), 120), recon.Shorten(orNone(d.Theirs), 120)))
	}
	return list
}

// fields are the four numbers that a decision needs.
func (v view) fields() slackgo.Block {
	var fields []*slackgo.TextBlockObject
	add := func(label, value string) { fields = append(fields, field(label, escape.Replace(value))) }
	if safe := v.safeRetry(); safe != "" {
		add("Safe retry", first(strings.TrimPrefix(safe, "safe retry ")))
	}
	add("By itself", v.next())
	add("Tried", v.tried())
	if m := v.About.Money; !m.IsZero() && m != v.Story.Operation.Money {
		fields = append(fields, field("At risk", code(m.Text(v.Story.Policy.Exponents), 60)))
	}
	return slackgo.NewSectionBlock(nil, fields, nil)
}

// safeRetry says how long a repeat stays safe, where a repeat is a choice at all: not
// where an effect was found.
func (v view) safeRetry() string {
	if v.About.Kind != recon.FindUnresolved && v.About.Kind != recon.FindMissing {
		return ""
	}
	return v.Story.SafeRetry(v.Now, v.zone)
}

// next says what happens without anybody, and when.
func (v view) next() string {
	next, state := v.Story.Check.Next, v.Story.Operation.State
	var s string
	switch {
	case next.IsZero():
		return "Nothing more is asked. It waits for a person."
	case !next.After(v.Now):
		s = "It is asked again now"
	default:
		s = fmt.Sprintf("It is asked again in %s, at %s", span(next, v.Now), clock(next, v.Now, v.zone))
	}
	giveUp := v.Story.Since().Add(v.Story.Policy.GiveUpAfter.Std())
	switch {
	case state == recon.ManualReview:
		return s + ". Only proof closes it; else it waits for a person."
	case v.About.Kind == recon.FindUnresolved && v.Story.Policy.GiveUpAfter > 0 && giveUp.After(v.Now):
		return s + ", then less often. Without an answer it goes to manual review at " + clock(giveUp, v.Now, v.zone) + "."
	}
	return s + "."
}

// tried says how often it was sent, and how the last time ended.
func (v view) tried() string {
	o := v.Story.Operation
	times := fmt.Sprintf("Sent %d times", o.Attempts)
	switch o.Attempts {
	case 0:
		return "Never sent"
	case 1:
		times = "Sent once"
	}
	switch o.LastClass {
	case recon.ClassSucceeded:
		return times + "; the sender was told that it worked"
	case recon.ClassAccepted:
		return times + "; the provider took it on, not final"
	case recon.ClassRefused:
		return times + "; the last answer was a definite no"
	case recon.ClassNotSent:
		return times + "; the last request did nothing"
	case recon.ClassStoredError:
		return times + "; the provider stored an error as its answer"
	}
	return times + "; the answer was lost"
}

// looks tells the newest looks.
func (v view) looks(label string) string {
	all := v.Story.Looks
	list := []string{label + v.counted() + ":"}
	if len(all) == 0 {
		list = append(list, "• nothing that says more")
	}
	for i := len(all) - 1; i >= 0 && len(list) <= shownLooks; i-- {
		l := all[i]
		line := fmt.Sprintf("• %s  %s: %s", clock(l.At, v.Now, v.zone), v.Story.QuestionIn(l, v.zone), v.Story.Answer(l))
		list = append(list, recon.Shorten(line, 400))
	}
	return lines(list, 1600)
}

// counted says how often it was looked, since looks that say nothing new are not
// told one by one.
func (v view) counted() string {
	c := v.Story.Check
	answered := fmt.Sprintf("%d answers so far", c.Looks)
	if c.Looks == 1 {
		answered = "1 answer so far"
	}
	switch {
	case c.Looks == 0 && c.Blinds == 0:
		return ""
	case c.Blinds == 0:
		return " (" + answered + ")"
	case c.Blinds == 1:
		return " (" + answered + "; the newest look could not look)"
	}
	return fmt.Sprintf(" (%s; the newest %d looks could not look)", answered, c.Blinds)
}

// others names the findings besides the one of the first line.
func (v view) others() []string {
	var list []string
	for _, f := range append(slices.Clone(v.with), v.elsewhere...) {
		if !f.Open() && !v.About.Open() {
			continue
		}
		s := "Also on this operation: " + kindName(f.Kind) + " – " + kindText(f.Kind)
		switch {
		case !f.Open():
			s += " (ended)"
		case slices.ContainsFunc(v.elsewhere, func(o recon.Finding) bool { return o.Fingerprint() == f.Fingerprint() }):
			s += " (has a message of its own)"
		}
		list = append(list, s)
	}
	if n := len(list) - shownOthers; n > 0 {
		list = append(list[:shownOthers], fmt.Sprintf("and %d more", n))
	}
	return list
}

// accepted are the kinds that a person ends by accepting what stands, once both sides were
// compared: no click is enough for that.
var accepted = []recon.FindingKind{recon.FindMismatch, recon.FindDuplicate, recon.FindReversed, recon.FindConflict, recon.FindFailing}

// ids names what a person needs to find it, here and at the provider.
func (v view) ids() slackgo.Block {
	o := v.Story.Operation
	var parts []string
	more := code(command(o.ID), maxCommand+40)
	if v.hasOperation() {
		parts = append(parts, "*Operation* "+code(string(o.ID), shownID))
	} else {
		more = code(findingCommand(v.About.ID), maxCommand)
	}
	if o.Parent != "" {
		parts = append(parts, "*under* "+code(o.Parent, shownID))
	}
	effects := slices.Clone(v.About.Effects)
	if len(effects) == 0 {
		for _, e := range v.Story.Effects {
			effects = append(effects, e.Ref())
		}
	}
	if len(effects) == 0 && o.EffectID != "" {
		effects = append(effects, recon.EffectRef{Kind: v.Story.Policy.Effect, ID: o.EffectID})
	}
	for i, e := range effects {
		if i == shownEffects {
			parts = append(parts, fmt.Sprintf("and %d more", len(effects)-i))
			break
		}
		parts = append(parts, fmt.Sprintf("*%s* %s", escape.Replace(bare(recon.Noun(e.Kind))), code(e.ID, shownID)))
	}
	if v.About.ID != "" {
		parts = append(parts, "*Finding* "+code(v.About.ID, shownID))
	}
	if v.About.Open() && v.About.ID != "" && slices.Contains(accepted, v.About.Kind) {
		more += "\nWhen it is seen to: " + code(acceptCommand(v.About.ID), maxCommand+60)
	}
	return mrkdwn(strings.Join(parts, " · ") + "\nMore: " + more + "\nWritten " + recon.TimeText(v.Now, v.zone))
}
