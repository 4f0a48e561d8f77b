package slack

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Slack refuses a whole message that is over one of its limits: 150 characters in a
// header, 3,000 in a section's text, 2,000 in a field, 50 blocks, and about 13,200
// characters in all, which is documented nowhere. We stay below each.
const (
	maxHeader  = 150
	maxSection = 2800
	maxBlocks  = 50
	maxCommand = 1500
	maxTotal   = 12000
)

// escape replaces the three characters that steer Slack, in mrkdwn and in plain text.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// plain makes text for a plain_text object: safe to show, escaped, and at most max
// characters long as Slack counts them, never cut within an entity.
func plain(s string, max int) string {
	return cut(recon.Printable(s), max)
}

// lines is plain for text of our own lines, each already bounded.
func lines(list []string, max int) string {
	var b strings.Builder
	for i, l := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		room := max - utf8.RuneCountInString(b.String())
		if room < 20 {
			fmt.Fprintf(&b, "and %d more", len(list)-i)
			break
		}
		b.WriteString(plain(l, room-16)) // 16: room for "and N more"
	}
	return b.String()
}

// code makes text for mrkdwn: a code span, in which no formatting, mention or link is
// read. A back-tick would end the span, so it is shown as an apostrophe.
func code(s string, max int) string {
	if s == "" {
		return "–"
	}
	return "`" + cut(strings.ReplaceAll(recon.Printable(s), "`", "'"), max-2) + "`"
}

// cut escapes s and keeps at most max characters of the result.
func cut(s string, max int) string {
	if whole := escape.Replace(s); utf8.RuneCountInString(whole) <= max {
		return whole
	}
	var b strings.Builder
	n := 0
	for _, r := range s {
		e := escape.Replace(string(r))
		if n += utf8.RuneCountInString(e); n >= max {
			break
		}
		b.WriteString(e)
	}
	return b.String() + "…"
}

// command is what a person pastes into a shell to see more. The id may come from
// somebody else's ledger, so it is quoted where a shell would read anything into it;
// one that cannot be shown as it is is not pasted at all.
func command(id recon.OperationID) string {
	return pasted("reconciler operations", string(id))
}

// findingCommand is command for what is about no operation.
func findingCommand(id string) string { return pasted("reconciler findings", id) }

// acceptCommand settles a finding that no button settles. It asks for the reason, which
// nobody is to paste.
func acceptCommand(id string) string {
	show := findingCommand(id)
	if quoted, whole := strings.CutPrefix(show, "reconciler findings show "); whole && !strings.HasPrefix(quoted, "-") {
		return "reconciler findings resolve " + quoted + " --as accept"
	}
	return show
}

func pasted(verb, s string) string {
	if s == "" || recon.Printable(s) != s || strings.ContainsAny(s, "`'") || utf8.RuneCountInString(escape.Replace(s)) > maxCommand {
		return verb + " list"
	}
	quoted := s
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@/+=-") != "" {
		quoted = "'" + s + "'"
	}
	if strings.HasPrefix(s, "-") {
		quoted = "-- " + quoted
	}
	return verb + " show " + quoted
}

// clock writes an instant as short as it can be: without the date when it is today.
func clock(t, now time.Time, zone *time.Location) string {
	t, now = t.In(zone), now.In(zone)
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format("15:04:05 MST")
	}
	return t.Format("2006-01-02 15:04 MST")
}

// span writes how far t is from now.
func span(t, now time.Time) string { return recon.Duration(t.Sub(now)).Text() }

// thousands writes a count with its thousands set apart: 10,000.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// bareID keeps of a name that stands in a command what a shell reads as it is.
func bareID(s string) string {
	keep := func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}
	return recon.Shorten(strings.Map(keep, s), 80)
}
