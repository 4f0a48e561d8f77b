package recon_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// TestLawAWallTimeIsWhatPackageTimeReads holds the quick reading of times against time.Parse:
// it takes the same times of the years that instants have, and no others.
func TestLawAWallTimeIsWhatPackageTimeReads(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := func(name string, most int) int { return rapid.IntRange(0, most).Draw(t, name) }
		s := []byte(fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02d", rapid.IntRange(1995, 2105).Draw(t, "year"),
			part("month", 13), part("day", 32), part("hour", 25), part("minute", 61), part("second", 61)))
		if rapid.IntRange(0, 3).Draw(t, "spoilt") == 0 {
			s[rapid.IntRange(0, len(s)-1).Draw(t, "at")] = rapid.SampledFrom([]byte("0123456789 -:T,.Z/")).Draw(t, "byte")
		}
		got, ok := recon.ParseWallTime(string(s), 'T')
		want, err := time.Parse("2006-01-02T15:04:05", string(s))
		if is := err == nil && len(want.Format("2006-01-02T15:04:05")) == len(s) && want.Year() >= 2000 && want.Year() < 2100; is != ok || ok && got != want {
			t.Fatalf("%s: %v %v, want %v %v", s, got, ok, want, err)
		}
		if back, err := recon.ParseInstant(string(s) + "Z"); ok != (err == nil) || ok && back != want {
			t.Fatalf("%sZ: %v %v, want %v", s, back, err, want)
		}
	})
}
