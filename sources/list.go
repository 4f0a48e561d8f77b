package sources

import (
	"context"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Lister is a source that can list everything that was created in a window, page by
// page, so that nothing has to be held in memory whole and a list that broke off goes on
// at its cursor.
type Lister interface {
	// Lists gives what must be listed to see all effects of the kinds: one list per kind,
	// account and mode. Kinds that the source cannot list are left out.
	Lists(kinds []string) []List
	// Page reads one page, newest first. cursor is empty for the first page, else the Next
	// of the page before; it stays good across processes. A fault of the provider is a
	// blind look, not an error; the same cursor may then be tried again.
	Page(ctx context.Context, l List, w recon.Window, cursor string, now func() time.Time) (Page, error)
}

// List is one list of a provider.
type List struct {
	Kind    string
	Account string
	Mode    string
}

// Page is one page of a list.
type Page struct {
	Effects []recon.Effect
	Raw     []Raw
	// Next is the cursor of the next page; empty: the list is read to its end. Where Look
	// is blind it is the cursor that was given, and says nothing of the end.
	Next string
	// Look has method list and names the part of the window that this page covers without
	// a gap: from the oldest object that was read whole (the window's start on the last
	// page) to where the page before ended, and never later than now. That part is empty
	// where a page ended within the second in which it began. It is blind where the page
	// was not read; then the window is all that is still to be read.
	Look recon.Look
}
