package recon_test

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestAWindowHoldsItsStartAndNotItsEnd(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	w := recon.Window{From: from, To: from.Add(time.Hour)}
	for _, tt := range []struct {
		at   time.Duration
		want bool
	}{
		{-1, false}, {0, true}, {1, true}, {time.Hour - 1, true}, {time.Hour, false}, {time.Hour + 1, false},
	} {
		if got := w.Contains(from.Add(tt.at)); got != tt.want {
			t.Errorf("%s after the start: %t, want %t", tt.at, got, tt.want)
		}
	}
}

// TestALookCoversOnlyThePlaceAndTheSubjectItAskedAbout walks every part of a look.
func TestALookCoversOnlyThePlaceAndTheSubjectItAskedAbout(t *testing.T) {
	t.Parallel()
	sent := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	op := recon.Operation{
		ID: "op_1", Account: "acct_1", Mode: "live", EffectID: "re_1", Key: "k_1", Parent: "ch_1", Group: "g_1", CreatedAt: sent, SentAt: sent,
	}
	first := op.FirstPossible()
	look := func(change func(*recon.Look)) recon.Look {
		l := recon.Look{Kind: "refund", Account: "acct_1", Mode: "live"}
		change(&l)
		return l
	}
	window := func(from, to time.Duration) recon.Look {
		return look(func(l *recon.Look) { l.Window = recon.Window{From: first.Add(from), To: first.Add(to)} })
	}
	for name, tt := range map[string]struct {
		look recon.Look
		want bool
	}{
		"its effect":                     {look(func(l *recon.Look) { l.EffectID = "re_1" }), true},
		"another effect":                 {look(func(l *recon.Look) { l.EffectID = "re_2" }), false},
		"its key":                        {look(func(l *recon.Look) { l.Key = "k_1" }), true},
		"another key":                    {look(func(l *recon.Look) { l.Key = "k_2" }), false},
		"its reference":                  {look(func(l *recon.Look) { l.Reference = "op_1" }), true},
		"its group's reference":          {look(func(l *recon.Look) { l.Reference = "g_1" }), true},
		"another reference":              {look(func(l *recon.Look) { l.Reference = "op_2" }), false},
		"its parent":                     {look(func(l *recon.Look) { l.Parent = "ch_1" }), true},
		"another parent":                 {look(func(l *recon.Look) { l.Parent = "ch_2" }), false},
		"a window from its first moment": {window(0, time.Hour), true},
		"a window that begins later":     {window(1, time.Hour), false},
		"a window that ends then":        {window(-time.Hour, 0), false},
		"a window that just holds it":    {window(-time.Hour, 1), true},
		"another kind":                   {look(func(l *recon.Look) { l.EffectID, l.Kind = "re_1", "charge" }), false},
		"another account":                {look(func(l *recon.Look) { l.EffectID, l.Account = "re_1", "acct_2" }), false},
		"another mode":                   {look(func(l *recon.Look) { l.EffectID, l.Mode = "re_1", "test" }), false},
		"no account":                     {look(func(l *recon.Look) { l.EffectID, l.Account = "re_1", "" }), false},
	} {
		if got := tt.look.Covers(op, "refund"); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
	unplaced := op
	unplaced.Account = ""
	if l := look(func(l *recon.Look) { l.EffectID, l.Account = "re_1", "" }); l.Covers(unplaced, "refund") {
		t.Error("an operation whose account is not known is covered")
	}
}
