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

// BenchmarkAskWindow asks about 10,000 refunds of a day at once. It reports requests
// beside the least that can be: the effects divided by the page.
func BenchmarkAskWindow(b *testing.B) {
	const n = 10_000
	c := newClock()
	srv, err := stripetest.Start(stripetest.Options{Now: c.Now, Seed: 1, Accounts: []stripetest.Account{{ID: "acct_1", Mode: "live", Key: liveKey}}})
	if err != nil {
		b.Fatal(err)
	}
	defer srv.Close()
	begin := c.Now()
	c.Add(24 * time.Hour)
	var batch []sources.Question
	for i := range n {
		at := begin.Add(time.Duration(i) * 8 * time.Second)
		op := fmt.Sprint("op-", i)
		if _, err := srv.AddRefund(stripetest.Refund{Account: "acct_1", Mode: "live", Charge: fmt.Sprint("ch_", i), Amount: 100, Created: at, Metadata: map[string]string{marker: op}}); err != nil {
			b.Fatal(err)
		}
		q := question(op, at.Add(-time.Minute))
		q.Parent = fmt.Sprint("ch_", i)
		batch = append(batch, q)
	}
	set := stripe.Settings{Account: "acct_1", Mode: "live", APIURL: srv.URL(), APIKey: recon.NewSecret(liveKey), Marker: marker, PerSecond: 1_000_000}
	calls := 0
	for b.Loop() {
		src, err := stripe.New("stripe-main", set, stripe.Options{})
		if err != nil {
			b.Fatal(err)
		}
		ans, err := src.Ask(b.Context(), batch, c.Now)
		if err != nil || len(ans.Effects) != n {
			b.Fatalf("%d effects, %v", len(ans.Effects), err)
		}
		for _, l := range ans.Looks {
			calls += l.Calls
		}
	}
	b.ReportMetric(float64(calls)/float64(b.N)/(n/100), "calls/least")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/effect")
}
