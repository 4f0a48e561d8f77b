package daemon

import (
	"context"
	"time"
)

const (
	// flood is the least number of events in one round of the intake that are many.
	flood = 100
	// giveWay is how many times as long as such a round took the intake rests after it.
	giveWay = 9
	// longestRest bounds every pause of the intake.
	longestRest = time.Second
)

// restAfter says how long the intake rests after a round that ended some events while
// others came: not at all as long as it keeps up. When more come than it ends they pile up
// whatever it does, and storing them goes first: their senders wait, and send again what
// is not acknowledged. They are taken in all the while, and faster when fewer come.
func restAfter(ended, came int, took time.Duration) time.Duration {
	if ended < flood || came <= ended {
		return 0
	}
	return min(giveWay*took, longestRest)
}

// rests hold the intake up while deliveries come in faster than it works.
type rests struct {
	bell   *bell
	before int64 // rings when the round began
}

func (r *rests) begin() { r.before = r.bell.rings.Load() }

// after rests after a round.
func (r *rests) after(ctx context.Context, ended int, took time.Duration) {
	if wait := restAfter(ended, int(r.bell.rings.Load()-r.before), took); wait > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	r.begin()
}
