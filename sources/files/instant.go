package files

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// dates says how a file writes instants. The order of day and month is declared, never
// guessed.
type dates struct {
	pattern string // as people write it: DD.MM.YYYY hh:mm
	layout  string // as package time does; empty: RFC 3339
	swapped string // the layout with day and month changed over; empty where that is none
	zone    *time.Location
	zones   map[string]string // what abbreviations mean here
	cache   map[string]*time.Location
}

const (
	rfc3339   = "rfc3339"
	isoDates  = "YYYY-MM-DD hh:mm:ss"
	firstYear = 2000
	lastYear  = 2100
)

// patternWords turns the words of a pattern into those of package time, longest first.
var patternWords = []struct{ word, layout string }{
	{"YYYY", "2006"}, {"YY", "06"}, {"MMM", "Jan"}, {"MM", "01"}, {"DD", "02"}, {"M", "1"}, {"D", "2"},
	{"hh", "15"}, {"h", "15"}, {"mm", "04"}, {"ss", "05"}, {"AM", "PM"}, {"Z", "Z07:00"},
}

// newDates reads a pattern such as DD.MM.YYYY hh:mm:ss.
func newDates(pattern string) (dates, error) {
	d := dates{pattern: pattern}
	if pattern == rfc3339 {
		return d, nil
	}
	var err error
	if d.layout, err = layoutOf(pattern, false); err != nil {
		return d, err
	}
	if !strings.Contains(pattern, "MMM") {
		d.swapped, err = layoutOf(pattern, true)
	}
	return d, err
}

// swaps are the words of package time for day and month, and those of the other one.
var swaps = map[string]string{"01": "02", "02": "01", "1": "2", "2": "1"}

// layoutOf gives the layout of package time; swapped, with day and month changed over.
func layoutOf(pattern string, swapped bool) (string, error) {
	var out strings.Builder
	seen := map[string]bool{}
	half := strings.Contains(pattern, "AM")
next:
	for rest := pattern; rest != ""; {
		for _, w := range patternWords {
			if !strings.HasPrefix(rest, w.word) {
				continue
			}
			seen[w.word[:1]] = true
			layout := w.layout
			if layout == "15" && half {
				layout = map[string]string{"hh": "03", "h": "3"}[w.word]
			}
			if other, is := swaps[layout]; is && swapped {
				layout = other
			}
			out.WriteString(layout)
			rest = rest[len(w.word):]
			continue next
		}
		if c := rest[0]; !strings.ContainsRune("-./:, T", rune(c)) {
			return "", fmt.Errorf("%q has no meaning in a date; write it with YYYY, MM, DD, hh, mm, ss, AM and Z, such as DD.MM.YYYY hh:mm", string(c))
		}
		out.WriteByte(rest[0])
		rest = rest[1:]
	}
	if !seen["Y"] || !seen["M"] || !seen["D"] {
		return "", fmt.Errorf("a date needs YYYY, MM and DD, such as DD.MM.YYYY hh:mm")
	}
	return out.String(), nil
}

// instant reads a cell; zone is what the row says of its zone, empty where the file
// does not say.
func (d *dates) instant(cell, zone string) (time.Time, error) {
	if cell == "" {
		return time.Time{}, refuse("it is empty")
	}
	loc, err := d.zoneOf(zone)
	if err != nil {
		return time.Time{}, err
	}
	t, ok := d.fast(cell)
	if !ok {
		if t, err = d.parse(cell); err != nil {
			return time.Time{}, err
		}
	}
	if d.layout == "" || strings.Contains(d.layout, "Z07") {
		t = t.UTC()
	} else if t, err = local(t, loc); err != nil {
		return time.Time{}, refuse("%q %v in %s", shown(cell), err, loc)
	}
	if t.Year() < firstYear || t.Year() >= lastYear {
		return time.Time{}, refuse("%q is outside the years %d to %d", shown(cell), firstYear, lastYear)
	}
	return t, nil
}

// parse reads the wall time as if it were UTC.
func (d *dates) parse(cell string) (time.Time, error) {
	layout := d.layout
	if layout == "" {
		layout = time.RFC3339Nano
	}
	t, err := time.Parse(layout, cell)
	if err == nil {
		return t, nil
	}
	if d.swapped != "" {
		if _, other := time.Parse(d.swapped, cell); other == nil {
			return t, &Fault{Problem: fmt.Sprintf("the date %s is not %s, and is one with day and month changed over; correct `dates` in the source's settings", shown(cell), d.pattern)}
		}
	}
	return t, refuse("%q is not a time written as %s", shown(cell), d.pattern)
}

// fast reads the two patterns of most files without detours: YYYY-MM-DD hh:mm:ss, and
// RFC 3339 in whole seconds of UTC.
func (d *dates) fast(cell string) (time.Time, bool) {
	switch {
	case d.pattern == isoDates:
		return recon.ParseWallTime(cell, ' ')
	case d.pattern == rfc3339 && len(cell) == 20 && cell[19] == 'Z':
		return recon.ParseWallTime(cell[:19], 'T')
	}
	return time.Time{}, false
}

// local gives the instant at which the clocks of a zone showed a wall time. A time that
// they skipped, or showed twice, is none.
func local(wall time.Time, loc *time.Location) (time.Time, error) {
	if loc == time.UTC {
		return wall, nil
	}
	var found time.Time
	for _, around := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := wall.Add(around).In(loc).Zone()
		t := wall.Add(-time.Duration(offset) * time.Second)
		if _, is := t.In(loc).Zone(); is != offset || t.Equal(found) {
			continue
		}
		if !found.IsZero() {
			return time.Time{}, fmt.Errorf("was shown twice, when the clocks went back,")
		}
		found = t
	}
	if found.IsZero() {
		return time.Time{}, fmt.Errorf("was never shown, the clocks went forward,")
	}
	return found, nil
}

// abbreviations are those that mean one offset. Others, such as IST, BST and CST, mean
// several, and the settings say which (`zones`).
var abbreviations = map[string]int{
	"UTC": 0, "GMT": 0, "Z": 0, "WET": 0, "WEST": 60, "CET": 60, "CEST": 120, "EET": 120, "EEST": 180,
	"EST": -300, "EDT": -240, "MST": -420, "MDT": -360, "PST": -480, "PDT": -420, "AKST": -540, "AKDT": -480, "HST": -600,
	"JST": 540, "KST": 540, "AEST": 600, "AEDT": 660, "ACST": 570, "ACDT": 630, "AWST": 480, "NZST": 720, "NZDT": 780,
}

// zoneOf gives the zone of a row: what it names, else the file's.
func (d *dates) zoneOf(name string) (*time.Location, error) {
	if name == "" {
		return d.zone, nil
	}
	if loc := d.cache[name]; loc != nil {
		return loc, nil
	}
	loc, err := d.findZone(name)
	if err != nil {
		return nil, err
	}
	if d.cache == nil {
		d.cache = map[string]*time.Location{}
	}
	if len(d.cache) < 1000 {
		d.cache[name] = loc
	}
	return loc, nil
}

func (d *dates) findZone(name string) (*time.Location, error) {
	if meant, ok := d.zones[name]; ok {
		return namedZone(meant)
	}
	if minutes, ok := abbreviations[name]; ok {
		return time.FixedZone(name, minutes*60), nil
	}
	if loc, err := namedZone(name); err == nil {
		return loc, nil
	}
	return nil, refuse("the zone %q has no one meaning; write it under `zones` in the source's settings, such as IST: Asia/Kolkata", shown(name))
}

// namedZone gives a zone of the tz database, or a fixed offset such as +05:30.
func namedZone(name string) (*time.Location, error) {
	if t, err := time.Parse("-07:00", name); err == nil {
		_, offset := t.Zone()
		return time.FixedZone(name, offset), nil
	}
	if !strings.Contains(name, "/") && name != "UTC" {
		return nil, fmt.Errorf("%s is no time zone; write one like Europe/Berlin, UTC or +05:30", strconv.Quote(shown(name)))
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("%s is no time zone; write one like Europe/Berlin, UTC or +05:30", strconv.Quote(shown(name)))
	}
	return loc, nil
}
