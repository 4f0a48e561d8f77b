package ledger_test

import (
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestACaseBringsWhatGaveItsSurplusBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.seed("op-1")
	charge := func(id string) recon.Effect {
		e := refund(o, id)
		e.Kind = "charge"
		return e
	}
	back := refund(recon.Operation{ID: "nobody", SentAt: t0, Money: o.Money, Parent: "ch_2"}, "re_1")
	back.OtherParents = nil
	b := ledger.Batch{Hold: w.hold(), Now: t0, Effects: []recon.Effect{charge("ch_1"), charge("ch_2"), back}, Versions: map[recon.OperationID]int64{o.ID: 1}}
	d := stay(o, t0.Add(time.Minute))
	for _, id := range []string{"ch_1", "ch_2"} {
		d.Links = append(d.Links, recon.Match{Operation: o.ID, Effect: charge(id).Identity(), Basis: recon.OnReference, Certainty: recon.Proof, Role: recon.Main})
	}
	b.Decisions = []recon.Decision{d}
	w.record(b)
	got := w.due(t0.Add(time.Hour), 10)[0].Effects
	if len(got) != 3 || got[2].ID != "re_1" {
		t.Errorf("effects %+v", got)
	}
}
