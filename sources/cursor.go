package sources

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Cursors are read back from the ledger; a time outside of these years was never written.
var firstTime, endTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// Position is where a page of a list ended, as its source knows it.
type Position interface {
	// Good reports whether a page can have ended here.
	Good() bool
	// Edges are when the last object was created, and back to where the list was read
	// without a gap.
	Edges() (oldest, to time.Time)
}

// bookmark is a position as it is stored. It names its list and window, since with another
// one it would claim what was never read.
type bookmark[P Position] struct {
	At     P            `json:"at"`
	List   List         `json:"list"`
	Window recon.Window `json:"window"`
}

// WriteCursor writes a position of a list.
func WriteCursor[P Position](at P, l List, w recon.Window) string {
	b, err := json.Marshal(bookmark[P]{At: at, List: l, Window: recon.Window{From: w.From.UTC(), To: w.To.UTC()}})
	if err != nil {
		return "" // unreachable: times within 2000 to 2100 and texts
	}
	return string(b)
}

// ReadCursor reads a position, nil for the beginning. It refuses a window that is none, and
// what was not written for this list and window.
func ReadCursor[P Position](cursor string, l List, w recon.Window) (*P, error) {
	if w.From.IsZero() || !w.From.Before(w.To) {
		return nil, errors.New("the window is empty; give one that ends after it begins")
	}
	if cursor == "" {
		return nil, nil
	}
	var b bookmark[P]
	if err := json.Unmarshal([]byte(cursor), &b); err != nil || !b.At.Good() {
		return nil, errors.New("the cursor cannot be read; begin the list anew without one")
	}
	if b.List != l || !b.Window.From.Equal(w.From) || !b.Window.To.Equal(w.To) {
		return nil, errors.New("the cursor is of another list or window; begin the list anew without one")
	}
	if oldest, to := b.At.Edges(); oldest.Before(firstTime) || !oldest.Before(endTime) || to.After(w.To) || to.Before(w.From) {
		return nil, errors.New("the cursor stands outside of its window; begin the list anew without one")
	}
	return &b.At, nil
}
