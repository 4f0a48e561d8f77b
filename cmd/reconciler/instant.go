package main

import (
	"time"

	"github.com/seed-1c4f4dc2/reconciler/nightly"
)

// edge says which end of a day a date means.
type edge int

const (
	dayStart edge = iota
	dayEnd        // the start of the next day: ranges are half-open
)

// parseInstant reads an RFC 3339 instant, or a date: the local day in zone.
func parseInstant(flag, text string, zone *time.Location, e edge) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return checkInstant(flag, text, t)
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return time.Time{}, misuse("--%s %s: write an instant such as 2026-03-01T00:00:00Z, or a date such as 2026-03-01", flag, text)
	}
	if e == dayEnd {
		day = day.AddDate(0, 0, 1)
	}
	return checkInstant(flag, text, nightly.StartOfDay(day, zone))
}

// checkInstant keeps to the years that the ledger can hold.
func checkInstant(flag, text string, t time.Time) (time.Time, error) {
	if t.Year() < 2000 || t.Year() > 2100 {
		return time.Time{}, misuse("--%s %s: years from 2000 to 2100 are possible", flag, text)
	}
	return t.UTC(), nil
}
