package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Escalation says who is told of findings, and when.
type Escalation struct {
	// Fallback is the destination that gets what another one refuses; empty: none.
	Fallback string
	Policy   escalation.Policy // without its digest, which has a schedule
	Digest   Digest
	section  escalationSection // as it is written, with defaults
}

// Digest is when the state of all findings is told, and to which destinations.
type Digest struct {
	Schedule Spec
	To       []string
}

type escalationSection struct {
	Destinations []member          `yaml:"destinations" json:"-"`
	Fallback     string            `yaml:"fallback" json:"fallback"`
	Ladders      map[string][]step `yaml:"ladders" json:"ladders"`
	Quiet        []quiet           `yaml:"quiet" json:"quiet"`
	Fold         fold              `yaml:"fold" json:"fold"`
	Digest       digest            `yaml:"digest" json:"digest"`
	ApproveAbove map[string]int64  `yaml:"approve_above" json:"-"`
}

// step is one rung of an escalation ladder.
type step struct {
	After           recon.Duration   `yaml:"after" json:"after,omitempty"`
	BeforeKeyExpiry recon.Duration   `yaml:"before_key_expiry" json:"before_key_expiry,omitempty"`
	To              string           `yaml:"to" json:"to"`
	Mention         string           `yaml:"mention" json:"mention,omitempty"`
	Above           map[string]int64 `yaml:"above" json:"above,omitempty"`
}

// quiet is a span of the day in which only last steps are told.
type quiet struct {
	From string   `yaml:"from" json:"from"`
	To   string   `yaml:"to" json:"to"`
	Days []string `yaml:"days" json:"days,omitempty"`
}

// fold is how many findings at once are one message.
type fold struct {
	At     int            `yaml:"at" json:"at"`
	Within recon.Duration `yaml:"within" json:"within"`
}

type digest struct {
	Schedule string   `yaml:"schedule" json:"schedule"`
	To       []string `yaml:"to" json:"to"`
}

// buildEscalation checks the section. The actions and sources are read before.
func (d *decoder) buildEscalation(doc file, c *Config) {
	s := doc.Escalation
	c.Escalation.section = s
	seen := map[string]bool{}
	for i, m := range s.Destinations {
		path := fmt.Sprintf("escalation.destinations[%d]", i)
		named := d.checkMember(m, path, "destination", seen)
		if to := d.destination(m, path, slackIDs(doc.People)); named {
			c.Destinations = append(c.Destinations, to)
		}
	}
	p := &c.Escalation.Policy
	for _, dest := range c.Destinations {
		p.Everybody = append(p.Everybody, dest.Name)
	}
	d.buildLadders(doc, c, seen)
	d.buildQuiet(s.Quiet, p, c.Zone)
	if s.Fold.At < 2 {
		d.fault(nil, "escalation.fold.at", "must be at least 2: one finding is told by itself")
	}
	if s.Fold.Within <= 0 {
		d.fault(nil, "escalation.fold.within", "must be longer than 0")
	}
	p.FoldAt, p.FoldWithin = s.Fold.At, s.Fold.Within.Std()
	if s.Fallback != "" && d.isDestination("escalation.fallback", s.Fallback, seen) {
		c.Escalation.Fallback = s.Fallback
	}
	d.buildDigest(s.Digest, c, seen)
}

// slackIDs are the Slack users of people who have one, by name.
func slackIDs(people []Person) map[string]string {
	ids := map[string]string{}
	for _, p := range people {
		if p.Slack != "" {
			ids[p.Name] = p.Slack
		}
	}
	return ids
}

func (d *decoder) isDestination(path, name string, destinations map[string]bool) bool {
	if !destinations[name] {
		d.fault(nil, path, "no destination is named %q; there are %s", name, listed(slices.Sorted(maps.Keys(destinations))))
	}
	return destinations[name]
}

// listed writes names for people.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func (d *decoder) buildLadders(doc file, c *Config, destinations map[string]bool) {
	p := &c.Escalation.Policy
	if len(doc.Escalation.Ladders) > 0 {
		p.Ladders = map[string][]escalation.Step{}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Escalation.Ladders)) {
		path := "escalation.ladders." + name
		d.checkLadderName(path, name, doc)
		steps := []escalation.Step{}
		for i, s := range doc.Escalation.Ladders[name] {
			at := fmt.Sprintf("%s[%d]", path, i)
			one := d.buildStep(at, s, destinations)
			if slices.ContainsFunc(steps, func(o escalation.Step) bool { return o.Name() == one.Name() && o.To == one.To }) {
				d.fault(nil, at, "is there twice: a step happens once in a destination; put both mentions into a user group")
			}
			steps = append(steps, one)
			d.checkMention(at, one, doc, c)
		}
		p.Ladders[name] = steps
	}
}

// checkMention notes a mention that is shown and calls nobody: half of an escalation.
func (d *decoder) checkMention(path string, s escalation.Step, doc file, c *Config) {
	i := slices.IndexFunc(c.Destinations, func(dest Destination) bool { return dest.Name == s.To })
	if s.Mention == "" || i < 0 {
		return
	}
	calls, ok := c.Destinations[i].settings.(interface {
		Calls(name string, people map[string]string) bool
	})
	if ok && !calls.Calls(s.Mention, slackIDs(doc.People)) {
		d.note(path+".mention", fmt.Sprintf("%q is shown and calls nobody: name it in the mentions of %s, or among the people with a slack user", s.Mention, s.To))
	}
}

// checkLadderName refuses a ladder that no finding would ever climb.
func (d *decoder) checkLadderName(path, name string, doc file) {
	action, kind, both := strings.Cut(name, "/")
	known := func(k string) bool { return slices.Contains(recon.FindingKinds, recon.FindingKind(k)) }
	_, isAction := doc.Actions[action]
	switch {
	case both && isAction && known(kind), !both && (name == "default" || known(name) || isAction):
		return
	}
	d.fault(nil, path, "is neither default, nor an action of this file, nor a kind of finding (%s), nor ACTION/KIND; no finding would be told by it",
		kinds())
}

func kinds() string {
	list := make([]string, 0, len(recon.FindingKinds))
	for _, k := range recon.FindingKinds {
		list = append(list, string(k))
	}
	return strings.Join(list, ", ")
}

func (d *decoder) buildStep(path string, s step, destinations map[string]bool) escalation.Step {
	_, after := d.at[path+".after"]
	_, before := d.at[path+".before_key_expiry"]
	if after == before {
		d.fault(nil, path, "needs either after or before_key_expiry")
	}
	if before && s.BeforeKeyExpiry <= 0 {
		d.fault(nil, path+".before_key_expiry", "must be longer than 0")
	}
	if s.After < 0 {
		d.fault(nil, path+".after", "must not be negative")
	}
	if s.To == "" {
		d.fault(nil, path+".to", "is required: the destination that is told")
	} else {
		d.isDestination(path+".to", s.To, destinations)
	}
	return escalation.Step{
		After: s.After.Std(), BeforeKeyExpiry: s.BeforeKeyExpiry.Std(), To: s.To, Mention: s.Mention,
		Above: d.amounts(path+".above", s.Above),
	}
}

// amounts checks limits in minor units by currency.
func (d *decoder) amounts(path string, limits map[string]int64) map[string]int64 {
	var checked map[string]int64
	for _, currency := range slices.Sorted(maps.Keys(limits)) {
		code, err := recon.ParseCurrency(currency)
		switch {
		case err != nil:
			d.fault(nil, path+"."+currency, "is no ISO 4217 currency")
		case limits[currency] < 0:
			d.fault(nil, path+"."+currency, "must not be negative")
		default:
			if checked == nil {
				checked = map[string]int64{}
			}
			checked[code] = limits[currency]
		}
	}
	return checked
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func (d *decoder) buildQuiet(list []quiet, p *escalation.Policy, zone *time.Location) {
	for i, q := range list {
		path := fmt.Sprintf("escalation.quiet[%d]", i)
		one := escalation.Quiet{From: d.wallTime(path+".from", q.From), To: d.wallTime(path+".to", q.To), Zone: zone}
		if q.From != "" && q.From == q.To {
			d.fault(nil, path, "ends when it begins; from 00:00 to 24:00 is a whole day")
		}
		for n, day := range q.Days {
			w := slices.Index(weekdays, day)
			if w < 0 {
				d.fault(nil, fmt.Sprintf("%s.days[%d]", path, n), "%q is none of %s", day, strings.Join(weekdays, ", "))
				continue
			}
			one.Days = append(one.Days, time.Weekday(w))
		}
		p.Quiet = append(p.Quiet, one)
	}
}

// wallTime reads "22:00" as the time since midnight; 24:00 is the end of the day.
func (d *decoder) wallTime(path, s string) time.Duration {
	t, err := time.Parse("15:04", s)
	switch {
	case s == "24:00":
		return 24 * time.Hour
	case err != nil:
		d.fault(nil, path, "%q is no time of day; write one like \"22:00\"", s)
		return 0
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
}

func (d *decoder) buildDigest(s digest, c *Config, destinations map[string]bool) {
	for i, to := range s.To {
		d.isDestination(fmt.Sprintf("escalation.digest.to[%d]", i), to, destinations)
	}
	if len(s.To) == 0 {
		return
	}
	spec, err := parseSpec(s.Schedule, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		d.fault(nil, "escalation.digest.schedule", "%v", err)
		return
	}
	c.Escalation.Digest = Digest{Schedule: spec, To: s.To}
}
