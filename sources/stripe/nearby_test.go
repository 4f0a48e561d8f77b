package stripe_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// After an outage a crowd asks about what lies hours back, under everything made since. It
// is found in the pages of its own time; what is not found there is asked for singly.
func TestACrowdOfLongAgoIsFoundInThePagesOfItsTime(t *testing.T) {
	t.Parallel()
	const n, page = 200, 10
	f := newFake(t)
	var batch []sources.Question
	lost := map[string]bool{"op-7": true, "op-150": true} // were never made
	late := "op-50"                                       // was made minutes after it was sent
	for i := range n {
		f.Add(time.Second)
		op, charge := fmt.Sprint("op-", i), fmt.Sprint("ch_", i)
		q := question(op, f.Now().Add(-recon.ClockSkew))
		q.Parent = charge
		batch = append(batch, q)
		if !lost[op] && op != late {
			f.refund(t, stripetest.Refund{Charge: charge}, op)
		}
	}
	f.Add(time.Minute)
	f.refund(t, stripetest.Refund{Charge: "ch_50"}, late)
	for i := range n { // what others did since
		f.Add(time.Minute)
		f.refund(t, stripetest.Refund{Charge: fmt.Sprint("ch_since_", i)}, fmt.Sprint("op-since-", i))
	}
	before := len(f.Calls())
	ans := f.asks(t, open(t, f.settings(), stripe.Options{PageSize: page}), batch...)
	if calls, most := len(f.Calls())-before, n/page+len(lost)+6; calls > most {
		t.Errorf("%d requests, want at most %d", calls, most)
	}
	found := map[string]bool{}
	for _, e := range ans.Effects {
		found[e.Reference] = true
	}
	alone := map[string]bool{} // what was asked for singly
	for _, l := range ans.Looks {
		alone[l.Parent] = true
	}
	for _, q := range batch {
		op := string(q.Operation)
		if found[op] == lost[op] {
			t.Errorf("%s: found %t", op, found[op])
		}
		if lost[op] != alone[q.Parent] && op != late {
			t.Errorf("%s: asked for singly %t", op, alone[q.Parent])
		}
	}
}
