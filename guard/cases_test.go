package guard_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	stripego "github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/attempt"
	"github.com/seed-1c4f4dc2/reconciler/guard"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// guarded is a guard in this process, whose waits move the simulated clock.
func (s *shop) guarded() *guard.Guard {
	g := &guard.Guard{Ledger: s.ledger, Holder: "test"}
	guard.SetPause(g, func(_ context.Context, d time.Duration) error { s.advance(d); return nil })
	return g
}

func TestB42_AKeyInUseIsNoFailure(t *testing.T) {
	t.Parallel()
	s := newShop(t, recon.RepeatSameKey)
	// The first answer is lost while the provider still works on it.
	s.srv.Script(stripetest.Fault{Kind: stripetest.Closed, Method: "POST", Delay: 90 * time.Second})
	a, err := s.guarded().Do(t.Context(), guard.Call{Intent: intent("1"), Send: refund(s.srv.URL())})
	if err != nil || a.Verdict != guard.UnknownReconciliationRequired || a.Code != "idempotency_key_in_use" {
		t.Errorf("answer %+v, %v", a, err)
	}
	s.check(s.settle(), recon.Succeeded, 1)
}

func TestB67_WhatOurSideRefusesIsNeverSent(t *testing.T) {
	t.Parallel()
	s := newShop(t, recon.RepeatSameKey)
	client := stripego.NewClient("sk_live_TESTONLY", stripego.WithBackends(stripego.NewBackendsWithConfig(&stripego.BackendConfig{
		URL: stripego.String(s.srv.URL()), MaxNetworkRetries: stripego.Int64(0), HTTPClient: &http.Client{Transport: &attempt.Transport{}},
		LeveledLogger: &stripego.LeveledLogger{}})))
	send := func(ctx context.Context, a guard.Attempt) recon.AttemptReport {
		ctx, sent := stripe.Begin(ctx, stripe.Sending{Key: a.Key, Marker: a.Marker.Name, Reference: a.Marker.Value})
		p := &stripego.RefundCreateParams{Charge: stripego.String("ch_1")}
		p.SetIdempotencyKey(a.Key)
		p.AddMetadata(a.Marker.Name, a.Marker.Value)
		p.AddMetadata(strings.Repeat("product title ", 3), "x")
		_, _ = client.V1Refunds.Create(ctx, p)
		return sent.Report()
	}
	a, err := s.guarded().Do(t.Context(), guard.Call{Intent: intent("1"), Send: send})
	if err != nil || a.Verdict != guard.FailedSafeToRetry || a.State != recon.Pending || a.Code != "refused_here" {
		t.Errorf("answer %+v, %v", a, err)
	}
	s.check(s.settle(), recon.Failed, 0)
	if n := s.srv.Writes(); n != 0 {
		t.Errorf("%d writes reached the provider", n)
	}
}

func TestAServerErrorThatIsStoredIsFoundOutAndNotRepeated(t *testing.T) {
	t.Parallel()
	for name, executed := range map[string]bool{"the work was done": true, "the work was not done": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, recon.RepeatSameKey)
			s.srv.Script(stripetest.Fault{Kind: stripetest.ServerError, Method: "POST", Executed: executed})
			a, err := s.guarded().Do(t.Context(), guard.Call{Intent: intent("1"), Send: refund(s.srv.URL())})
			if err != nil || a.Verdict != guard.UnknownReconciliationRequired || a.Attempts != 1 {
				t.Errorf("answer %+v, %v", a, err)
			}
			want, refunds := recon.ManualReview, 0
			if executed {
				want, refunds = recon.Succeeded, 1
			}
			s.check(s.settle(), want, refunds)
		})
	}
}

func TestClocksThatDifferByMinutesDoNotMoveTheDeadline(t *testing.T) {
	t.Parallel()
	for name, skew := range map[string]time.Duration{"the database is behind": -7 * time.Minute, "the database is ahead": 7 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now().Add(skew)
			l, err := ledger.Open(t.Context(), ledger.Options{URL: pgtest.URL(t, pgtest.SimulatedTime(now)), MaxConns: 1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(l.Close)
			if _, err := l.ApplyPolicies(t.Context(), []recon.Policy{repeatable()}, now); err != nil {
				t.Fatal(err)
			}
			g := &guard.Guard{Ledger: l, Holder: "test"}
			began := time.Now()
			a, err := g.Do(t.Context(), guard.Call{Intent: intent("1"), Send: func(ctx context.Context, _ guard.Attempt) recon.AttemptReport {
				end, ok := ctx.Deadline()
				if !ok || end.Before(began.Add(50*time.Second)) || end.After(time.Now().Add(time.Minute)) {
					t.Errorf("the deadline is %s from now, want just below a minute", time.Until(end))
				}
				return done
			}})
			if err != nil || a.Verdict != guard.Succeeded {
				t.Errorf("answer %+v, %v", a, err)
			}
		})
	}
}
