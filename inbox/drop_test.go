package inbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
)

// What was given up is shown to people for as long as what was taken in is kept.
func TestBytesOfWhatWasGivenUpAreKeptFromThatMomentOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receive(inbox.Delivery{Event: event("evt_poison"), At: t0})
	now := t0
	for range inbox.MaxAttempts {
		now = now.Add(2 * time.Hour) // longer than any wait between two tries
		w.finish(now, inbox.Ending{Of: w.take(now, 1)[0], Err: errors.New("a field is no number")})
	}
	for _, step := range []struct {
		before time.Time
		want   int
	}{{t0.Add(time.Second), 0}, {now, 0}, {now.Add(time.Hour), 1}, {now.Add(2 * time.Hour), 0}} {
		if n, err := w.inbox.DropBytes(t.Context(), step.before, step.before); err != nil || n != step.want {
			t.Errorf("%d dropped before %s, %v; given up at %s", n, step.before, err, now)
		}
	}
	if row := w.list(inbox.Filter{})[0]; row.State != inbox.Failed || row.HasBytes || row.LastError == "" {
		t.Errorf("%+v", row)
	}
}
