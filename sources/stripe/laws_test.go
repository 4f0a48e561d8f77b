package stripe_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// TestSilenceNeverLies: whatever lies where, whatever is asked together, and wherever
// the provider breaks, an effect that a strong look was silent about does not exist.
func TestSilenceNeverLies(t *testing.T) {
	t.Parallel()
	kinds := []stripetest.FaultKind{stripetest.ServerError, stripetest.RateLimited, stripetest.Truncated, stripetest.EmptyObject, stripetest.Forbidden, stripetest.BadRequest, stripetest.Closed}
	rapid.Check(t, func(rt *rapid.T) {
		f := newFake(t)
		defer f.Close()
		begin := f.Now()
		n := rapid.IntRange(0, 25).Draw(rt, "effects")
		made := map[string]string{} // by operation
		for i := range n {
			f.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 7, 600, 7200}).Draw(rt, "gap")) * time.Second)
			op := fmt.Sprint("op-", i)
			made[op] = f.refund(t, stripetest.Refund{Charge: fmt.Sprint("ch_", i%5)}, op)
		}
		f.Add(time.Duration(rapid.IntRange(0, 3).Draw(rt, "wait")) * time.Second)
		var batch []sources.Question
		for i := range rapid.IntRange(1, 12).Draw(rt, "questions") {
			op := fmt.Sprint("op-", rapid.IntRange(0, n+3).Draw(rt, "op"))
			q := question(op, begin.Add(-time.Duration(i)*time.Second))
			for _, r := range f.Refunds() {
				if r.ID == made[op] {
					q.From = r.Created.Add(-time.Duration(rapid.IntRange(0, 300).Draw(rt, "skew")) * time.Second)
					if rapid.Bool().Draw(rt, "parent") {
						q.Parent = r.Charge
					}
				}
			}
			if rapid.Bool().Draw(rt, "id") {
				q.EffectID = made[op]
			}
			batch = append(batch, q)
		}
		if rapid.Bool().Draw(rt, "breaks") {
			f.Script(stripetest.Fault{Kind: rapid.SampledFrom(kinds).Draw(rt, "fault"), Param: "created",
				Nth: rapid.IntRange(1, 10).Draw(rt, "nth"), Times: rapid.SampledFrom([]int{1, 2, stripetest.Always}).Draw(rt, "times")})
		}
		src := open(t, f.settings(), stripe.Options{PageSize: rapid.IntRange(1, 8).Draw(rt, "page")})
		ans, err := src.Ask(context.Background(), batch, f.Now)
		if err != nil {
			rt.Fatal(err)
		}
		seen := map[string]bool{}
		for _, e := range ans.Effects {
			seen[e.ID] = true
		}
		for _, q := range batch {
			o := recon.Operation{ID: q.Operation, EffectID: q.EffectID, Parent: q.Parent, Account: q.Account, Mode: q.Mode, SentAt: q.From.Add(recon.ClockSkew)}
			covered := false
			for _, l := range ans.Looks {
				if !l.Covers(o, q.Kind) {
					continue
				}
				covered = true
				if id := made[string(q.Operation)]; l.Outcome != recon.Blind && id != "" && !seen[id] {
					rt.Fatalf("look %+v covers %s and is silent about %s", l, q.Operation, id)
				}
			}
			if !covered {
				rt.Fatalf("no look covers %+v: %+v", q, ans.Looks)
			}
		}
		if f.Writes() != 0 {
			rt.Fatal("the source wrote")
		}
	})
}
