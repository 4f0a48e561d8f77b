package sweep

import (
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	// overlap is how far a window reaches back before the last complete point, and how far
	// beyond its ends the provider is listed: what was sent at an edge is made on the other
	// side of it, and what became visible late is found by the next audit.
	overlap = time.Hour
	// firstWindow is what the first audit of a source without operations looks at.
	firstWindow = 24 * time.Hour
	// unlistedWindow bounds what is accounted for at a source that cannot be listed: without
	// imports it stays unseen, and its window must not grow for ever.
	unlistedWindow = 31 * 24 * time.Hour
)

// WindowError says that a window cannot be audited.
type WindowError struct{ Text string }

func (e *WindowError) Error() string { return e.Text }

// span is what one audit of a source accounts for, and what it reads for that.
type span struct {
	counted recon.Window // objects count by their own time of creation
	listed  recon.Window // pairs are made from all of it
	given   bool         // by a person: no new complete point unless it joins the last one
}

// horizon is what a window is chosen by.
type horizon struct {
	last  time.Time // complete point
	now   time.Time
	lag   time.Duration // after which the provider is sure to show what exists
	reach time.Duration // how far back effects may still wait for their operations
}

// spanOf gives the window: from the last complete point less the overlap to what the
// provider is sure to show by now, unless a person says otherwise.
func spanOf(asked recon.Window, h horizon) (span, error) {
	s := span{counted: asked, given: !asked.From.IsZero() || !asked.To.IsZero()}
	sure := h.now.Add(-h.lag).Truncate(time.Second)
	switch {
	case asked.To.After(h.now):
		return s, &WindowError{fmt.Sprintf("the window ends at %s, and now is %s: what is to come cannot be audited; give an end that has passed",
			recon.TimeText(asked.To, nil), recon.TimeText(h.now, nil))}
	case asked.To.IsZero(), asked.To.After(sure):
		s.counted.To = sure
	}
	if asked.From.IsZero() {
		s.counted.From = h.last.Add(-max(overlap, h.reach)).Truncate(time.Second)
	}
	if !s.counted.From.Before(s.counted.To) {
		return s, &WindowError{fmt.Sprintf("the window from %s to %s is empty: its start must be before its end",
			recon.TimeText(s.counted.From, nil), recon.TimeText(s.counted.To, nil))}
	}
	s.listed = recon.Window{From: s.counted.From.Add(-overlap), To: s.counted.To.Add(overlap)}
	if !s.given || s.listed.To.After(h.now) {
		s.listed.To = h.now
	}
	return s, nil
}

// lastComplete is the earliest complete point of the lists; zero where one of them was
// never read to its end.
func lastComplete(lists []sources.List, states map[sources.List]ledger.ListState) time.Time {
	var earliest time.Time
	for i, l := range lists {
		at := states[l].CompleteTo
		if at.IsZero() {
			return at
		}
		if i == 0 || at.Before(earliest) {
			earliest = at
		}
	}
	return earliest
}

// finished is how far a list is complete once it was read to its end. What the provider
// shows only after its lag may be missing from what was listed before. A window that
// leaves a gap, as one in the past does, completes nothing.
func finished(st ledger.ListState, lag time.Duration, given bool) ledger.ListState {
	sure := st.BeganAt.Add(-lag)
	if st.Window.To.Before(sure) {
		sure = st.Window.To
	}
	joins := !given
	if !st.CompleteTo.IsZero() {
		joins = !st.Window.From.After(st.CompleteTo)
	}
	if joins && sure.After(st.CompleteTo) {
		st.CompleteTo = sure
	}
	st.Window, st.Cursor, st.BeganAt = recon.Window{}, "", time.Time{}
	return st
}
