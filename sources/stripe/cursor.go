package stripe

import (
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

// Good reports whether a page can have ended here.
func (p position) Good() bool { return p.After != "" && len(p.After) <= maxText }

// Edges are when the last object was created, and back to where the list was read.
func (p position) Edges() (oldest, to time.Time) { return p.Oldest, p.To }

// readCursor reads a position, the zero one for the beginning.
func readCursor(cursor string, l sources.List, w recon.Window) (position, error) {
	at, err := sources.ReadCursor[position](cursor, l, w)
	if at == nil {
		return position{}, err
	}
	return *at, err
}
