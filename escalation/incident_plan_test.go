package escalation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestWhichCrowdsAreToldAsOne(t *testing.T) {
	t.Parallel()
	crowd := func(k recon.FindingKind, n int) recon.Crowd {
		return recon.Crowd{Source: "stripe-main", Kind: k, Count: n}
	}
	tests := []struct {
		name   string
		crowd  recon.Crowd
		as     recon.FindingKind // empty: each for itself
		reason Reason
	}{
		{"nine", crowd(recon.FindMismatch, 9), "", ""},
		{"ten", crowd(recon.FindMismatch, 10), recon.FindMismatch, Together},
		{"one, while its kind is taken in", recon.Crowd{Source: "stripe-main", Kind: recon.FindMismatch, Count: 1, Incident: "i", Joined: now.Add(-9 * time.Minute)}, recon.FindMismatch, Joins},
		{"one, long after the last one joined", recon.Crowd{Source: "stripe-main", Kind: recon.FindMismatch, Count: 1, Incident: "i", Joined: now.Add(-10 * time.Minute)}, "", ""},
		{"a source that cannot be asked", crowd(recon.FindBlind, 1), recon.FindBlind, SourceDown},
		{"one that waits for it", recon.Crowd{Source: "stripe-main", Kind: recon.FindUnresolved, Count: 1, Down: true}, recon.FindBlind, SourceDown},
		{"one that waits while it is caught up", recon.Crowd{Source: "stripe-main", Kind: recon.FindUnresolved, Count: 1, DownIncident: "i"}, recon.FindBlind, SourceDown},
		{"what was found stands for itself, also while the source is down", recon.Crowd{Source: "stripe-main", Kind: recon.FindDuplicate, Count: 1, Down: true}, "", ""},
	}
	for _, tt := range tests {
		var want []recon.Fold
		if tt.as != "" {
			want = []recon.Fold{{Source: "stripe-main", Kind: tt.crowd.Kind, As: tt.as, Reason: string(tt.reason)}}
		}
		if d := cmp.Diff(want, Folds([]recon.Crowd{tt.crowd}, Policy{}, now)); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
	if got := Folds([]recon.Crowd{crowd(recon.FindMismatch, 3)}, Policy{FoldAt: 3}, now); len(got) != 1 {
		t.Errorf("with a limit of three: %+v", got)
	}
}

func TestAnIncidentIsPlannedWithAReason(t *testing.T) {
	t.Parallel()
	opened := now.Add(-30 * time.Minute)
	crowd := recon.Incident{ID: "i", Source: "stripe-main", Kind: recon.FindMismatch, OpenedAt: opened, JoinedAt: opened, Total: 20, Open: 20, Oldest: opened.Add(-15 * time.Minute), Actions: []string{"refund.create"}}
	outage := crowd
	outage.Kind, outage.DownSince, outage.Fault = recon.FindBlind, opened.Add(-15*time.Minute), "away"
	first := []recon.ToldStep{{Step: "after 15 min", Destination: "recon"}}
	change := func(i recon.Incident, f func(*recon.Incident)) recon.Incident { f(&i); return i }
	shown := func(i recon.Incident) recon.Incident {
		return change(i, func(i *recon.Incident) { i.Told, i.Shown = first, shows(*i, false, i.UpSince) })
	}
	tests := []struct {
		name       string
		incident   recon.Incident
		told       string
		full, over bool
		reason     Reason
	}{
		{"first told", crowd, "after 15 min>recon", true, false, Changed},
		{"told, nothing changed", shown(crowd), "", true, false, Changed},
		{"one ended", change(shown(crowd), func(i *recon.Incident) { i.Open = 19 }), "edit>recon", true, false, Changed},
		{"an hour old", change(shown(crowd), func(i *recon.Incident) { i.Oldest = now.Add(-time.Hour); i.OpenedAt = now.Add(-50 * time.Minute) }), "after 1 h>recon@oncall, edit>recon", true, false, Changed},
		{"still taken in", change(crowd, func(i *recon.Incident) { i.JoinedAt = now.Add(-time.Minute) }), "after 15 min>recon", false, false, Changed},
		{"few are left", change(shown(crowd), func(i *recon.Incident) { i.Open = 3 }), "edit>recon", true, true, Few},
		{"few, and more may come", change(shown(crowd), func(i *recon.Incident) { i.Open, i.JoinedAt = 3, now }), "edit>recon", false, false, Changed},
		{"all ended", change(shown(crowd), func(i *recon.Incident) { i.Open = 0 }), "edit>recon", true, true, Over},
		{"all ended before anybody was told", change(crowd, func(i *recon.Incident) { i.Open = 0 }), "", true, true, Over},
		{"a source away", outage, "after 15 min>recon", false, false, SourceDown},
		{"away for a moment", change(outage, func(i *recon.Incident) { i.DownSince, i.Fault = now.Add(-2*time.Minute), "" }), "", false, false, SourceDown},
		{"away for longer than that", change(outage, func(i *recon.Incident) { i.DownSince, i.Fault = now.Add(-3*time.Minute), "" }), "after 15 min>recon", false, false, SourceDown},
		{"it is back, before anybody was told", change(outage, func(i *recon.Incident) { i.DownSince = time.Time{} }), "", true, true, SourceBack},
		{"it is back", change(shown(outage), func(i *recon.Incident) { i.DownSince = time.Time{} }), "edit>recon", false, false, SourceBack},
		{"back for ten minutes", change(shown(outage), func(i *recon.Incident) { i.DownSince, i.UpSince = time.Time{}, now.Add(-10*time.Minute) }), "edit>recon", true, true, SourceBack},
		{"back, and nothing waits", change(shown(outage), func(i *recon.Incident) { i.DownSince, i.Open = time.Time{}, 0 }), "edit>recon", true, true, SourceBack},
	}
	for _, tt := range tests {
		got, _ := PlanIncident(tt.incident, documented(), now)
		if told(got.Notices) != tt.told || got.Full != tt.full || got.Over != tt.over || got.Reason != string(tt.reason) {
			t.Errorf("%s: got %q, full %v, over %v, %s\nwant %q, full %v, over %v, %s", tt.name,
				told(got.Notices), got.Full, got.Over, got.Reason, tt.told, tt.full, tt.over, tt.reason)
		}
		if got.Next.IsZero() != tt.over || !tt.over && !got.Next.After(now) {
			t.Errorf("%s: planned again at %s", tt.name, got.Next)
		}
	}
}

// Laws of incidents: no step is told twice, however often it is planned; its messages are
// asked to change only when they would show something else; one that is over ends.
func TestAnIncidentRepeatsNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawPolicy(rt)
		i := recon.Incident{ID: "i", Kind: rapid.SampledFrom([]recon.FindingKind{recon.FindBlind, recon.FindMismatch}).Draw(rt, "kind"), OpenedAt: now, JoinedAt: now, Oldest: now, Total: 30, Open: 30}
		if i.Kind == recon.FindBlind {
			i.DownSince = now.Add(-20 * time.Minute)
		}
		at := now
		for range 40 {
			got, up := PlanIncident(i, p, at)
			for _, n := range got.Notices {
				s := recon.ToldStep{Step: n.Step, Destination: n.Destination}
				if n.Act == recon.ActEdit {
					if got.Shown == i.Shown {
						rt.Fatalf("asked to change, and it would show the same")
					}
					continue
				}
				for _, o := range i.Told {
					if o == s {
						rt.Fatalf("told twice: %+v", s)
					}
				}
				i.Told = append(i.Told, s)
			}
			i.Shown, i.UpSince = got.Shown, up
			if got.Over {
				return
			}
			if !got.Next.After(at) {
				rt.Fatalf("planned again at %s, which is not after %s", got.Next, at)
			}
			at = got.Next.Add(time.Duration(rapid.IntRange(0, 90).Draw(rt, "late")) * time.Minute)
			i.Open = rapid.IntRange(0, i.Open).Draw(rt, "open")
			if rapid.IntRange(0, 3).Draw(rt, "back") == 0 {
				i.DownSince = time.Time{}
			}
		}
	})
}
