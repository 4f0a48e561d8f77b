package large

import (
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// How long something may be on its way to the product: what a provider shows lags, and an
// intake that died goes on after minutes.
const (
	showsWithin  = 2 * time.Minute
	takenInAfter = 5 * time.Minute
)

// showed notes down which effects a look at the provider showed.
func (w *World) showed(l recon.Look) {
	if l.Outcome != recon.Found || l.Method == recon.ByStored || l.Method == recon.ByEvent {
		return
	}
	for _, e := range l.Found {
		w.readAt[e.ID] = lastOf(w.readAt[e.ID], l.At)
	}
}

// cannotKnow reports whether something of an operation was done and came undone, and nothing
// has told the product of that yet.
func (w *World) cannotKnow(op recon.OperationID) bool {
	for _, d := range w.book.by(op) {
		if at, undone := d.undone(w.clock.Now()); undone && !w.toldOf(d, at) {
			return true
		}
	}
	return false
}

// toldOf reports whether the product was told what became of an effect at a time: it read the
// effect since, or an event of then or later has been taken.
func (w *World) toldOf(d *deed, at time.Time) bool {
	if w.readAt[d.id].Sub(at) > showsWithin {
		return true
	}
	skew, since := w.plan.nature.skew, map[string]bool{}
	for _, e := range w.at.cards.Events() {
		if e.ObjectID == d.id && at.Sub(e.Created.Add(-skew)) < time.Second { // it counts in whole seconds
			since[e.ID] = true
		}
	}
	for _, p := range w.at.cards.Deliveries() {
		if since[p.Event] && p.Taken() && !p.Forged && w.clock.Now().Sub(p.At.Add(-skew)) > takenInAfter {
			return true
		}
	}
	return false
}

// undone gives when a deed that had been done came undone, if it had by then.
func (d *deed) undone(by time.Time) (at time.Time, undone bool) {
	done := d.status(d.at) == recon.Completed
	for _, t := range d.turns {
		if t.at.After(by) {
			break
		}
		done = done || t.status == recon.Completed
		at = t.at
	}
	return at, done && !d.live(by)
}

// standing is how many incidents are planned at every telling though nothing changes: that of
// the source at which every look is blind.
func (w *World) standing() int {
	if since, blind := w.blind[told]; blind && w.clock.Now().Sub(since) > day {
		return 1
	}
	return 0
}
