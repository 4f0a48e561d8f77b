package sweep

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

func TestTheWindowOfAnAudit(t *testing.T) {
	t.Parallel()
	now := monday.Add(100 * time.Hour)
	const lag = time.Minute
	tests := []struct {
		name            string
		asked           recon.Window
		last            time.Time
		reach           time.Duration
		counted, listed recon.Window
		refused         string
	}{
		{
			name: "from an hour before the last complete point to what is sure", last: monday,
			counted: recon.Window{From: monday.Add(-time.Hour), To: now.Add(-lag)}, listed: recon.Window{From: monday.Add(-2 * time.Hour), To: now},
		},
		{
			name: "of whole seconds", last: monday.Add(time.Millisecond),
			counted: recon.Window{From: monday.Add(-time.Hour), To: now.Add(-lag)}, listed: recon.Window{From: monday.Add(-2 * time.Hour), To: now},
		},
		{
			name: "further back where effects may wait longer for their operations", last: monday, reach: 3 * time.Hour,
			counted: recon.Window{From: monday.Add(-3 * time.Hour), To: now.Add(-lag)}, listed: recon.Window{From: monday.Add(-4 * time.Hour), To: now},
		},
		{
			name: "a window in the past, and an hour on both sides for pairs", asked: recon.Window{From: monday, To: monday.Add(24 * time.Hour)}, last: now,
			counted: recon.Window{From: monday, To: monday.Add(24 * time.Hour)}, listed: recon.Window{From: monday.Add(-time.Hour), To: monday.Add(25 * time.Hour)},
		},
		{
			name: "never beyond what the provider is sure to show", asked: recon.Window{From: monday, To: now}, last: monday,
			counted: recon.Window{From: monday, To: now.Add(-lag)}, listed: recon.Window{From: monday.Add(-time.Hour), To: now},
		},
		{name: "not what is to come", asked: recon.Window{To: now.Add(time.Second)}, last: monday, refused: "what is to come cannot be audited"},
		{name: "not nothing", asked: recon.Window{From: now}, last: monday, refused: "its start must be before its end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := spanOf(tt.asked, horizon{last: tt.last, now: now, lag: lag, reach: tt.reach})
			var refused *WindowError
			if tt.refused != "" {
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.refused) {
					t.Errorf("%v, want a refusal that says %q", err, tt.refused)
				}
				return
			}
			if err != nil || got.counted != tt.counted || got.listed != tt.listed {
				t.Errorf("counted %v, listed %v, %v; want %v, %v", got.counted, got.listed, err, tt.counted, tt.listed)
			}
		})
	}
}

func TestTheLastCompletePoint(t *testing.T) {
	t.Parallel()
	const lag = time.Minute
	day := func(n int) time.Time { return monday.Add(time.Duration(n) * 24 * time.Hour) }
	list := func(complete, from, to, began time.Time) ledger.ListState {
		return ledger.ListState{CompleteTo: complete, Window: recon.Window{From: from, To: to}, Cursor: "c", BeganAt: began}
	}
	tests := []struct {
		name  string
		state ledger.ListState
		given bool
		want  time.Time
	}{
		{"the first window begins it", list(time.Time{}, day(0), day(1), day(1)), false, day(1).Add(-lag)},
		{"a window that joins moves it", list(day(1), day(1).Add(-time.Hour), day(2), day(2)), false, day(2).Add(-lag)},
		{"what a later run finished was begun before", list(day(1), day(0), day(2), day(2)), false, day(2).Add(-lag)},
		{"a window of a person's own begins nothing", list(time.Time{}, day(0), day(1), day(1)), true, time.Time{}},
		{"one that leaves a gap moves nothing", list(day(1), day(2), day(3), day(3)), true, day(1)},
		{"one that joins does", list(day(1), day(0), day(2), day(5)), true, day(2)},
		{"one in the past moves nothing back", list(day(3), day(0), day(1), day(5)), true, day(3)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := finished(tt.state, lag, tt.given)
			if !got.CompleteTo.Equal(tt.want) || !got.Window.IsZero() || got.Cursor != "" {
				t.Errorf("%+v, want complete to %s and nothing under way", got, tt.want)
			}
		})
	}
	a, b := sources.List{Kind: "refund"}, sources.List{Kind: "charge"}
	states := map[sources.List]ledger.ListState{a: {CompleteTo: day(3)}, b: {CompleteTo: day(2)}}
	if got := lastComplete([]sources.List{a, b}, states); !got.Equal(day(2)) {
		t.Errorf("of two lists: %s, want the earlier point", got)
	}
	if got := lastComplete([]sources.List{a, b, {Kind: "payout"}}, states); !got.IsZero() {
		t.Errorf("with a list that was never read: %s, want none", got)
	}
}
