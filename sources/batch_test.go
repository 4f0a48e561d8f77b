package sources_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

func TestABatchIsSortedByWhatOneListCanAnswer(t *testing.T) {
	t.Parallel()
	sheet := recon.Sheet{Kinds: []string{"letter", "ticket"}, Accounts: []recon.Account{{Account: "a", Mode: "live"}, {Account: "a", Mode: "test"}, {Account: "b", Mode: "live"}}}
	q := func(id, kind, account, mode string, age time.Duration) sources.Question {
		return sources.Question{Operation: recon.OperationID(id), Kind: kind, Account: account, Mode: mode, From: noon.Add(-age)}
	}
	batch := []sources.Question{
		q("old", "ticket", "b", "live", time.Hour), q("young", "ticket", "b", "live", time.Minute),
		q("anywhere", "letter", "a", "", time.Minute), q("kind", "parcel", "a", "live", 0), q("stranger", "letter", "c", "live", 0),
	}
	show := func(groups []sources.Group) (lines []string) {
		for _, g := range groups {
			line := g.Account + "/" + g.Mode + "/" + g.Kind
			for _, q := range g.Questions {
				line += " " + string(q.Operation)
			}
			lines = append(lines, line)
		}
		return lines
	}
	for range 2 {
		groups, foreign := sources.Partition(batch, sheet)
		if diff := cmp.Diff([]string{"a/live/letter anywhere", "a/test/letter anywhere", "b/live/ticket young old"}, show(groups)); diff != "" {
			t.Errorf("groups (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"a/live/parcel kind", "c/live/letter stranger"}, show(foreign)); diff != "" {
			t.Errorf("foreign (-want +got):\n%s", diff)
		}
		slices.Reverse(batch) // the order of questions changes nothing
	}
}

// place is a position of a list in tests.
type place struct {
	N          int
	Oldest, To time.Time
}

func (p place) Good() bool                    { return p.N > 0 }
func (p place) Edges() (oldest, to time.Time) { return p.Oldest, p.To }

func TestACursorIsGoodForItsOwnListAndWindowAlone(t *testing.T) {
	t.Parallel()
	l := sources.List{Kind: "letter", Account: "a", Mode: "live"}
	w := recon.Window{From: noon.Add(-time.Hour), To: noon}
	at := place{N: 3, Oldest: noon.Add(-time.Minute), To: noon.Add(-2 * time.Minute)}
	cursor := sources.WriteCursor(at, l, w)
	got, err := sources.ReadCursor[place](cursor, l, recon.Window{From: w.From.Local(), To: w.To.Local()})
	if err != nil || got == nil || !got.To.Equal(at.To) || got.N != 3 {
		t.Fatalf("its own cursor gives %v and %v", got, err)
	}
	if got, err := sources.ReadCursor[place]("", l, w); got != nil || err != nil {
		t.Errorf("the beginning is %v and %v, want nothing", got, err)
	}
	outside := place{N: 3, Oldest: at.Oldest, To: noon.Add(time.Hour)}
	ancient := place{N: 3, Oldest: time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), To: at.To}
	for name, c := range map[string]struct {
		cursor string
		list   sources.List
		window recon.Window
		want   string
	}{
		"an empty window":   {cursor, l, recon.Window{From: w.To, To: w.From}, "the window is empty"},
		"no JSON":           {"{", l, w, "cannot be read"},
		"nothing was read":  {sources.WriteCursor(place{Oldest: at.Oldest, To: at.To}, l, w), l, w, "cannot be read"},
		"another list":      {cursor, sources.List{Kind: "letter", Account: "a", Mode: "test"}, w, "of another list or window"},
		"another window":    {cursor, l, recon.Window{From: w.From, To: w.To.Add(time.Second)}, "of another list or window"},
		"beyond the window": {sources.WriteCursor(outside, l, w), l, w, "outside of its window"},
		"before all times":  {sources.WriteCursor(ancient, l, w), l, w, "outside of its window"},
	} {
		if _, err := sources.ReadCursor[place](c.cursor, c.list, c.window); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error is %v, want %q", name, err, c.want)
		}
	}
}
