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
	at, how := v.Story.Ending(v.About)
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
	if !at.IsZero() {
		when = fmt.Sprintf("*Ended %s, after %s*", clock(at, v.Now, v.zone), span(at, v.About.OpenedAt))
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
