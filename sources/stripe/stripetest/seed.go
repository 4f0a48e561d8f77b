package stripetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// AddCharge seeds a charge with any content. Account and Mode are needed; the rest
// has defaults: an id, now, usd, succeeded and captured whole. Events are made as of
// its time.
func (s *Server) AddCharge(c Charge) (Charge, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.seedPlace(&c)
	if err != nil {
		return Charge{}, err
	}
	s.fill(&c.ID, "ch_", &c.Currency, &c.Created)
	if c.Status == "" {
		c.Status, c.Captured = "succeeded", true
	}
	if c.Captured && c.AmountCaptured == 0 {
		c.AmountCaptured = c.Amount
	}
	made := c
	made.own()
	m := moment{at: c.Created, key: c.Key, requestID: c.RequestID}
	s.put(p, &made)
	if made.Captured && made.BalanceTransaction == "" {
		made.BalanceTransaction = s.move(p, &movement{Type: "charge", Source: made.ID, Amount: made.AmountCaptured, Currency: made.Currency, Created: made.Created})
	}
	s.emit(p, "charge."+made.Status, &made, m)
	return made, nil
}

// AddPaymentIntent seeds a payment intent with any content. Account and Mode are
// needed; by default it is made now, in usd, and has succeeded. Its charge is not made:
// seed one and name it in LatestCharge.
func (s *Server) AddPaymentIntent(i PaymentIntent) (PaymentIntent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.seedPlace(&i)
	if err != nil {
		return PaymentIntent{}, err
	}
	s.fill(&i.ID, "pi_", &i.Currency, &i.Created)
	if i.Status == "" {
		i.Status, i.AmountReceived = "succeeded", i.Amount
	}
	i.CaptureMethod = cmp.Or(i.CaptureMethod, "automatic")
	made := i
	made.own()
	m := moment{at: i.Created, key: i.Key, requestID: i.RequestID}
	s.put(p, &made)
	s.emit(p, "payment_intent.created", &made, m)
	if made.Status != "requires_payment_method" && made.Status != "requires_confirmation" && made.Status != "requires_capture" {
		s.emit(p, "payment_intent."+made.Status, &made, m)
	}
	return made, nil
}

// AddRefund seeds a refund with any content, past or over the amount of its charge as
// may be. Account, Mode, Charge and Amount are needed; by default it was made now and
// succeeded. A charge that is not there is made, large enough for its refunds. Later
// turns count from Created; those that are due happen at once, as of their own time.
func (s *Server) AddRefund(r Refund, later ...Turn) (Refund, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.seedPlace(&r)
	if err != nil {
		return Refund{}, err
	}
	if r.Charge == "" {
		return Refund{}, fmt.Errorf("stripetest: seed refund %s: name its charge", r.ID)
	}
	if r.Key != "" && r.RequestID == "" {
		r.RequestID = s.requestID()
	}
	c := p.shelf(chargeKind).byID[r.Charge]
	if c != nil {
		charge := c.object.(*Charge)
		r.Currency, r.PaymentIntent = cmp.Or(r.Currency, charge.Currency), cmp.Or(r.PaymentIntent, charge.PaymentIntent)
	}
	s.fill(&r.ID, "re_", &r.Currency, &r.Created)
	if c == nil {
		s.put(p, &Charge{ID: r.Charge, Account: r.Account, Mode: r.Mode, Currency: r.Currency,
			Amount: r.Amount, AmountCaptured: r.Amount, PaymentIntent: r.PaymentIntent, Captured: true,
			Status: "succeeded", Created: r.Created.Add(-24 * time.Hour), grows: true})
	}
	first := Turn{Status: cmp.Or(r.Status, "succeeded"), Reason: cmp.Or(r.FailureReason, r.PendingReason)}
	made := r
	made.own()
	s.make(p, &made, append(Life{first}, later...), moment{at: r.Created, key: r.Key, requestID: r.RequestID})
	s.advance(s.opt.Now())
	return made, nil
}

// TurnRefund changes a refund's state now, as the provider does by itself. A failed
// or canceled refund stays as it is.
func (s *Server) TurnRefund(r Refund, t Turn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opt.Now()
	s.advance(now)
	p := s.places[placeID{r.Account, r.Mode}]
	if p == nil || p.shelf(refundKind).byID[r.ID] == nil {
		return fmt.Errorf("stripetest: turn refund %s: account %q has none in mode %q", r.ID, r.Account, r.Mode)
	}
	s.turn(p, p.shelf(refundKind).byID[r.ID].object.(*Refund), t, moment{at: now})
	return nil
}

// Load seeds the refunds among effects, as of their own times; others are passed over.
// reference goes into metadata under marker. It gives the number of refunds. A reversed
// refund succeeded first and failed at UpdatedAt, or a day later where that is unknown, but
// never in the future.
func (s *Server) Load(effects []recon.Effect, marker string) (int, error) {
	loaded := 0
	for _, e := range effects {
		if e.Kind != "refund" {
			continue
		}
		r := Refund{ID: e.ID, Account: e.Account, Mode: e.Mode, Charge: e.Parent, Amount: e.Money.Minor,
			Currency: e.Money.Currency, Created: e.CreatedAt, Key: e.Key, FailureReason: e.FailureReason,
			Metadata: map[string]string{}}
		if len(e.Metadata) > 0 {
			if err := json.Unmarshal(e.Metadata, &r.Metadata); err != nil {
				return loaded, fmt.Errorf("stripetest: load refund %s: metadata must be texts by name: %w", e.ID, err)
			}
		}
		if e.Reference != "" {
			r.Metadata[marker] = e.Reference
		}
		var later []Turn
		switch e.Status {
		case recon.InFlight:
			r.Status = "pending"
		case recon.EffectFailed:
			r.Status = "failed"
		case recon.Reversed:
			later, r.FailureReason = []Turn{{After: s.undoneAfter(e), Status: "failed", Reason: e.FailureReason}}, ""
		}
		if _, err := s.AddRefund(r, later...); err != nil {
			return loaded, err
		}
		loaded++
	}
	return loaded, nil
}

// undoneAfter is the time from the creation of a reversed effect to its end, which is
// never in the future.
func (s *Server) undoneAfter(e recon.Effect) time.Duration {
	age := s.opt.Now().Sub(e.CreatedAt)
	if e.UpdatedAt.After(e.CreatedAt) {
		return min(age, e.UpdatedAt.Sub(e.CreatedAt))
	}
	return min(age, 24*time.Hour)
}

// seedPlace finds where a seed goes, and refuses an id that is taken there and a time
// that has not come.
func (s *Server) seedPlace(o object) (*place, error) {
	now := s.opt.Now()
	s.advance(now)
	k, where := o.home()
	p := s.places[where]
	switch {
	case p == nil:
		return nil, fmt.Errorf("stripetest: seed %s %s: account %q in mode %q is not among Options.Accounts", k, o.id(), where.account, where.mode)
	case p.shelf(k).byID[o.id()] != nil:
		return nil, fmt.Errorf("stripetest: seed %s %s: account %s %s has one with this id", k, o.id(), p.account, p.mode)
	case o.born().After(now):
		return nil, fmt.Errorf("stripetest: seed %s %s: it is created after the simulated now: seed it when the clock is there", k, o.id())
	}
	return p, nil
}

// fill gives what every seed needs and may leave out.
func (s *Server) fill(id *string, prefix string, currency *string, created *time.Time) {
	if *id == "" {
		*id = s.ids.next(prefix, "seed")
	}
	if created.IsZero() {
		*created = s.opt.Now()
	}
	*currency = strings.ToLower(cmp.Or(*currency, "usd"))
}
