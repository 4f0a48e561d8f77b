package sweep

import (
	"context"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/inbox"
	"github.com/seed-1c4f4dc2/reconciler/internal/breaker"
	"github.com/seed-1c4f4dc2/reconciler/internal/pgtest"
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

// sweep is the stand's, with a ledger and a source that break.
func (p breaking) sweep(s *stand) *Sweep {
	mine := *s.sweep
	mine.Ledger, mine.Source = p.ledger, p.client
	return &mine
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

// begins notes that the world is made, and that work begins that may break off.
func (s *stand) begins() { s.began = s.now() }

// tries are what work leaves that was begun twice, and differs from work that was begun once.
var tries = []pgtest.Exception{
	{Table: "runs", Columns: []string{"counts", "lease_until"}, Rows: "outcome <> 'done'", Once: true, Why: "each try is a run, and counts what it did itself"},
	{
		Table: "looks", Columns: []string{"calls", "found", "parent", "request_id", "window_from", "window_to"},
		Rows: "outcome = 'blind' OR method = 'stored'", Once: true,
		Why: "what broke off is told as blind, and it is asked again, for what is left and by what is stored",
	},
	{Table: "coverage", Columns: []string{"window_from", "window_to"}, Once: true, Why: "as the looks"},
	{Table: "journal", Text: regexp.MustCompile(`\\"method\\":\\"(list|stored)\\",\\"outcome\\":\\"found\\",`), Why: "only the batch that asked for a list names it; the look itself is compared"},
	{Table: "source_state", Columns: []string{"token"}, Why: "counts how often the source was held"},
}

// left is all that the ledger holds, but for the exceptions.
func (s *stand) left(except ...pgtest.Exception) []string {
	s.Helper()
	return pgtest.Rows{DB: s.pool, Began: s.began, Now: s.now(), Except: append(except, tries...)}.Read(s.T)
}

func TestASweepThatBreaksOffAnywhereEndsInTheSameLedger(t *testing.T) {
	t.Parallel()
	breaker.Experiment[*stand]{
		New: func(t *testing.T) *stand {
			s := newStand(t)
			s.busy()
			s.begins()
			return s
		},
		Do: func(ctx context.Context, s *stand, b *breaker.Breaker) error {
			p, err := s.breaking(b)
			if err != nil {
				return err
			}
			_, err = p.sweep(s).Run(ctx, Options{Now: s.now})
			return err
		},
		Again: func(s *stand) { s.over(); s.run() },
		Said: func(s *stand) []string {
			return s.left(pgtest.Exception{Table: "checks", Columns: []string{"looks", "blinds"}, Why: "count the tries"})
		},
	}.Everywhere(t)
}

func TestAnAuditThatBreaksOffAnywhereEndsInTheSameLedger(t *testing.T) {
	t.Parallel()
	breaker.Experiment[*stand]{
		New: func(t *testing.T) *stand {
			s := newStand(t)
			s.mixed()
			s.begins()
			return s
		},
		Do: func(ctx context.Context, s *stand, b *breaker.Breaker) error {
			p, err := s.breaking(b)
			if err != nil {
				return err
			}
			mine := s.auditor()
			mine.Sweep, mine.Accounts = p.sweep(s), p.ledger
			_, err = mine.Run(ctx, AuditOptions{Now: s.now, Window: s.since()})
			return err
		},
		Again: func(s *stand) { s.over(); s.audit(s.since()) },
		Said: func(s *stand) []string {
			return append(s.left(), said(s.audit(s.since()))...)
		},
	}.Everywhere(t)
}

func TestAnIntakeThatBreaksOffAnywhereEndsInTheSameLedger(t *testing.T) {
	t.Parallel()
	breaker.Experiment[*hooked]{
		New: func(t *testing.T) *hooked {
			h := newHooked(t)
			h.told()
			h.begins()
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
		Said: func(h *hooked) []string {
			return h.left(
				pgtest.Exception{Table: "events", Columns: []string{"attempts"}, Why: "counts the tries"},
				pgtest.Exception{Table: "journal", Text: regexp.MustCompile(`\\"method\\":\\"(event|stored)\\",|\\"look_ids\\":\[[^]]*\],`), Why: "as the looks"},
				// An event that decides nothing yet leaves an entry only where it is judged before the
				// one that does, and in how many goes they are judged is the intake's own affair.
				pgtest.Exception{Table: "journal", Columns: []string{"seq"}, Rows: "kind = 'seen'", Once: true, Why: "goes"},
				pgtest.Exception{Table: "operations", Columns: []string{"version", "chain_seq"}, Why: "count the entries"},
			)
		},
	}.Everywhere(t)
}

// An effect that is in doubt is read at the provider, as is one that a closed operation knows and
// nobody has seen, and the sweep concludes from that.
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
			twice := refund(2)
			h.done(twice, h.happen(twice, "key-1").ID)
			again := h.happen(twice, "key-2")
			h.post2(h.event("evt_2", "refund.created", refundObject(twice, again.ID, "succeeded", again.Created)))
			h.take()
			h.exec(`UPDATE reconciler.effects SET needs_read = true WHERE id = $1`, r.ID)
			h.pass(time.Minute)
			h.begins()
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
			if found := h.findings(recon.FindDuplicate); len(found) != 1 {
				h.Errorf("told as duplicate: %+v", found)
			}
		},
		Said: func(h *hooked) []string {
			return h.left(pgtest.Exception{Table: "checks", Columns: []string{"looks"}, Why: "counts the tries"})
		},
	}.Everywhere(t)
}

// What was closed is looked at again: one of the effects has turned bad since.
func TestAReverificationThatBreaksOffAnywhereEndsInTheSameLedger(t *testing.T) {
	t.Parallel()
	breaker.Experiment[*stand]{
		New: func(t *testing.T) *stand {
			s := newStand(t)
			s.sweep.batch = 2
			for n := range 5 {
				made := s.happen(refund(n), s.lose(refund(n)))
				s.pass(5 * time.Minute)
				s.run()
				if n%2 == 0 {
					if err := s.stripe.TurnRefund(made, stripetest.Turn{Status: "failed", Reason: "lost_or_stolen_card"}); err != nil {
						t.Fatal(err)
					}
				}
			}
			s.pass(30 * time.Hour) // the first rung is a day, a fifth more or less
			s.begins()
			return s
		},
		Do: func(ctx context.Context, s *stand, b *breaker.Breaker) error {
			p, err := s.breaking(b)
			if err != nil {
				return err
			}
			_, err = p.sweep(s).Reverify(ctx, Options{Now: s.now})
			return err
		},
		Again: func(s *stand) {
			s.over()
			if _, err := s.sweep.Reverify(s.Context(), Options{Now: s.now}); err != nil {
				s.Fatal(err)
			}
			for n := range 5 {
				s.wantState(refund(n), []recon.State{recon.ManualReview, recon.Succeeded}[n%2])
			}
		},
		Said: func(s *stand) []string { return s.left() },
	}.Everywhere(t)
}

// What the provider tells in its feed, page by page, is what nobody delivered.
func TestAReadingOfTheFeedThatBreaksOffAnywhereEndsInTheSameLedger(t *testing.T) {
	t.Parallel()
	small := func(_ *stripe.Settings, o *stripe.Options) { o.PageSize = 2 }
	breaker.Experiment[*hooked]{
		New: func(t *testing.T) *hooked {
			h := newHooked(t)
			h.down = true
			for n := range 5 {
				h.happen(refund(n), h.lose(refund(n)))
			}
			h.pass(time.Second)
			h.begins()
			return h
		},
		Do: func(ctx context.Context, h *hooked, b *breaker.Breaker) error {
			p, err := h.breaking(b, receives, small)
			if err != nil {
				return err
			}
			_, err = (&Recovery{Inbox: inbox.Open(p.ledger), Source: p.client}).Run(ctx, h.now)
			return err
		},
		Again: func(h *hooked) {
			h.over()
			read, err := (&Recovery{Inbox: h.inbox, Source: h.client(receives, small)}).Run(h.Context(), h.now)
			if err != nil || len(read.Unseen) > 0 {
				h.Fatalf("%+v, %v", read, err)
			}
			h.take()
			for n := range 5 {
				h.wantState(refund(n), recon.Succeeded)
			}
		},
		Said: func(h *hooked) []string {
			named := regexp.MustCompile(`evt_[0-9A-Za-z]{24}`)
			return h.left(
				pgtest.Exception{Table: "events", Text: named, Why: "the fake names events by chance"},
				pgtest.Exception{Table: "blobs", Text: named, Why: "as the events"},
			)
		},
	}.Everywhere(t)
}
