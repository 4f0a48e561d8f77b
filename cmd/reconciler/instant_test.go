package main

import (
	"testing"
	"time"
)

func TestParseInstant(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text, zone string
		edge             edge
		want             string
	}{
		{"an instant is itself", "2026-03-01T12:00:00+01:00", "UTC", dayStart, "2026-03-01T11:00:00Z"},
		{"a fraction is kept", "2026-03-01T12:00:00.25Z", "UTC", dayEnd, "2026-03-01T12:00:00.25Z"},
		{"a date begins at local midnight", "2026-03-01", "Europe/Berlin", dayStart, "2026-02-28T23:00:00Z"},
		{"a date ends where the next day begins", "2026-03-01", "Europe/Berlin", dayEnd, "2026-03-01T23:00:00Z"},
		{"the day of spring has 23 hours", "2026-03-29", "Europe/Berlin", dayEnd, "2026-03-29T22:00:00Z"},
		{"a day without midnight begins after the gap", "2018-11-04", "America/Sao_Paulo", dayStart, "2018-11-04T03:00:00Z"},
		{"a day with two midnights begins at the first", "2026-11-01", "America/Havana", dayStart, "2026-11-01T04:00:00Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(tt.zone)
			if err != nil {
				t.Fatal(err)
			}
			got, err := parseInstant("from", tt.text, zone, tt.edge)
			if err != nil {
				t.Fatal(err)
			}
			if s := got.Format(time.RFC3339Nano); s != tt.want {
				t.Errorf("got %s, want %s", s, tt.want)
			}
		})
	}
}

func TestParseInstantRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"yesterday", "2026-3-1", "2026-02-30", "2026-03-01T12:00:00", "1969-01-01", "9999-12-31"} {
		if got, err := parseInstant("now", text, time.UTC, dayStart); err == nil {
			t.Errorf("%s: accepted as %v", text, got)
		}
	}
}
