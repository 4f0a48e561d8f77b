package slack

import (
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// incident is a message about many findings at once.
type incident struct {
	escalation.Message
	recon.Incident
	zone *time.Location
}

func (i incident) render() rendered {
	if !i.EndedAt.IsZero() {
		return i.over()
	}
	r := rendered{Text: plain(i.title(), 700)}
	if m := i.money(); m != "" {
		r.Text += ", " + plain(m, 300)
	}
	r.add(header(i.mark() + " " + i.title()))
	r.add(mrkdwn("*" + escape.Replace(i.what()) + "*\n" + i.since()))
	r.add(text(lines(i.facts(), maxSection)))
	r.add(mrkdwn("*What to do*\n" + escape.Replace(i.advice())))
	r.add(text(lines(i.top(), maxSection)))
	r.add(mrkdwn("More: " + code(i.command(), 400) + "\nWritten " + recon.TimeText(i.Now, i.zone)))
	return r
}

// down reports whether the incident is a source that cannot be asked.
func (i incident) down() bool { return i.Incident.Kind == recon.FindBlind }

// title says in one line how much of what.
func (i incident) title() string {
	source := string(i.Source)
	switch {
	case i.down() && i.back():
		return fmt.Sprintf("%s answers again: %s", source, waits(i.Open))
	case i.down():
		return fmt.Sprintf("%s cannot be asked: %s", source, waits(i.Open))
	}
	return fmt.Sprintf("%d × %s at %s", i.Open, kindName(i.Incident.Kind), source)
}

func waits(n int) string {
	switch n {
	case 0:
		return "no operation waits for a person"
	case 1:
		return "1 operation waits"
	}
	return fmt.Sprintf("%s operations wait", thousands(n))
}

// back reports whether the source of an outage answers again.
func (i incident) back() bool { return i.down() && i.DownSince.IsZero() }

func (i incident) mark() string {
	if i.back() {
		return "🟡"
	}
	return "🔴"
}

// what says what is wrong.
func (i incident) what() string {
	if i.back() {
		return "The provider could not be asked, and can be again"
	}
	return first(kindText(i.Incident.Kind))
}

// since says for how long.
func (i incident) since() string {
	at, s := i.OpenedAt, "Told for *%s*, since %s"
	switch {
	case i.back() && !i.UpSince.IsZero():
		at, s = i.UpSince, "It answers for *%s*, since %s"
	case i.down() && !i.DownSince.IsZero():
		at, s = i.DownSince, "No answer for *%s*, since %s"
	}
	return fmt.Sprintf(s, span(i.Now, at), clock(at, i.Now, i.zone)) + " · " + code(string(i.Source), 200)
}

// facts are counts, the oldest, the money, and how long a repeat stays safe.
func (i incident) facts() []string {
	list := []string{fmt.Sprintf("%s open of %s told here.", thousands(i.Open), thousands(i.Total))}
	if i.Succeeded > 0 {
		list[0] += fmt.Sprintf(" %s turned out to have succeeded.", thousands(i.Succeeded))
	}
	if i.Fault != "" && !i.back() {
		list = append(list, recon.Shorten(first(i.Fault), 400)+".")
	}
	if m := i.money(); m != "" {
		list = append(list, first(m)+".")
	}
	if !i.Oldest.IsZero() {
		list = append(list, fmt.Sprintf("The oldest is in question since %s (%s).", clock(i.Oldest, i.Now, i.zone), span(i.Now, i.Oldest)))
	}
	switch {
	case i.KeyExpires.IsZero():
	case i.Now.Before(i.KeyExpires):
		list = append(list, fmt.Sprintf("The first safe retry ends in %s, at %s, same key only.",
			span(i.KeyExpires, i.Now), clock(i.KeyExpires, i.Now, i.zone)))
	default:
		list = append(list, "The first safe retry is over: sending it again could do it twice.")
	}
	return list
}

// money is what is at risk, by currency.
func (i incident) money() string {
	if sums := moneyOf(i.Money, i.Exponents); sums != "" {
		return sums + " at risk"
	}
	return ""
}

// advice says what to do first, and what happens by itself.
func (i incident) advice() string {
	switch {
	case i.back():
		return "Nothing yet. What waited is asked again by itself; what is still open a few minutes from now is told one by one."
	case i.down():
		return i.Incident.Kind.Advice() + " What waits is asked again by itself when it does; what is still open then is told one by one."
	}
	return i.Incident.Kind.Advice() + " So many at once have one cause more often than not: look for it first."
}

// top names the oldest.
func (i incident) top() []string {
	if len(i.Top) == 0 {
		return nil
	}
	list := []string{"The oldest of them"}
	for _, m := range i.Top {
		line := "• "
		if !m.Money.IsZero() {
			line += m.Money.Text(i.Exponents) + " "
		}
		if m.Target != "" {
			line += "for " + recon.Shorten(m.Target, 80) + " "
		}
		line += "since " + clock(m.Since, i.Now, i.zone)
		id := string(m.Operation)
		if id == "" {
			id = m.Finding
		}
		list = append(list, line+", "+recon.Shorten(id, 60))
	}
	if n := i.Open - len(i.Top); n > 0 {
		list = append(list, fmt.Sprintf("and %s more", thousands(n)))
	}
	return list
}

// command lists all of them.
func (i incident) command() string {
	kind := i.Incident.Kind
	if i.down() {
		kind = recon.FindUnresolved
	}
	return "reconciler findings list --source " + bareID(string(i.Source)) + " --kind " + bareID(string(kind))
}

// over shows that nobody is needed for it as a whole any more.
func (i incident) over() rendered {
	what := fmt.Sprintf("%s × %s at %s", thousands(i.Total), kindName(i.Incident.Kind), i.Source)
	if i.down() {
		what = string(i.Source) + " answers again"
	}
	r := rendered{Text: plain("Ended: "+what, 700)}
	r.add(header("✅ Ended: " + what))
	r.add(mrkdwn(fmt.Sprintf("*Ended %s, after %s*", clock(i.EndedAt, i.Now, i.zone), span(i.EndedAt, i.OpenedAt))))
	list := []string{fmt.Sprintf("%s were told here. %s turned out to have succeeded.", thousands(i.Total), thousands(i.Succeeded))}
	if i.Open > 0 {
		list = append(list, fmt.Sprintf("%s were still open and are told in messages of their own.", thousands(i.Open)))
	}
	r.add(text(lines(list, maxSection)))
	r.add(mrkdwn("Written " + recon.TimeText(i.Now, i.zone)))
	return r
}
