package stripe_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// A person's question may come while a sweep asks; the race detector holds the rest.
func TestASweepAndAPersonMayAskAtOnce(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	w := recon.Window{From: f.Now()}
	for i := range 30 {
		f.refund(t, stripetest.Refund{}, fmt.Sprint("op-", i))
		f.Add(time.Second)
	}
	w.To = f.Now()
	// Search and charges are refused, so that there is something to learn.
	f.Script(stripetest.Fault{Kind: stripetest.Forbidden, Times: stripetest.Always, Match: func(c stripetest.Call) bool {
		return c.Query.Has("expand[0]") || c.Query.Has("query")
	}})
	src := open(t, f.settings(), stripe.Options{PageSize: 2})
	intent := question("op-1", w.From)
	intent.Kind = "payment_intent"
	ask := func(ctx context.Context) error {
		ans, err := src.Ask(ctx, []sources.Question{question("op-0", w.From), intent}, f.Now)
		if err == nil && len(ans.Effects) != 30 {
			return fmt.Errorf("Ask found %d effects, want 30", len(ans.Effects))
		}
		return err
	}
	page := func(ctx context.Context) error {
		p, err := src.Page(ctx, refundsLive, w, "", f.Now)
		if err == nil && len(p.Effects) != 2 {
			return fmt.Errorf("the page holds %d effects, want 2: %s", len(p.Effects), p.Look.Detail)
		}
		return err
	}
	var wait sync.WaitGroup
	faults := make(chan error, 12)
	for range 4 {
		for _, do := range []func(context.Context) error{ask, page, src.Probe} {
			wait.Go(func() { faults <- do(t.Context()) })
		}
	}
	wait.Wait()
	close(faults)
	var all []error
	for err := range faults {
		all = append(all, err)
	}
	if err := errors.Join(all...); err != nil {
		t.Error(err)
	}
}
