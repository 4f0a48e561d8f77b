package stripe

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// position is where a page ended.
type position struct {
	After  string    `json:"after"`  // id of its last object; empty: nothing was read yet
	Oldest time.Time `json:"oldest"` // when that object was created
	To     time.Time `json:"to"`     // back to where the list was read without a gap
}

// bookmark is a position as it is stored. It names its list and window, since with
// another one it would claim what was never read.
type bookmark struct {
	position
	List sources.List `json:"list"`
	From time.Time    `json:"from"`
	Till time.Time    `json:"till"`
}

// cursor writes a position of a list.
func (p position) cursor(l sources.List, w recon.Window) string {
	b, err := json.Marshal(bookmark{position: p, List: l, From: w.From.UTC(), Till: w.To.UTC()})
	if err != nil {
		return "" // unreachable: times within 2000 to 2100 and texts
	}
	return string(b)
}

// readCursor reads a position. It refuses a window that is none, and what was not
// written for this list and window.
func readCursor(cursor string, l sources.List, w recon.Window) (position, error) {
	if w.From.IsZero() || !w.From.Before(w.To) {
		return position{}, errors.New("the window is empty; give one that ends after it begins")
	}
	if cursor == "" {
		return position{}, nil
	}
	var b bookmark
	err := json.Unmarshal([]byte(cursor), &b)
	switch {
	case err != nil || b.After == "" || len(b.After) > maxText:
		return position{}, errors.New("the cursor cannot be read; begin the list anew without one")
	case b.List != l || !b.From.Equal(w.From) || !b.Till.Equal(w.To):
		return position{}, errors.New("the cursor is of another list or window; begin the list anew without one")
	case b.Oldest.Unix() < minTime || b.Oldest.Unix() >= maxTime || b.To.After(w.To) || b.To.Before(w.From):
		return position{}, errors.New("the cursor stands outside of its window; begin the list anew without one")
	}
	return b.position, nil
}
