package daemon

import (
	"context"
	"testing"
	"time"
)

func TestTheIntakeGivesWayOnlyWhileMoreComesThanItEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		ended, came int
		took, want  time.Duration
	}{
		{"nothing comes", 200, 0, 100 * time.Millisecond, 0},
		{"it keeps up", 200, 200, 100 * time.Millisecond, 0},
		{"more comes", 200, 201, 100 * time.Millisecond, 900 * time.Millisecond},
		{"it works for a moment", 200, 1000, time.Millisecond, 9 * time.Millisecond},
		{"it works slowly", 200, 1000, time.Minute, time.Second},
		{"few come, and faster than it ends them", 99, 1000, 100 * time.Millisecond, 0},
		{"nothing was due", 0, 1000, 100 * time.Millisecond, 0},
	} {
		if got := restAfter(tt.ended, tt.came, tt.took); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func TestARestCountsWhatCameDuringItsRoundAndEndsWithTheDaemon(t *testing.T) {
	t.Parallel()
	b := newBell()
	r := rests{bell: b}
	ring := func() {
		for range flood + 1 {
			b.ring()
		}
	}
	ring() // before the round
	r.begin()
	r.after(t.Context(), flood, time.Hour) // ends at once, as nothing came
	ring()
	ended, end := context.WithCancel(t.Context())
	end()
	r.after(ended, flood, time.Hour)
	if r.before != b.rings.Load() {
		t.Errorf("what came before a rest counts again: %d of %d", r.before, b.rings.Load())
	}
	began := time.Now()
	ring()
	r.after(t.Context(), flood, time.Millisecond)
	if took := time.Since(began); took < giveWay*time.Millisecond {
		t.Errorf("rested for %v", took)
	}
}
