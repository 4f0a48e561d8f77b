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
	shownCurrencies  = 8
	shownID          = 120 // characters of one id; the command below holds the whole one
)

// rendered is a message ready for Slack.
type rendered struct {
	Blocks []slackgo.Block `json:"blocks"`
	Text   string          `json:"text"` // what a phone shows on its lock screen
}

// view is a message about a finding with what is derived from it once.
type view struct {
	escalation.Message
	zone *time.Location
	// with are the findings that this message tells of besides About, since the same
	// pass raised them; elsewhere are open ones that have a message of their own.
	with, elsewhere []recon.Finding
}

// render makes the message that stands. No text from outside stands in mrkdwn but in a
// code span.
func (n *Notifier) render(m escalation.Message) rendered {
	var r rendered
	switch {
	case m.Incident != nil:
		r = incident{m, *m.Incident, n.zone}.render()
	case m.Digest != nil:
		r = digest{m, *m.Digest, n.zone}.render()
	case m.Report != nil:
		r = dayReport{*m.Report}.render()
	default:
		r = newView(m, n.zone).render()
		r.add(n.buttons(m)...)
	}
	var top rendered
	top.add(r.Blocks[0], n.called(m), refused(m), repeat(m))
	r.Blocks = append(top.Blocks, r.Blocks[1:]...)
	r.add(n.link())
	return r
}

func newView(m escalation.Message, zone *time.Location) view {
	v := view{Message: m, zone: zone}
	about := m.About.Fingerprint()
	for _, f := range m.Story.Findings {
		switch {
		case f.Fingerprint() == about:
		case f.OpenedAt.Equal(m.About.OpenedAt) && escalation.Graver(m.About, f):
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
	return v
}

func (v view) render() rendered {
	if v.About.Open() {
		return v.open()
	}
	return v.ended()
}

// open shows what needs a person.
func (v view) open() rendered {
	title := v.title()
	r := rendered{Text: plain(fmt.Sprintf("%s: %s", first(title), kindText(v.About.Kind)), 700)}
	if safe := v.safeRetry(); safe != "" {
		r.Text += ". " + plain(first(safe), 300)
	}
	r.add(header(v.mark() + " " + first(title)))
	r.add(mrkdwn("*" + escape.Replace(first(kindText(v.About.Kind))) + "*\n" + v.age()))
	r.add(v.taken())
	r.add(text(lines(v.why(), maxSection)))
	r.add(mrkdwn("*What to do*\n" + escape.Replace(v.About.Kind.Advice())))
	if v.hasOperation() {
		r.add(v.fields())
		r.add(text(v.looks("Asked and answered, newest first")))
	} else {
		r.add(v.effects())
	}
	r.add(text(lines(v.others(), maxSection)))
	r.add(v.upcoming())
	r.add(v.ids())
	return r
}

// upcoming says who hears of it next if nobody acts. Names stand in a code span: this
// calls nobody yet.
func (v view) upcoming() slackgo.Block {
	if v.Next == nil {
		return nil
	}
	s := fmt.Sprintf("*If nobody acts*\nIt is told again at %s, in %s", clock(v.Next.At, v.Now, v.zone), code(v.Next.To, 80))
	if v.Next.Mention != "" {
		s += ", calling " + code(v.Next.Mention, 80)
	}
	return mrkdwn(s + ".")
}

// mark shows at a glance whether somebody takes care of it.
func (v view) mark() string {
	switch v.About.State {
	case recon.FindingAcknowledged:
		return "🟡"
	case recon.FindingSnoozed:
		return "💤"
	}
	return "🔴"
}

// taken says who takes care of it, and until when nobody is told.
func (v view) taken() slackgo.Block {
	var list []string
	if v.Assignee != "" {
		list = append(list, "Assigned to "+recon.Shorten(v.Assignee, 100)+".")
	}
	if v.Proposal != nil {
		list = append(list, "Waits for "+recon.Shorten(v.Proposal.Text(), 300)+".")
	}
	if v.PausedUntil.After(v.Now) {
		word := "Acknowledged"
		if v.About.State == recon.FindingSnoozed {
			word = "Snoozed"
		}
		list = append(list, fmt.Sprintf("%s: nobody is told again before %s.", word, clock(v.PausedUntil, v.Now, v.zone)))
	}
	return text(lines(list, 400))
}

// ended shows that nobody is needed any more, and why.
func (v view) ended() rendered {
	title := v.title()
	at, how := v.Story.Ending(v.About)
	if how == "" {
		how = "it no longer holds"
	}
	r := rendered{Text: plain(fmt.Sprintf("Ended: %s: %s", title, how), 900)}
	mark := "⚪"
	if v.Story.Operation.State == recon.Succeeded || v.About.State == recon.FindingSettled {
		mark = "✅"
	}
	if len(v.elsewhere) > 0 || slices.ContainsFunc(v.with, recon.Finding.Open) {
		r.add(header("⚪ Told anew in another message: " + title))
	} else {
		r.add(header(mark + " Ended: " + title))
	}
	when := "*Ended*"
	if !at.IsZero() {
		when = fmt.Sprintf("*Ended %s, after %s*", clock(at, v.Now, v.zone), span(at, v.About.OpenedAt))
	}
	r.add(mrkdwn(when + "\nIt was told because " + escape.Replace(kindText(v.About.Kind)) + "."))
	said := []string{first(how)}
	if v.hasOperation() {
		said = append(said, "The operation is now "+v.Story.Operation.State.Text()+".")
	}
	r.add(text(lines(said, maxSection)))
	if v.hasOperation() {
		r.add(text(v.looks("Last asked and answered")))
	}
	r.add(text(lines(v.others(), maxSection)))
	r.add(v.ids())
	return r
}

// called calls whom a step names.
func (n *Notifier) called(m escalation.Message) slackgo.Block {
	calls := n.calls(m.Mention)
	if calls == "" || m.Act == recon.ActEdit {
		return nil
	}
	return mrkdwn(calls)
}

// refused says for whom this message stands in.
func refused(m escalation.Message) slackgo.Block {
	if m.Refused == "" {
		return nil
	}
	return mrkdwn("Told here because the destination " + code(m.Refused, 80) + " does not take it. It is tried there until it does.")
}

func repeat(m escalation.Message) slackgo.Block {
	if !m.Repeat {
		return nil
	}
	return mrkdwn("_Possibly a repeat: Slack's answer to an earlier post of this message was lost._")
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

func (r *rendered) add(blocks ...slackgo.Block) {
	for _, b := range blocks {
		if b != nil {
			r.Blocks = append(r.Blocks, b)
		}
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
