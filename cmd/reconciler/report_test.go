package main

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A day is that of the zone, however long clocks make it; without a range it is yesterday.
func TestB89_ADayOfAReportIsAsLongAsClocksMakeIt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 1, 2, 15, 0, 0, time.UTC)
	for _, tt := range []struct {
		zone, day string
		from      string
		hours     float64
	}{
		{"America/New_York", "2026-11-01", "2026-11-01T04:00:00Z", 25},
		{"America/New_York", "2026-03-08", "2026-03-08T05:00:00Z", 23},
		{"Australia/Lord_Howe", "2026-04-05", "2026-04-04T13:00:00Z", 24.5},
		{"Australia/Lord_Howe", "2026-10-04", "2026-10-03T13:30:00Z", 23.5},
		{"Asia/Beirut", "2026-03-29", "2026-03-28T22:00:00Z", 23}, // there is no midnight
		{"Europe/Oslo", "2026-10-31", "2026-10-30T23:00:00Z", 24},
		{"America/Mexico_City", "2026-05-31", "2026-05-31T06:00:00Z", 24},
		{"Europe/Berlin", "", "2026-11-29T23:00:00Z", 24},
		{"Pacific/Kiritimati", "", "2026-11-29T10:00:00Z", 24}, // where it is the first already
	} {
		zone, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		w, name, err := reportFlags{day: tt.day}.window(zone, now)
		if err != nil {
			t.Errorf("%s in %s: %v", tt.day, tt.zone, err)
			continue
		}
		if got := w.From.Format(time.RFC3339); got != tt.from || w.To.Sub(w.From).Hours() != tt.hours {
			t.Errorf("%s in %s: %s for %g hours, want %s for %g", name, tt.zone, got, w.To.Sub(w.From).Hours(), tt.from, tt.hours)
		}
		if tt.day != "" && name != tt.day {
			t.Errorf("%s is named %s", tt.day, name)
		}
	}
}

// Days follow each other without gap or overlap in any zone.
func TestDaysOfReportsFollowEachOther(t *testing.T) {
	t.Parallel()
	now := time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
	rapid.Check(t, func(r *rapid.T) {
		zone, err := time.LoadLocation(rapid.SampledFrom([]string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Beirut", "America/Santiago", "Pacific/Apia", "UTC"}).Draw(r, "zone"))
		if err != nil {
			r.Fatal(err)
		}
		day := time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, rapid.IntRange(0, 7000).Draw(r, "day"))
		one, _, err := reportFlags{day: day.Format(time.DateOnly)}.window(zone, now)
		if err != nil {
			r.Fatal(err)
		}
		next, _, err := reportFlags{day: day.AddDate(0, 0, 1).Format(time.DateOnly)}.window(zone, now)
		if err != nil {
			r.Fatal(err)
		}
		if !one.To.Equal(next.From) {
			r.Fatalf("%s in %s ends %s and the next day begins %s", day.Format(time.DateOnly), zone, one.To, next.From)
		}
	})
}
