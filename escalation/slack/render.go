package slack

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// How much of each list a message shows. The rest is on the screen that its command
// opens.
const (
	shownLooks       = 3
	shownEffects     = 5
	shownDifferences = 6
	shownOthers      = 4
	shownID          = 120 // characters of one id; the command below holds the whole one
)

// rendered is a message ready for Slack.
type rendered struct {
	Blocks []slackgo.Block `json:"blocks"`
	Text   string          `json:"text"` // what a phone shows on its lock screen
}

// view is a message with what is derived from it once.
type view struct {
	escalation.Message
	zone *time.Location
	// with are the findings that this message tells of besides About, since the same
	// pass raised them; elsewhere are open ones that have a message of their own.
	with, elsewhere []recon.Finding
	head            recon.Finding // what the first line says
}

// render makes the message. No text from outside stands in mrkdwn but in a code span.
func render(m escalation.Message, zone *time.Location) rendered {
	v := newView(m, zone)
	if v.head.Open() {
		return v.open()
	}
	return v.ended()
}

func newView(m escalation.Message, zone *time.Location) view {
	v := view{Message: m, zone: zone, head: m.About}
	about := m.About.Fingerprint()
	for _, f := range m.Story.Findings {
		switch {
		case f.Fingerprint() == about:
		case f.OpenedAt.Equal(m.About.OpenedAt):
			v.with = append(v.with, f)
		case f.Open():
			v.elsewhere = append(v.elsewhere, f)
		}
	}
	slices.SortFunc(v.with, func(a, b recon.Finding) int {
		if escalation.Graver(a, b) {
			return -1
		}
		return 1
	})
	// What the message was posted for has ended; what was told with it may not have.
	if i := slices.IndexFunc(v.with, recon.Finding.Open); !m.About.Open() && i >= 0 {
		v.head = v.with[i]
	}
	return v
}

// open shows an operation that needs a person.
func (v view) open() rendered {
	title := v.Story.Title()
	r := rendered{Text: plain(fmt.Sprintf("%s: %s", first(title), kindText(v.head.Kind)), 700)}
	if safe := v.safeRetry(); safe != "" {
		r.Text += ". " + plain(first(safe), 300)
	}
	r.add(header("🔴 " + first(title)))
	r.add(v.repeat())
	r.add(mrkdwn("*" + escape.Replace(first(kindText(v.head.Kind))) + "*\n" + v.age()))
	r.add(text(lines(v.why(), maxSection)))
	r.add(mrkdwn("*What to do*\n" + escape.Replace(v.head.Kind.Advice())))
	r.add(v.fields())
	r.add(text(v.looks("Asked and answered, newest first")))
	r.add(text(lines(v.others(), maxSection)))
	r.add(v.ids())
	return r
}

// ended shows that nobody is needed any more, and why.
func (v view) ended() rendered {
	title := v.Story.Title()
	how := v.About.Ending
	if how == "" {
		how = "it no longer holds"
	}
	r := rendered{Text: plain(fmt.Sprintf("Ended: %s: %s", title, how), 900)}
	mark := "⚪"
	if v.Story.Operation.State == recon.Succeeded {
		mark = "✅"
	}
	if len(v.elsewhere) > 0 {
		r.add(header("⚪ Told anew in another message: " + title))
	} else {
		r.add(header(mark + " Ended: " + title))
	}
	r.add(v.repeat())
	when := "*Ended*"
	if !v.About.EndedAt.IsZero() {
		when = fmt.Sprintf("*Ended %s, after %s*", clock(v.About.EndedAt, v.Now, v.zone), span(v.About.EndedAt, v.About.OpenedAt))
	}
	r.add(mrkdwn(when + "\nIt was told because " + escape.Replace(kindText(v.About.Kind)) + "."))
	r.add(text(lines([]string{first(how), "The operation is now " + v.Story.Operation.State.Text() + "."}, maxSection)))
	r.add(text(v.looks("Last asked and answered")))
	r.add(text(lines(v.others(), maxSection)))
	r.add(v.ids())
	return r
}

func (v view) repeat() slackgo.Block {
	if !v.Repeat {
		return nil
	}
	return mrkdwn("_Possibly a repeat: Slack's answer to an earlier post of this message was lost._")
}

// age says since when, and where.
func (v view) age() string {
	o := v.Story.Operation
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

// why gives the finding's own sentence, the differing values and the findings told
// with it.
func (v view) why() []string {
	var list []string
	if v.head.Reason != "" {
		list = append(list, recon.Shorten(first(v.head.Reason), 600))
	}
	for i, d := range v.head.Observed {
		if i == shownDifferences {
			list = append(list, fmt.Sprintf("and %d more differences", len(v.head.Observed)-i))
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
		if until := v.Story.SafeRetryUntil(); v.Now.Before(until) {
			safe += " (until " + clock(until, v.Now, v.zone) + ")"
		}
		add("Safe retry", first(strings.TrimPrefix(safe, "safe retry ")))
	}
	add("By itself", v.next())
	add("Tried", v.tried())
	if m := v.head.Money; !m.IsZero() && m != v.Story.Operation.Money {
		fields = append(fields, field("At risk", code(m.Text(v.Story.Policy.Exponents), 60)))
	}
	return slackgo.NewSectionBlock(nil, fields, nil)
}

// safeRetry says how long a repeat stays safe, where a repeat is a choice at all: not
// where an effect was found.
func (v view) safeRetry() string {
	if v.head.Kind != recon.FindUnresolved && v.head.Kind != recon.FindMissing {
		return ""
	}
	return v.Story.SafeRetry(v.Now)
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
		s = fmt.Sprintf("It is asked again in %s (%s)", span(next, v.Now), clock(next, v.Now, v.zone))
	}
	giveUp := v.Story.Since().Add(v.Story.Policy.GiveUpAfter.Std())
	switch {
	case state == recon.ManualReview:
		return s + ". Only proof closes it; else it waits for a person."
	case v.head.Kind == recon.FindUnresolved && v.Story.Policy.GiveUpAfter > 0 && giveUp.After(v.Now):
		return s + ", then less often. Without an answer it goes to manual review in " + span(giveUp, v.Now) + "."
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
	head := v.head.Fingerprint()
	for _, f := range append(slices.Clone(v.with), v.elsewhere...) {
		if f.Fingerprint() == head || !f.Open() && !v.head.Open() {
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
	if v.head.Fingerprint() != v.About.Fingerprint() {
		list = append(list, "Ended: "+kindName(v.About.Kind)+" – "+kindText(v.About.Kind))
	}
	if n := len(list) - shownOthers; n > 0 {
		list = append(list[:shownOthers], fmt.Sprintf("and %d more", n))
	}
	return list
}

// ids names what a person needs to find it, here and at the provider.
func (v view) ids() slackgo.Block {
	o := v.Story.Operation
	parts := []string{"*Operation* " + code(string(o.ID), shownID)}
	if o.Parent != "" {
		parts = append(parts, "*under* "+code(o.Parent, shownID))
	}
	effects := slices.Clone(v.head.Effects)
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
	return mrkdwn(strings.Join(parts, " · ") + "\nMore: " + code(command(o.ID), maxCommand+40))
}

// kindText says what is wrong. A kind that this program does not know, from a newer
// one's ledger, is shown as bare as an effect's.
func kindText(k recon.FindingKind) string {
	if slices.Contains(recon.FindingKinds, k) {
		return k.Text()
	}
	return "finding of another kind: " + bare(string(k))
}

func kindName(k recon.FindingKind) string { return bare(recon.Noun(string(k))) }

// bare keeps only letters, digits and spaces of a word that stands in mrkdwn.
func bare(s string) string {
	keep := func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == ' ' {
			return r
		}
		return -1
	}
	return recon.Shorten(strings.Map(keep, s), 40)
}

// first makes the first letter of a sentence a capital. A sentence that begins with
// an id keeps it as it is.
func first(s string) string {
	word, _, _ := strings.Cut(s, " ")
	if strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) {
		return s
	}
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 || r == utf8.RuneError {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

func orNone(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

func (r *rendered) add(b slackgo.Block) {
	if b != nil {
		r.Blocks = append(r.Blocks, b)
	}
}

func header(s string) slackgo.Block {
	return slackgo.NewHeaderBlock(slackgo.NewTextBlockObject(slackgo.PlainTextType, plain(s, maxHeader), false, false))
}

// field is one cell of our own words; what is from outside in it is a code span.
func field(label, value string) *slackgo.TextBlockObject {
	return slackgo.NewTextBlockObject(slackgo.MarkdownType, "*"+label+"*\n"+value, false, true)
}

// text is a section that reads no formatting at all.
func text(s string) slackgo.Block {
	if s == "" {
		return nil
	}
	return slackgo.NewSectionBlock(slackgo.NewTextBlockObject(slackgo.PlainTextType, s, false, false), nil, nil)
}

// mrkdwn is a section of our own words; what is from outside in it is a code span.
func mrkdwn(s string) slackgo.Block {
	return slackgo.NewSectionBlock(slackgo.NewTextBlockObject(slackgo.MarkdownType, s, false, true), nil, nil)
}
