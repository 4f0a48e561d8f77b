package reports

import (
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Width is how many columns a page of text has at most. Characters that a terminal
// shows two columns wide count as one.
const Width = 100

// page collects lines of text and writes them at once, so that a page is whole or
// not there.
type page struct {
	b    strings.Builder
	now  time.Time
	zone *time.Location
}

func newPage(now time.Time, zone *time.Location) *page {
	if zone == nil {
		zone = time.UTC
	}
	return &page{now: now, zone: zone}
}

func (p *page) writeTo(w io.Writer) error {
	_, err := io.WriteString(w, p.b.String())
	return err
}

// line writes one line, made printable and cut to the width.
func (p *page) line(s string) {
	p.b.WriteString(strings.TrimRight(recon.Shorten(recon.Printable(s), Width), " "))
	p.b.WriteByte('\n')
}

func (p *page) blank() { p.b.WriteByte('\n') }

// text writes a first line behind a lead and wraps the rest below it.
func (p *page) text(lead, s string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(lead))
	for i, l := range wrap(recon.Printable(s), Width-utf8.RuneCountInString(lead)) {
		if i > 0 {
			lead = indent
		}
		p.line(lead + l)
	}
}

// row writes a label and a value; nothing when there is no value.
func (p *page) row(label, value string) {
	if value != "" {
		p.text("  "+pad(label, 12)+" ", value)
	}
}

// when writes an instant in full.
func (p *page) when(t time.Time) string { return recon.TimeText(t, p.zone) }

// ago writes an instant and how far away it is.
func (p *page) ago(t time.Time) string {
	switch {
	case t.IsZero():
		return ""
	case t.After(p.now):
		return p.when(t) + ", in " + span(t.Sub(p.now))
	}
	return p.when(t) + ", " + span(p.now.Sub(t)) + " ago"
}

func span(d time.Duration) string { return recon.Duration(d).Text() }

// wrap breaks text at spaces into lines of at most width characters; a word that is
// longer is broken.
func wrap(s string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		for utf8.RuneCountInString(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			head := string([]rune(word)[:width])
			lines, word = append(lines, head), word[len(head):]
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// pad fills s with spaces on the right, and cuts it when it is longer.
func pad(s string, width int) string {
	s = recon.Shorten(s, width)
	return s + strings.Repeat(" ", width-utf8.RuneCountInString(s))
}

// left fills s with spaces on the left.
func left(s string, width int) string {
	s = recon.Shorten(s, width)
	return strings.Repeat(" ", width-utf8.RuneCountInString(s)) + s
}

// count writes a number with a noun: "1 finding", "2,000 findings".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}

// number writes a count with commas between thousands.
func number(n int) string {
	s := recon.Money{Minor: int64(n), Currency: "JPY"}.Text(nil)
	if n == 0 {
		return "0"
	}
	return strings.TrimSuffix(s, " JPY")
}
