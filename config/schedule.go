package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Schedule holds when each kind of run is due.
type Schedule struct {
	Sweep    Spec
	Audit    Spec
	Reverify Spec
	Report   Spec // off where no folder is named
}

// Spec is a cron line that was checked, or off.
type Spec struct {
	Text string // as written; "off" stops the run
	// when is asked about the wall clock alone, as if nobody ever changed it: what becomes
	// of an hour that is skipped or repeated is ours to say.
	when *cron.SpecSchedule
	zone *time.Location
}

// Off reports whether the run is not scheduled.
func (s Spec) Off() bool { return s.when == nil }

// Hourly is due at every full hour of UTC.
func Hourly() Spec {
	s, err := parseSpec("0 * * * *", time.Time{})
	if err != nil {
		panic(err) // the line above is no schedule
	}
	return s
}

// nearChange is more than a clock was ever changed by: places that crossed the date
// line skipped a day.
const nearChange = 26 * time.Hour

// Next gives the first due time after t; zero when the run is off. A time of day that a
// clock change skips is due at the change, together with all others that it skips. One
// that a change repeats is due the first time alone, unless the run is due in every hour:
// such a run goes on through the repeated hour, as time does.
func (s Spec) Next(t time.Time) time.Time {
	if s.Off() {
		return time.Time{}
	}
	from := onWall(t, s.zone)
	if changesNear(t, s.zone) {
		from = from.Add(-nearChange)
	}
	var next time.Time
	for wall := s.when.Next(from); !wall.IsZero(); wall = s.when.Next(wall) {
		first, again := instants(wall, s.zone)
		if s.everyHour() && again.After(t) && (next.IsZero() || again.Before(next)) {
			next = again
		}
		if first.After(t) { // later times on the wall come later, their repetitions too
			if next.IsZero() || first.Before(next) {
				next = first
			}
			break
		}
	}
	return next
}

// Tick names a due time: the local wall time of the schedule's zone, so that an hour
// that a clock change repeats is one tick, and two replicas mean the same one. Where a
// run goes on through the repeated hour, its second ticks say "again".
func (s Spec) Tick(due time.Time) string {
	zone := s.zone
	if zone == nil {
		zone = time.UTC
	}
	name, repeated := onWall(due, zone), ""
	if !s.Off() && changesNear(due, zone) {
		end := name
		for wall := s.when.Next(end.Add(-nearChange)); !wall.IsZero() && !wall.After(end); wall = s.when.Next(wall) {
			first, again := instants(wall, zone)
			switch {
			case first.Equal(due):
				name, repeated = wall, ""
			case again.Equal(due) && s.everyHour():
				name, repeated = wall, " again"
			}
		}
	}
	return name.Format("2006-01-02T15:04") + repeated + " " + zone.String()
}

// everyHour reports whether the run is due in every hour of a day.
func (s Spec) everyHour() bool {
	const all = 1<<24 - 1
	return s.when.Hour&all == all
}

// onWall reads the clock on the wall of a zone. The answer is only a reading: its own
// zone, UTC, says nothing.
func onWall(t time.Time, zone *time.Location) time.Time {
	l := t.In(zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(), time.UTC)
}

// changesNear reports whether the zone's clock is changed within nearChange of t.
func changesNear(t time.Time, zone *time.Location) bool {
	since, until := t.In(zone).ZoneBounds()
	return !since.IsZero() && t.Sub(since) <= nearChange || !until.IsZero() && until.Sub(t) <= nearChange
}

// instants gives when a clock shows a reading: once; or again, after it was put back; and
// for a reading that it never shows, the moment in which it skipped it. again is zero
// where there is none.
func instants(wall time.Time, zone *time.Location) (first, again time.Time) {
	_, before := wall.Add(-nearChange).In(zone).Zone()
	_, after := wall.Add(nearChange).In(zone).Zone()
	early, late := wall.Add(-time.Duration(before)*time.Second), wall.Add(-time.Duration(after)*time.Second)
	isEarly, isLate := onWall(early, zone).Equal(wall), onWall(late, zone).Equal(wall)
	switch {
	case isEarly && isLate && !early.Equal(late):
		return early, late
	case isEarly:
		return early, time.Time{}
	case isLate:
		return late, time.Time{}
	}
	since, _ := early.In(zone).ZoneBounds() // early is past the change by less than was skipped
	return since.UTC(), time.Time{}
}

type scheduleText struct {
	Sweep    string `yaml:"sweep"`
	Audit    string `yaml:"audit"`
	Reverify string `yaml:"reverify"`
	Report   string `yaml:"report"`
}

// parseSpec reads five fields or a name such as @daily, in UTC unless CRON_TZ= says
// otherwise. A line that is never due is refused: the scheduler would take it and
// stay silent for ever. @every is refused because its ticks depend on when the
// process started, and the machine's own zone because it is another one elsewhere: two
// replicas would not mean the same tick.
func parseSpec(text string, now time.Time) (Spec, error) {
	if text == "off" {
		return Spec{Text: text}, nil
	}
	zoned := text
	if !strings.HasPrefix(text, "CRON_TZ=") && !strings.HasPrefix(text, "TZ=") {
		zoned = "CRON_TZ=UTC " + text
	} else if !strings.ContainsRune(text, ' ') {
		return Spec{}, fmt.Errorf("%q names a zone and no time; write CRON_TZ=Europe/Berlin 15 2 * * *", text)
	}
	parsed, err := cron.ParseStandard(zoned)
	if err != nil {
		return Spec{}, fmt.Errorf("%q is no schedule (%v); write five fields such as \"15 2 * * *\", or off", text, err)
	}
	when, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return Spec{}, fmt.Errorf("%q depends on when the process started; write five fields such as \"* * * * *\"", text)
	}
	if when.Location == time.Local {
		return Spec{}, fmt.Errorf("%q means another time on another machine; name a zone, such as CRON_TZ=Europe/Berlin 15 2 * * *", text)
	}
	s := Spec{Text: text, when: when, zone: when.Location}
	s.when.Location = time.UTC
	if s.Next(now).IsZero() {
		return Spec{}, fmt.Errorf("%q is never due; correct the day or the month", text)
	}
	return s, nil
}
