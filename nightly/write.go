package nightly

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/reports"
)

// DayBefore is the last whole day of a zone before an instant, and its name.
func DayBefore(at time.Time, zone *time.Location) (recon.Window, string) {
	local := at.In(zone)
	today := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC)
	day := today.AddDate(0, 0, -1)
	return recon.Window{From: StartOfDay(day, zone).UTC(), To: StartOfDay(today, zone).UTC()}, day.Format(time.DateOnly)
}

// StartOfDay is the first instant of a day in a zone. Midnight may not exist (clocks
// go forward) or exist twice (they go back).
func StartOfDay(day time.Time, zone *time.Location) time.Time {
	y, m, d := day.Date()
	t := time.Date(y, m, d, 0, 0, 0, 0, zone)
	if t.Day() != d { // the instant before the gap
		_, t = t.ZoneBounds()
	}
	if earlier := t.Add(-time.Hour); earlier.Day() == d {
		t = earlier
	}
	return t
}

// MakeFolder makes the folder of a report's files, before anything is read: a report that
// cannot be written need not be made.
func MakeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("%s: the folder cannot be made: %w", dir, reason(err))
	}
	probe, err := os.CreateTemp(dir, ".report-*")
	if err != nil {
		return fmt.Errorf("%s: the folder cannot be written to: %w", dir, reason(err))
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// Write renders a report into a folder, each file whole, and gives the path of its page.
func Write(dir string, n *reports.Nightly) (page string, err error) {
	files, err := reports.NightlyFiles(n)
	if err != nil {
		return "", err
	}
	for _, file := range files {
		if err := writeWhole(filepath.Join(dir, file.Name), file.Data); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, n.Base()+".html"), nil
}

// reason is what the system said, without the path that the message names already.
func reason(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// writeWhole puts a file into its place whole: whoever reads there sees the old one or the
// new one.
func writeWhole(path string, data []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, reason(err))
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name()) // what failed is told already
		}
	}()
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, reason(err))
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return fmt.Errorf("put %s in place: %w", path, err)
	}
	return nil
}
