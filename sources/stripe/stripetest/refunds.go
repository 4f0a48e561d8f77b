package stripetest

import (
	"cmp"
	"maps"
	"time"
)

// counts reports whether a refund in this status takes from what can be refunded.
func counts(status string) bool { return status != "failed" && status != "canceled" }

func (s *Server) createRefund(x *exchange) work {
	p := x.params
	charge, intent := p.text("charge"), p.text("payment_intent")
	amount, metadata := p.amount("amount"), p.metadata()
	reason := p.choice("reason", "duplicate", "fraudulent", "requested_by_customer")
	expand := p.expand(false)
	p.ignore("currency", "customer", "instructions_email", "origin", "refund_application_fee", "reverse_transfer")
	switch {
	case charge == "" && intent == "":
		p.fail(invalid("", "One of the following params should be provided for this request: payment_intent or charge."))
	case charge != "" && intent != "":
		p.fail(invalid("charge", "You may only specify one of these parameters: charge, payment_intent."))
	}
	return func(m moment) answer {
		c, e := s.refundable(x.place, charge, intent)
		if e != nil {
			return e.answer()
		}
		size, e := refundSize(c, amount)
		if e != nil {
			return e.answer()
		}
		r := &Refund{
			ID: s.ids.next("re_", x.place.account+x.place.mode+m.key), Account: x.place.account, Mode: x.place.mode,
			Charge: c.ID, PaymentIntent: c.PaymentIntent, Amount: size, Currency: c.Currency, Reason: reason,
			Metadata: present(metadata), Created: m.at, Key: m.key, RequestID: m.requestID,
		}
		s.makeRefund(x.place, r, s.lifeOf(*r), m)
		return ok(s.view(x.place, r, expand))
	}
}

// refundable gives the charge that a refund is asked for.
func (s *Server) refundable(p *place, charge, intent string) (*Charge, *apiError) {
	if intent != "" {
		i := p.intent(intent)
		if i == nil {
			return nil, missing(intentKind, intent, "payment_intent")
		}
		if charge = i.LatestCharge; charge == "" {
			e := invalid("payment_intent", "This PaymentIntent (%s) does not have a successful charge to refund.", intent)
			e.Code = "payment_intent_unexpected_state"
			return nil, e
		}
	}
	c := p.charge(charge)
	switch {
	case c == nil:
		return nil, missing(chargeKind, charge, "charge")
	case c.Disputed:
		e := invalid("", "Charge %s has been charged back; cannot issue a refund.", c.ID)
		e.Code = "charge_disputed"
		return nil, e
	case c.Status != "succeeded":
		return nil, invalid("charge", "Charge %s has not succeeded; cannot issue a refund.", c.ID)
	}
	return c, nil
}

// refundSize holds the total of a charge's refunds to its amount. Nothing else stops
// a second refund: two equal partial ones both pass.
func refundSize(c *Charge, asked *int64) (int64, *apiError) {
	left := c.Amount - c.AmountRefunded
	if left <= 0 {
		e := invalid("", "Charge %s has already been refunded.", c.ID)
		e.Code = "charge_already_refunded"
		return 0, e
	}
	if asked == nil {
		return left, nil
	}
	if *asked > left {
		return 0, invalid("amount", "Refund amount (%s) is greater than unrefunded amount on charge (%s)",
			money(*asked, c.Currency), money(left, c.Currency))
	}
	return *asked, nil
}

func (s *Server) lifeOf(r Refund) Life {
	if s.opt.Life != nil {
		r.own()
		if life := s.opt.Life(r); len(life) > 0 {
			return life
		}
	}
	return Succeeds()
}

// makeRefund brings a refund into being with its first turn, and puts the others on the agenda.
func (s *Server) makeRefund(p *place, r *Refund, life Life, m moment) {
	r.enter(life[0])
	s.put(p, r)
	if r.takesMoney() {
		r.BalanceTransaction = s.move(p, &movement{Type: "refund", Source: r.ID, Amount: -r.Amount, Currency: r.Currency, Created: m.at})
	}
	c := p.charge(r.Charge)
	s.emit(p, "refund.created", r, m)
	if counts(r.Status) {
		c.refund(r.Amount)
		s.emit(p, "charge.refunded", c, m)
	}
	if r.Status == "failed" {
		s.emit(p, "refund.failed", r, m)
	}
	for _, t := range life[1:] {
		s.later(r.Created.Add(t.After), func(at time.Time) { s.turn(p, r, t, moment{at: at}) })
	}
}

// turn changes a refund's state. A failed or canceled refund gives the amount back
// to the charge and to the balance, and stays as it is.
func (s *Server) turn(p *place, r *Refund, t Turn, m moment) {
	if !counts(r.Status) || t.Status == r.Status {
		return
	}
	r.enter(t)
	c := p.charge(r.Charge)
	switch {
	case !counts(r.Status):
		c.AmountRefunded -= r.Amount
		if r.BalanceTransaction != "" {
			r.FailureTransaction = s.move(p, &movement{Type: "refund_failure", Source: r.ID, Amount: r.Amount, Currency: r.Currency, Created: m.at})
		}
	case r.takesMoney() && r.BalanceTransaction == "":
		r.BalanceTransaction = s.move(p, &movement{Type: "refund", Source: r.ID, Amount: -r.Amount, Currency: r.Currency, Created: m.at})
	}
	s.emitRefundUpdate(p, r, m)
	if r.Status == "failed" {
		s.emit(p, "refund.failed", r, m)
	}
}

// emitRefundUpdate tells of a change under its name and under the old one.
func (s *Server) emitRefundUpdate(p *place, r *Refund, m moment) {
	s.emit(p, "refund.updated", r, m)
	s.emit(p, "charge.refund.updated", r, m)
}

// enter sets the status with the reason that belongs to it.
func (r *Refund) enter(t Turn) {
	r.Status, r.PendingReason, r.FailureReason = t.Status, "", ""
	switch t.Status {
	case "pending":
		r.PendingReason = cmp.Or(t.Reason, "processing")
	case "failed":
		r.FailureReason = cmp.Or(t.Reason, "unknown")
	case "canceled":
		r.FailureReason = cmp.Or(t.Reason, "merchant_request")
	}
}

// takesMoney reports whether the amount has left the balance.
func (r *Refund) takesMoney() bool {
	return r.Status == "succeeded" || r.Status == "pending" && r.PendingReason == "processing"
}

func (c *Charge) refund(amount int64) {
	c.AmountRefunded += amount
	if c.grows {
		c.Amount = max(c.Amount, c.AmountRefunded)
		c.AmountCaptured = c.Amount
	}
}

// move records a movement of the balance and gives its id.
func (s *Server) move(p *place, mv *movement) string {
	mv.place, mv.ID = p.placeID, s.ids.next("txn_", mv.Source)
	s.put(p, mv)
	return mv.ID
}

func (s *Server) updateRefund(x *exchange) work {
	metadata, expand := x.params.metadata(), x.params.expand(false)
	return func(m moment) answer {
		r := x.place.refund(x.target)
		if r == nil {
			return missing(refundKind, x.target, "id").answer()
		}
		if e := change(&r.Metadata, metadata); e != nil {
			return e.answer()
		}
		s.emitRefundUpdate(x.place, r, m)
		return ok(s.view(x.place, r, expand))
	}
}

// cancelRefund cancels a refund that waits for the customer; no other can be canceled
// by the API.
func (s *Server) cancelRefund(x *exchange) work {
	expand := x.params.expand(false)
	return func(m moment) answer {
		r := x.place.refund(x.target)
		if r == nil {
			return missing(refundKind, x.target, "id").answer()
		}
		if r.Status != "requires_action" {
			return invalid("", "You can only cancel a refund whose status is requires_action; this one is %s.", r.Status).answer()
		}
		s.turn(x.place, r, Turn{Status: "canceled"}, m)
		return ok(s.view(x.place, r, expand))
	}
}

// present drops the keys that stand for removal.
func present(metadata map[string]string) map[string]string {
	kept := map[string]string{}
	for key, value := range metadata {
		if value != "" {
			kept[key] = value
		}
	}
	return kept
}

// change merges metadata into a new map: an empty value removes its key, and no key
// at all (metadata set to the empty text) removes every one.
func change(held *map[string]string, metadata map[string]string) *apiError {
	if metadata == nil {
		return nil
	}
	merged := map[string]string{}
	if len(metadata) > 0 {
		maps.Copy(merged, *held)
	}
	maps.Copy(merged, metadata)
	merged = present(merged)
	if len(merged) > maxMetadataKeys {
		return invalid("metadata", "An object can hold up to %d metadata keys.", maxMetadataKeys)
	}
	*held = merged
	return nil
}
