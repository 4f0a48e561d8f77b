package config

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// changing are zones whose clocks are changed by an hour, north and south, and by half of
// one.
var changing = []string{"America/New_York", "Europe/Oslo", "Australia/Lord_Howe"}

func spec(t rapid.TB, zone, line string) (Spec, *time.Location) {
	t.Helper()
	s, err := parseSpec("CRON_TZ="+zone+" "+line, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return s, s.zone
}

// A run that is due once a day runs once on every day of five years, whatever the clocks
// do: at its time, or where that is skipped, at the moment of the change.
func TestB89_ADailyRunIsDueOnceOnEveryDay(t *testing.T) {
	t.Parallel()
	for _, zone := range changing {
		for _, at := range []string{"00:00", "01:15", "01:30", "01:45", "02:00", "02:15", "02:30", "02:59", "03:00", "23:59"} {
			s, loc := spec(t, zone, at[3:]+" "+at[:2]+" * * *")
			day := time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC)
			due := time.Date(2021, 12, 31, 23, 59, 59, 0, loc)
			for ; day.Year() < 2027; day = day.AddDate(0, 0, 1) {
				due = s.Next(due)
				if want := day.Format("2006-01-02T") + at + " " + zone; s.Tick(due) != want {
					t.Fatalf("%s at %s: due %s is tick %s, want %s", zone, at, due, s.Tick(due), want)
				}
				wall := due.In(loc)
				if wall.Format(time.DateOnly) != day.Format(time.DateOnly) {
					t.Fatalf("%s at %s: %s is due at %s", zone, at, day.Format(time.DateOnly), wall)
				}
				if shown := wall.Format("15:04"); shown != at && (shown < at || shown > "03:00") {
					t.Fatalf("%s at %s: on %s it is due at %s", zone, at, day.Format(time.DateOnly), shown)
				}
			}
		}
	}
}

func TestB89_WhatAChangeSkipsAndRepeats(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		zone, line, from string
		want             []string // instants and ticks
	}{
		// 2026-03-08 has no 02:30 in New York: it is due when the clock jumps to 03:00.
		{"America/New_York", "30 2 * * *", "2026-03-08T05:00:00Z", []string{"2026-03-08T07:00:00Z 2026-03-08T02:30", "2026-03-09T06:30:00Z 2026-03-09T02:30"}},
		{"America/New_York", "30 1 * * *", "2026-11-01T04:00:00Z", []string{"2026-11-01T05:30:00Z 2026-11-01T01:30", "2026-11-02T06:30:00Z 2026-11-02T01:30"}},
		{"America/New_York", "0,30 2,3 * * *", "2026-03-08T05:00:00Z", []string{"2026-03-08T07:00:00Z 2026-03-08T03:00", "2026-03-08T07:30:00Z 2026-03-08T03:30"}},
		{"America/New_York", "30 * * * *", "2026-11-01T04:45:00Z", []string{
			"2026-11-01T05:30:00Z 2026-11-01T01:30", "2026-11-01T06:30:00Z 2026-11-01T01:30 again", "2026-11-01T07:30:00Z 2026-11-01T02:30"}},
		{"Europe/Oslo", "15 2 * * *", "2026-03-28T23:30:00Z", []string{"2026-03-29T01:00:00Z 2026-03-29T02:15", "2026-03-30T00:15:00Z 2026-03-30T02:15"}},
		{"Europe/Oslo", "15 2 * * *", "2026-10-24T22:30:00Z", []string{"2026-10-25T00:15:00Z 2026-10-25T02:15", "2026-10-26T01:15:00Z 2026-10-26T02:15"}},
		// Lord Howe goes by half an hour: 02:00 to 02:30 in October, 02:00 to 01:30 in April.
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T14:00:00Z", []string{"2026-10-03T15:30:00Z 2026-10-04T02:15", "2026-10-04T15:15:00Z 2026-10-05T02:15"}},
		{"Australia/Lord_Howe", "45 1 * * *", "2026-04-04T14:00:00Z", []string{"2026-04-04T14:45:00Z 2026-04-05T01:45", "2026-04-05T15:15:00Z 2026-04-06T01:45"}},
		{"Australia/Lord_Howe", "*/30 * * * *", "2026-04-04T14:15:00Z", []string{
			"2026-04-04T14:30:00Z 2026-04-05T01:30", "2026-04-04T15:00:00Z 2026-04-05T01:30 again", "2026-04-04T15:30:00Z 2026-04-05T02:00"}},
	} {
		s, _ := spec(t, test.zone, test.line)
		due, err := time.Parse(time.RFC3339, test.from)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range test.want {
			due = s.Next(due)
			if got := due.UTC().Format(time.RFC3339) + " " + strings.TrimSuffix(s.Tick(due), " "+test.zone); got != want {
				t.Errorf("%s in %s: %s, want %s", test.line, test.zone, got, want)
			}
		}
	}
}

// A run that is due in every hour never waits longer because a clock was put back.
func TestARunOfEveryHourGoesOnThroughAChange(t *testing.T) {
	t.Parallel()
	for _, zone := range changing {
		s, loc := spec(t, zone, "*/15 * * * *")
		ticks := map[string]bool{}
		end := time.Date(2027, 1, 1, 0, 0, 0, 0, loc)
		for at := time.Date(2026, 1, 1, 0, 0, 0, 0, loc); at.Before(end); {
			due := s.Next(at)
			if gap := due.Sub(at); gap != 15*time.Minute {
				t.Fatalf("%s: %s after %s", zone, gap, at.In(loc))
			}
			if ticks[s.Tick(due)] {
				t.Fatalf("%s: tick %s comes twice", zone, s.Tick(due))
			}
			ticks[s.Tick(due)], at = true, due
		}
	}
}

// However odd a line and a zone are: due times go forward, no tick comes twice, and asking
// from any moment between two of them gives the second.
func TestLawTicksComeOnceAndInOrder(t *testing.T) {
	t.Parallel()
	zones := append([]string{"UTC", "Africa/Casablanca", "America/Havana", "Asia/Beirut", "Pacific/Apia", "Asia/Kathmandu"}, changing...)
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.SampledFrom([]string{"*", "0", "30", "*/20", "15,45"}).Draw(t, "minute") + " " +
			rapid.SampledFrom([]string{"*", "0-23", "0", "1", "2", "1-3", "*/2", "23"}).Draw(t, "hour") + " " +
			rapid.SampledFrom([]string{"* * *", "* * 0", "1 * *", "* 3,10 *"}).Draw(t, "day")
		s, zone := spec(t, rapid.SampledFrom(zones).Draw(t, "zone"), field)
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rapid.IntRange(0, 366*24*60).Draw(t, "minutes")) * time.Minute)
		if _, change := at.In(zone).ZoneBounds(); !change.IsZero() && rapid.Bool().Draw(t, "at a change") {
			at = change.Add(-2 * time.Hour)
		}
		ticks := map[string]bool{}
		for range 40 {
			due := s.Next(at)
			if !due.After(at) {
				t.Fatalf("due at %s, after %s", due, at)
			}
			if ticks[s.Tick(due)] {
				t.Fatalf("tick %s comes twice", s.Tick(due))
			}
			between := at.Add(due.Sub(at) / 2)
			if got := s.Next(between); !got.Equal(due) && between.Before(due) {
				t.Fatalf("after %s due at %s, after %s at %s", at, due, between, got)
			}
			ticks[s.Tick(due)], at = true, due
		}
	})
}

func TestSchedulesThatWouldNeverRunOrNotBeTheSameElsewhereAreRefused(t *testing.T) {
	t.Parallel()
	for text, why := range map[string]string{
		"0 0 30 2 *":                     "never due",
		"0 0 31 4,6 *":                   "never due",
		"@every 5m":                      "when the process started",
		"CRON_TZ=Europe/Oslo @every 5m":  "when the process started",
		"CRON_TZ=Local 0 3 * * *":        "on another machine",
		"CRON_TZ=Europe/Oslo":            "names a zone and no time",
		"CRON_TZ=Mars/Olympus 0 3 * * *": "is no schedule",
		"61 * * * *":                     "is no schedule",
		"":                               "is no schedule",
	} {
		if _, err := parseSpec(text, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want an error that says %q", text, err, why)
		}
	}
}

// FuzzSpec holds that a line is refused, or is due again and again, always later.
func FuzzSpec(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string, seconds int64) {
		now := time.Unix(seconds%4_000_000_000, 0).UTC()
		s, err := parseSpec(text, now)
		if err != nil || text == "off" {
			return
		}
		for range 5 {
			next := s.Next(now)
			if next.IsZero() { // a day that comes too seldom to be looked for from here
				return
			}
			if !next.After(now) {
				t.Fatalf("%q is due at %s, after %s", text, next, now)
			}
			now = next
		}
	})
}
