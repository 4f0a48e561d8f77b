package nightly

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The day before is that of the zone, also where it is another day than in UTC.
func TestTheDayBeforeIsThatOfTheZone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		at, zone string
		name     string
		from, to string
	}{
		{"2026-03-02T02:15:00Z", "Europe/Berlin", "2026-03-01", "2026-02-28T23:00:00Z", "2026-03-01T23:00:00Z"},
		{"2026-03-02T02:15:00Z", "America/Los_Angeles", "2026-02-28", "2026-02-28T08:00:00Z", "2026-03-01T08:00:00Z"},
		{"2026-11-02T07:00:00Z", "America/New_York", "2026-11-01", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
		{"2026-03-30T00:00:00Z", "Asia/Beirut", "2026-03-29", "2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"},
	} {
		at, err := time.Parse(time.RFC3339, tt.at)
		if err != nil {
			t.Fatal(err)
		}
		w, name := DayBefore(at, zone(t, tt.zone))
		if name != tt.name || w.From.Format(time.RFC3339) != tt.from || w.To.Format(time.RFC3339) != tt.to {
			t.Errorf("%s in %s: %s, %s to %s", tt.at, tt.zone, name, w.From, w.To)
		}
	}
}

// A file is put into its place whole, or what was there stays and nothing is left behind.
func TestAFileOfAReportIsWholeOrNotThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "report.html")
	for _, text := range []string{"first", "second"} {
		if err := writeWhole(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Fatalf("%q, %v", got, err)
		}
	}
	taken := filepath.Join(dir, "taken") // a folder that stands where the file should be
	if err := os.MkdirAll(filepath.Join(taken, "inside"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeWhole(taken, []byte("x")); err == nil {
		t.Error("a folder was replaced")
	}
	if err := writeWhole(filepath.Join(dir, "none", "report.html"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}
