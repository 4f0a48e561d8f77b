package stripetest

import (
	"cmp"
	"fmt"
	"strings"
	"time"
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
	return copyOf(&made), nil
}

// AddPaymentIntent seeds a payment intent with any content. Account and Mode are
// needed; by default it is made now, in usd, and has succeeded. One that succeeded or
// waits for capture has a charge: LatestCharge, which is made unless it is there.
func (s *Server) AddPaymentIntent(i PaymentIntent) (PaymentIntent, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.seedPlace(&i)
	if err != nil {
		return PaymentIntent{}, err
	}
	s.fill(&i.ID, "pi_", &i.Currency, &i.Created)
	i.Status, i.CaptureMethod = cmp.Or(i.Status, "succeeded"), cmp.Or(i.CaptureMethod, "automatic")
	i.own()
	made := &i
	m := moment{at: i.Created, key: i.Key, requestID: i.RequestID}
	s.put(p, made)
	s.emit(p, "payment_intent.created", made, m)
	switch i.Status {
	case "succeeded":
		made.AmountReceived = cmp.Or(i.AmountReceived, i.Amount)
		if c := s.seedCharge(p, made, m); c != nil {
			s.collect(p, made, c, m)
			s.emit(p, "charge.succeeded", c, m)
		}
	case "requires_capture":
		made.AmountCapturable = cmp.Or(i.AmountCapturable, i.Amount)
		if c := s.seedCharge(p, made, m); c != nil {
			s.emit(p, "charge.succeeded", c, m)
		}
		s.emit(p, "payment_intent.amount_capturable_updated", made, m)
	}
	if typ := "payment_intent." + i.Status; intentEvents[typ] {
		s.emit(p, typ, made, m)
	}
	return copyOf(made), nil
}

// intentEvents are the events whose name is a status.
var intentEvents = map[string]bool{
	"payment_intent.canceled":        true,
	"payment_intent.processing":      true,
	"payment_intent.requires_action": true,
	"payment_intent.succeeded":       true,
}

// seedCharge makes the charge of a seeded intent; nil when it is there already.
func (s *Server) seedCharge(p *place, i *PaymentIntent, m moment) *Charge {
	id := cmp.Or(i.LatestCharge, s.ids.next("ch_", i.ID))
	i.LatestCharge = id
	if p.charge(id) != nil {
		return nil
	}
	return s.chargeFor(p, i, id, m)
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
	c := p.charge(r.Charge)
	if c != nil {
		r.Currency, r.PaymentIntent = cmp.Or(r.Currency, c.Currency), cmp.Or(r.PaymentIntent, c.PaymentIntent)
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
	s.makeRefund(p, &made, append(Life{first}, later...), moment{at: r.Created, key: r.Key, requestID: r.RequestID})
	s.advance(s.opt.Now())
	return copyOf(&made), nil
}

// TurnRefund changes a refund's state now, as the provider does by itself. A failed
// or canceled refund stays as it is.
func (s *Server) TurnRefund(r Refund, t Turn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opt.Now()
	s.advance(now)
	p := s.places[placeID{r.Account, r.Mode}]
	if p == nil || p.refund(r.ID) == nil {
		return fmt.Errorf("stripetest: turn refund %s: account %q has none in mode %q", r.ID, r.Account, r.Mode)
	}
	s.turn(p, p.refund(r.ID), t, moment{at: now})
	return nil
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
