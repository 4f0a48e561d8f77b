package slack

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// digest is a message about everything at once, once a day.
type digest struct {
	escalation.Message
	recon.Digest
	zone *time.Location
}

func (d digest) render() rendered {
	open := 0
	for _, k := range d.Kinds {
		open += k.Open
	}
	title := fmt.Sprintf("%s: nothing waits for a person", d.Day)
	if open > 0 {
		title = fmt.Sprintf("%s: %s wait for a person", d.Day, counted(open, "finding"))
	}
	r := rendered{Text: plain(title, 700)}
	r.add(header(title))
	r.add(text(fmt.Sprintf("Since %s: %s opened, %s ended.", clock(d.From, d.At, d.zone), thousands(d.Opened), thousands(d.Ended))))
	r.add(text(lines(d.warnings(), maxSection)))
	r.add(text(lines(d.kinds(), maxSection)))
	r.add(mrkdwn("More: " + code("reconciler findings list", 100)))
	return r
}

// warnings are what keeps this list from being whole.
func (d digest) warnings() []string {
	var list []string
	for _, s := range d.Down {
		list = append(list, "⚠️ "+recon.Shorten(string(s), 100)+" cannot be asked: nothing is concluded there.")
	}
	if d.Undelivered > 0 {
		list = append(list, fmt.Sprintf("⚠️ %s could not be delivered; the log says why.", counted(d.Undelivered, "message")))
	}
	return list
}

// kinds has one line per kind, the gravest first.
func (d digest) kinds() []string {
	var list []string
	for _, k := range d.Kinds {
		line := fmt.Sprintf("• %s %s – %s", thousands(k.Open), kindName(k.Kind), kindText(k.Kind))
		if k.Open > 0 {
			line += fmt.Sprintf("; the oldest since %s (%s)", clock(k.Oldest, d.At, d.zone), span(d.At, k.Oldest))
		}
		if k.Assigned > 0 {
			line += fmt.Sprintf("; %s assigned", thousands(k.Assigned))
		}
		if m := moneyOf(k.Money, d.Exponents); m != "" {
			line += "; " + m
		}
		list = append(list, line+fmt.Sprintf(" (+%s, −%s)", thousands(k.Opened), thousands(k.Ended)))
	}
	return list
}

func moneyOf(sums []recon.Money, exponents map[string]int) string {
	list := make([]string, 0, len(sums))
	for n, m := range sums {
		if n == shownCurrencies {
			list = append(list, fmt.Sprintf("and %d more currencies", len(sums)-n))
			break
		}
		list = append(list, m.Text(exponents))
	}
	return strings.Join(list, ", ")
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}
