package large

import "time"

// retry is when something that could not be done is tried again: after an hour, and the longer
// it cannot be done the less often. Whoever tries it meanwhile puts no second time on the agenda.
type retry struct {
	again time.Time     // what is on the agenda, or was last
	pause time.Duration // before it; 0: it was done
}

// after is told how an attempt ended.
func (r *retry) after(w *World, done bool, do func() error) {
	switch now := w.clock.Now(); {
	case done:
		r.pause = 0
	case !r.again.After(now):
		r.pause = min(max(time.Hour, 2*r.pause), day)
		if r.again = now.Add(r.pause); !r.again.After(w.over()) {
			w.agenda.Plan(r.again, do)
		}
	}
}
