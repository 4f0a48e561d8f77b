package ledger_test

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// What a person's look brings is merged as what a sweep's look brings: neither takes back
// what a read is silent about, and neither keeps what it contradicts.
func TestAPersonsLookIsMergedAsASweepsIs(t *testing.T) {
	t.Parallel()
	fee, net, total := int64(30), int64(1470), int64(1500)
	known := recon.Effect{ID: "re_B1", Source: source, System: "stripe", Kind: "refund", Status: recon.Completed, Parent: "ch_B", OtherParents: []string{"pi_B"},
		Money: recon.Money{Minor: 1500, Currency: "EUR"}, CreatedAt: t0.Add(-time.Hour), Account: "acct_1", Mode: "live", CreatedBy: "support",
		Key: "k-1", Fee: &fee, Net: &net, Settlement: recon.Money{Minor: 1600, Currency: "USD"}, NaturalReference: "INV-1", ParentTotal: &total, Target: "order:1"}
	reads := map[string]func(*recon.Effect){
		"silent": func(e *recon.Effect) { e.Key, e.Fee, e.Net, e.Settlement = "", nil, nil, recon.Money{} },
		"another amount": func(e *recon.Effect) {
			e.Key, e.Fee, e.Net, e.Settlement, e.Money.Minor = "", nil, nil, recon.Money{}, 1400
		},
		"bare": func(e *recon.Effect) {
			e.Key, e.CreatedBy, e.NaturalReference, e.Target, e.ParentTotal, e.OtherParents = "", "", "", "", nil, nil
		},
		"failed": func(e *recon.Effect) {
			e.Key, e.Status, e.FailureReason, e.UpdatedAt = "", recon.EffectFailed, "lost", t0
		},
	}
	for name, change := range reads {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := known
			change(&read)
			look := recon.Look{ID: "look-1", Source: source, Method: recon.ByID, Outcome: recon.Found, Kind: "refund", Account: "acct_1", Mode: "live",
				EffectID: read.ID, At: t0, Complete: true, Found: []recon.EffectIdentity{read.Identity()}}
			bySweep, byPerson := newDesk(t, nil), newDesk(t, nil)
			bySweep.raise(recon.FindOrphan, nil, known)
			bySweep.record(ledger.Batch{Now: t0, Looks: []recon.Look{look}, Effects: []recon.Effect{read}})
			f := byPerson.raise(recon.FindOrphan, nil, known)
			byPerson.do("ana", ledger.PersonAction{Finding: f.ID, Verb: recon.Adopt, Effect: read.ID, Seen: &ledger.Seen{Look: look, Effect: &read}})
			stored := func(w *world) recon.Effect {
				all, err := w.led.EffectsByID(t.Context(), read.ID)
				if err != nil || len(all) != 1 {
					t.Fatalf("%d effects %s: %v", len(all), read.ID, err)
				}
				all[0].Owner = "" // a person may have adopted it
				return all[0]
			}
			diff(t, "the effect", stored(bySweep), stored(byPerson))
		})
	}
}
