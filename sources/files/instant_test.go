package files

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func datesOf(t *testing.T, pattern, zone string) dates {
	t.Helper()
	d, err := newDates(pattern)
	if err != nil {
		t.Fatal(err)
	}
	if zone != "" {
		if d.zone, err = namedZone(zone); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func TestDatesAreReadAsTheirPatternSays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ pattern, zone, cell, want string }{
		{isoDates, "UTC", "2026-03-01 09:30:00", "2026-03-01T09:30:00Z"},
		{"DD.MM.YYYY hh:mm", "Europe/Berlin", "01.03.2026 09:30", "2026-03-01T08:30:00Z"},
		{"MM/DD/YYYY h:mm AM", "America/New_York", "03/01/2026 9:30 PM", "2026-03-02T02:30:00Z"},
		{"D.M.YY", "UTC", "1.3.26", "2026-03-01T00:00:00Z"},
		{"YYYY-MM-DDThh:mm:ssZ", "", "2026-03-01T09:30:00+02:00", "2026-03-01T07:30:00Z"},
		{"rfc3339", "", "2026-03-01T09:30:00.25+02:00", "2026-03-01T07:30:00.25Z"},
		{isoDates, "+05:30", "2026-03-01 09:30:00", "2026-03-01T04:00:00Z"},
		{isoDates, "Europe/Berlin", "2026-10-25 01:59:59", "2026-10-24T23:59:59Z"},
		{isoDates, "Europe/Berlin", "2026-10-25 03:00:00", "2026-10-25T02:00:00Z"},
	} {
		d := datesOf(t, tt.pattern, tt.zone)
		got, err := d.instant(tt.cell, "")
		if err != nil || got.Format(time.RFC3339Nano) != tt.want && got.UTC().Format(time.RFC3339Nano) != tt.want {
			t.Errorf("%s %q: got %v, %v; want %s", tt.pattern, tt.cell, got, err, tt.want)
		}
	}
}

func TestTimesThatClocksSkipOrShowTwiceAreRefused(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"2026-03-29 02:30:00": "never shown", "2026-10-25 02:30:00": "shown twice", "1999-01-01 00:00:00": "outside the years",
		"2026-02-30 00:00:00": "is not a time", "": "empty", "2026-03-01": "is not a time",
	} {
		d := datesOf(t, isoDates, "Europe/Berlin")
		got, err := d.instant(cell, "")
		var f *Fault
		if err == nil || errors.As(err, &f) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v; want a refusal that says %q", cell, got, err, want)
		}
	}
}

// A date that only fits with day and month changed over says that all are misread.
func TestADateOfTheOtherOrderRefusesTheFile(t *testing.T) {
	t.Parallel()
	for _, pattern := range []string{"MM/DD/YYYY", "M/D/YYYY", "M/DD/YYYY", "MM/DD/YY hh:mm AM"} {
		d := datesOf(t, pattern, "UTC")
		year, clock := "2026", ""
		if strings.Contains(pattern, "AM") {
			year, clock = "26", " 09:30 PM"
		}
		if _, err := d.instant("03/04/"+year+clock, ""); err != nil {
			t.Fatal(pattern, err)
		}
		var f *Fault
		if got, err := d.instant("13/04/"+year+clock, ""); !errors.As(err, &f) {
			t.Errorf("%s: got %v, %v; want a fault of the file", pattern, got, err)
		}
	}
	for _, pattern := range []string{"", "YYYY", "DD?MM?YYYY", "MM/DD"} {
		if _, err := newDates(pattern); err == nil {
			t.Errorf("the pattern %q was taken", pattern)
		}
	}
}

// The zone of a row may change within a file, and some abbreviations mean several zones.
func TestB77_AbbreviationsOfZonesInAFile(t *testing.T) {
	t.Parallel()
	d := datesOf(t, isoDates, "")
	summer, err := d.instant("2026-11-01 01:30:00", "PDT")
	if err != nil {
		t.Fatal(err)
	}
	winter, err := d.instant("2026-11-01 01:30:00", "PST")
	if err != nil || winter.Sub(summer) != time.Hour {
		t.Errorf("PST is %v after PDT, %v; want one hour", winter.Sub(summer), err)
	}
	for _, name := range []string{"IST", "BST", "CST", "Pacific Time (US & Canada)"} {
		if got, err := d.instant("2026-11-01 01:30:00", name); err == nil {
			t.Errorf("%s was read as %v; it has several meanings", name, got)
		}
	}
	d.zones = map[string]string{"IST": "Asia/Kolkata"}
	got, err := d.instant("2026-11-01 01:30:00", "IST")
	if want := time.Date(2026, 10, 31, 20, 0, 0, 0, time.UTC); err != nil || !got.Equal(want) {
		t.Errorf("IST as the settings say: got %v, %v; want %v", got, err, want)
	}
	for name, offset := range map[string]time.Duration{"EDT": -4, "CET": 1, "Europe/Berlin": 1, "+01:00": 1} {
		got, err := d.instant("2026-11-01 12:00:00", name)
		if want := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC).Add(-offset * time.Hour); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, want)
		}
	}
}

// Whatever a cell holds, a time is read only within the years that can be.
func FuzzInstant(f *testing.F) {
	f.Add("2026-03-01 09:30:00", "PST", isoDates)
	f.Add("01.03.2026 09:30", "", "DD.MM.YYYY hh:mm")
	f.Add("2026-03-01T09:30:00+02:00", "Europe/Berlin", rfc3339)
	f.Fuzz(func(t *testing.T, cell, zone, pattern string) {
		d, err := newDates(pattern)
		if err != nil {
			return
		}
		d.zone = time.UTC
		got, err := d.instant(cell, zone)
		if err == nil && (got.Year() < firstYear-1 || got.Year() > lastYear) {
			t.Errorf("%q %q as %q is %v", cell, zone, pattern, got)
		}
	})
}
