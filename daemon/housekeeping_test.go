package daemon

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
)

// housekeeper is the housekeeping of another process.
func (w *clockwork) housekeeper() *job {
	j := w.replica(w.led)
	j.name, j.spec, j.run = runHousekeeping, config.Hourly(), j.keepsHouse(w.led)
	return j
}

func TestHousekeepingIsARunOfItsHour(t *testing.T) {
	t.Parallel()
	w := newClockwork(t)
	replicas := []*job{w.housekeeper(), w.housekeeper()}
	for i, at := range []time.Duration{0, time.Minute, 29*time.Minute + 30*time.Second, 31 * time.Minute, time.Hour} {
		w.set(time.Date(2026, 3, 2, 10, 30, 0, 0, time.UTC).Add(at))
		w.look(replicas[i%2])
	}
	runs, err := w.led.LastRuns(t.Context(), runHousekeeping, 10)
	if err != nil || len(runs) != 2 || runs[0].Outcome != ledger.RunDone || runs[0].Tick != "2026-03-02T11:00 UTC" || runs[1].Tick != "2026-03-02T10:00 UTC" || string(runs[0].Counts) != `{"runs": 0, "events": 0, "replies": 0, "old_runs": 0, "requests": 0}` {
		t.Errorf("runs %+v, %v", runs, err)
	}
}
