package sweep

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/internal/breaker"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe"
	"github.com/seed-1c4f4dc2/reconciler/sources/stripe/stripetest"
)

// breaking is a process of its own beside the stand: its ledger and its client go through
// the breaker.
type breaking struct {
	ledger *ledger.Ledger
	client *stripe.Source
}

func (s *stand) breaking(b *breaker.Breaker, changes ...func(*stripe.Settings, *stripe.Options)) (breaking, error) {
	s.Helper()
	l, err := ledger.Open(s.Context(), ledger.Options{URL: s.pool.Config().ConnString(), Tracer: b})
	if err != nil {
		return breaking{}, err
	}
	s.Cleanup(l.Close)
	client := s.client(append(changes, func(_ *stripe.Settings, o *stripe.Options) { o.Transport = b.Transport(http.DefaultTransport) })...)
	return breaking{l, client}, nil
}

// over is what time does for what a process left behind when it died: its holds and its
// places are given to others, and what it took of the inbox comes back.
func (s *stand) over() {
	s.Helper()
	s.exec(`UPDATE reconciler.source_state SET lease_until = $1 WHERE holder IS NOT NULL`, s.now())
	s.exec(`UPDATE reconciler.runs SET lease_until = $1 WHERE finished_at IS NULL`, s.now())
	s.exec(`UPDATE reconciler.events SET next_try = $1 WHERE state IN ('new', 'waiting')`, s.now())
	s.pass(10 * time.Minute) // and a source that did not answer is asked again
}

// conclusions are the essence without what a second try adds: looks, and what was told of
// them.
func (s *stand) conclusions() []string {
	return slices.DeleteFunc(s.essence(), func(row string) bool {
		return strings.HasPrefix(row, "check ") || strings.HasPrefix(row, "journal ")
	})
}

func TestASweepThatBreaksOffAnywhereEndsInTheSameLedger(t *testing.T) {
	t.Parallel()
	breaker.Experiment[*stand]{
		New: func(t *testing.T) *stand {
			s := newStand(t)
			s.busy()
			return s
		},
		Do: func(ctx context.Context, s *stand, b *breaker.Breaker) error {
			p, err := s.breaking(b)
			if err != nil {
				return err
			}
			mine := *s.sweep
			mine.Ledger, mine.Source = p.ledger, p.client
			_, err = mine.Run(ctx, Options{Now: s.now})
			return err
		},
		Again: func(s *stand) { s.over(); s.run() },
		Said:  (*stand).conclusions,
	}.Everywhere(t)
}

func TestAnAuditThatBreaksOffAnywhereEndsInTheSameLedger(t *testing.T) {
	t.Parallel()
	breaker.Experiment[*stand]{
		New: func(t *testing.T) *stand {
			s := newStand(t)
			s.mixed()
			return s
		},
		Do: func(ctx context.Context, s *stand, b *breaker.Breaker) error {
			p, err := s.breaking(b)
			if err != nil {
				return err
			}
			mine := s.auditor()
			sweep := *mine.Sweep
			sweep.Ledger, sweep.Source = p.ledger, p.client
			mine.Sweep, mine.Accounts = &sweep, p.ledger
			_, err = mine.Run(ctx, AuditOptions{Now: s.now, Window: s.since()})
			return err
		},
		Again: func(s *stand) { s.over(); s.audit(s.since()) },
		Said: func(s *stand) []string {
			return append(s.conclusions(), said(s.audit(s.since()))...)
		},
	}.Everywhere(t)
}

// taken is what an intake comes to. In how many goes it judges the events of an operation
// is its own affair: one that decides nothing yet leaves an entry only where it is judged
// before the one that does.
func (h *hooked) taken() []string {
	h.Helper()
	var list []string
	for _, line := range h.taking() {
		if words := strings.Fields(line); words[0] == "journal" {
			if words[3] == "seen" {
				continue
			}
			line = "journal " + words[1] + " " + words[3]
		}
		list = append(list, line)
	}
	return list
}

func TestAnIntakeThatBreaksOffAnywhereEndsInTheSameLedger(t *testing.T) {
	t.Parallel()
	breaker.Experiment[*hooked]{
		New: func(t *testing.T) *hooked {
			h := newHooked(t)
			h.told()
			return h
		},
		Do: func(ctx context.Context, h *hooked, b *breaker.Breaker) error {
			p, err := h.breaking(b, receives)
			if err != nil {
				return err
			}
			mine := *h.intake
			mine.Ledger, mine.Inbox, mine.Sources = p.ledger, inbox.Open(p.ledger), []IntakeSource{p.client}
			_, err = mine.Run(ctx, h.now)
			return err
		},
		Again: func(h *hooked) { h.over(); h.take() },
		Said:  (*hooked).taken,
	}.Everywhere(t)
}

// An effect that is in doubt is read at the provider, and the sweep concludes from that.
func TestAReadingThatBreaksOffAnywhereIsDoneAgain(t *testing.T) {
	t.Parallel()
	breaker.Experiment[*hooked]{
		New: func(t *testing.T) *hooked {
			h := newHooked(t)
			h.down = true
			i := refund(1)
			r := h.happen(i, h.lose(i))
			h.post2(h.event("evt_1", "refund.created", refundObject(i, r.ID, "succeeded", r.Created)))
			h.take()
			if err := h.stripe.TurnRefund(r, stripetest.Turn{Status: "failed", Reason: "declined"}); err != nil {
				t.Fatal(err)
			}
			h.exec(`UPDATE reconciler.effects SET needs_read = true`)
			h.pass(time.Minute)
			return h
		},
		Do: func(ctx context.Context, h *hooked, b *breaker.Breaker) error {
			p, err := h.breaking(b, receives)
			if err != nil {
				return err
			}
			mine := *h.sweep
			mine.Ledger, mine.Source = p.ledger, p.client
			_, err = mine.Run(ctx, Options{Now: h.now})
			return err
		},
		Again: func(h *hooked) {
			h.over()
			h.run()
			h.wantState(refund(1), recon.ManualReview)
		},
		Said: func(h *hooked) []string { return h.conclusions() },
	}.Everywhere(t)
}
