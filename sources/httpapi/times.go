package httpapi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// dates is how a provider writes times.
type dates struct {
	layout string // of Go; empty for unix times
	unit   time.Duration
	zone   *time.Location
	coarse bool // written without its seconds
}

var (
	minTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	maxTime = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

	errTime = errors.New("a time is not written as configured")
	layout  = strings.NewReplacer("YYYY", "2006", "MM", "01", "DD", "02", "hh", "15", "mm", "04", "ss", "05", "zz", "-07:00")
)

// overlap is how much more than the window is asked for: providers round to seconds, and it
// is not known whether a bound is meant with or without its own second.
const overlap = 2 * time.Second

func parseDates(format, zone string) (dates, error) {
	loc, err := time.LoadLocation(orElse(zone, "UTC"))
	if err != nil || zone == "Local" {
		return dates{}, fmt.Errorf("%q is not a time zone; write it like Europe/Berlin", zone)
	}
	switch format {
	case "", "rfc3339":
		return dates{layout: time.RFC3339, zone: time.UTC}, nil
	case "unix":
		return dates{unit: time.Second, zone: time.UTC}, nil
	case "unix_ms":
		return dates{unit: time.Millisecond, zone: time.UTC}, nil
	}
	d := dates{layout: layout.Replace(format), zone: loc}
	if !strings.Contains(d.layout, "2006") || !strings.Contains(d.layout, "01") || !strings.Contains(d.layout, "02") {
		return dates{}, fmt.Errorf("%q is no format of dates; write rfc3339, unix, unix_ms or one like \"YYYY-MM-DD hh:mm:ss\"", format)
	}
	d.coarse = !strings.Contains(d.layout, "05")
	return d, nil
}

// read reads a time.
func (d dates) read(s string) (time.Time, error) {
	var at time.Time
	if d.unit > 0 {
		whole, _, _ := strings.Cut(s, ".")
		n, err := strconv.ParseInt(whole, 10, 64)
		if err != nil || n < 0 || n > maxTime.UnixMilli() {
			return time.Time{}, errTime
		}
		if d.unit == time.Second {
			at = time.Unix(n, 0)
		} else {
			at = time.UnixMilli(n)
		}
	} else {
		var err error
		if at, err = time.ParseInLocation(d.layout, s, d.zone); err != nil {
			return time.Time{}, errTime
		}
	}
	if at.Before(minTime) || !at.Before(maxTime) {
		return time.Time{}, errTime
	}
	return at.UTC().Truncate(time.Microsecond), nil
}

// wide is how much earlier and later than at a bound is asked for. Where clocks change, a
// local time may be there twice.
func (d dates) wide(at time.Time) time.Duration {
	wide := overlap
	_, before := at.Add(-3 * time.Hour).In(d.zone).Zone()
	_, after := at.Add(3 * time.Hour).In(d.zone).Zone()
	if before != after {
		wide += max(time.Duration(before-after), time.Duration(after-before)) * time.Second
	}
	if d.coarse {
		wide += 24 * time.Hour // whole days, hours or minutes
	}
	return wide
}

// write writes a bound.
func (d dates) write(at time.Time) string {
	switch d.unit {
	case time.Second:
		return strconv.FormatInt(at.Unix(), 10)
	case time.Millisecond:
		return strconv.FormatInt(at.UnixMilli(), 10)
	}
	return at.In(d.zone).Format(d.layout)
}
