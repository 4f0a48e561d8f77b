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
}

// Spec is a cron line that was checked, or off.
type Spec struct {
	Text string // as written; "off" stops the run
	when cron.Schedule
}

// Off reports whether the run is not scheduled.
func (s Spec) Off() bool { return s.when == nil }

// Next gives the first due time after t; zero when the run is off.
func (s Spec) Next(t time.Time) time.Time {
	if s.when == nil {
		return time.Time{}
	}
	return s.when.Next(t)
}

// Tick names a due time: the local wall time of the schedule's zone, so that an hour
// that a clock change repeats is one tick, and two replicas mean the same one.
func (s Spec) Tick(due time.Time) string {
	zone := time.UTC
	if spec, ok := s.when.(*cron.SpecSchedule); ok && spec.Location != nil {
		zone = spec.Location
	}
	return due.In(zone).Format("2006-01-02T15:04") + " " + zone.String()
}

type scheduleText struct {
	Sweep    string `yaml:"sweep"`
	Audit    string `yaml:"audit"`
	Reverify string `yaml:"reverify"`
}

// parseSpec reads five fields or a name such as @daily, in UTC unless CRON_TZ= says
// otherwise. A line that is never due is refused: the scheduler would take it and
// stay silent for ever. @every is refused because its ticks depend on when the
// process started, so that two replicas would never mean the same tick.
func parseSpec(text string, now time.Time) (Spec, error) {
	if text == "off" {
		return Spec{Text: text}, nil
	}
	if strings.HasPrefix(strings.TrimSpace(text), "@every") {
		return Spec{}, fmt.Errorf("%q depends on when the process started; write five fields such as \"* * * * *\"", text)
	}
	zoned := text
	if !strings.HasPrefix(text, "CRON_TZ=") && !strings.HasPrefix(text, "TZ=") {
		zoned = "CRON_TZ=UTC " + text
	} else if !strings.ContainsRune(text, ' ') {
		return Spec{}, fmt.Errorf("%q names a zone and no time; write CRON_TZ=Europe/Berlin 15 2 * * *", text)
	}
	when, err := cron.ParseStandard(zoned)
	if err != nil {
		return Spec{}, fmt.Errorf("%q is no schedule (%v); write five fields such as \"15 2 * * *\", or off", text, err)
	}
	if when.Next(now).IsZero() {
		return Spec{}, fmt.Errorf("%q is never due; correct the day or the month", text)
	}
	return Spec{Text: text, when: when}, nil
}
