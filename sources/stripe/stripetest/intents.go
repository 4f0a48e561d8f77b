package stripetest

import (
	"cmp"
	"net/http"
	"slices"
)

// outcomes are what confirming with some test payment methods leads to; any other
// succeeds.
var outcomes = map[string]string{
	"pm_card_chargeDeclined":         "declined",
	"pm_card_authenticationRequired": "requires_action",
	"pm_usBankAccount":               "processing",
}

func (s *Server) createIntent(x *exchange) work {
	p := x.params
	amount, currency := p.amount("amount"), p.required("currency")
	if p.required("amount"); amount == nil {
		amount = new(int64) // refused: the fault is noted
	}
	i := PaymentIntent{
		Amount: *amount, Currency: currency, Customer: p.text("customer"), Description: p.text("description"),
		PaymentMethod: p.text("payment_method"), Metadata: present(p.metadata()),
		CaptureMethod: cmp.Or(p.choice("capture_method", "automatic", "automatic_async", "manual"), "automatic"),
	}
	confirm, expand := p.flag("confirm"), p.expand(false)
	p.ignore("automatic_payment_methods", "confirmation_method", "error_on_requires_action", "off_session",
		"payment_method_types", "receipt_email", "return_url", "setup_future_usage", "statement_descriptor",
		"statement_descriptor_suffix", "transfer_group")
	return func(m moment) answer {
		made := i
		made.ID = s.ids.next("pi_", x.place.account+x.place.mode+m.key)
		made.Account, made.Mode, made.Created = x.place.account, x.place.mode, m.at
		made.Key, made.RequestID = m.key, m.requestID
		made.Status = "requires_payment_method"
		if made.PaymentMethod != "" {
			made.Status = "requires_confirmation"
		}
		s.put(x.place, &made)
		s.emit(x.place, "payment_intent.created", &made, m)
		if confirm {
			return s.confirmed(x.place, &made, expand, m)
		}
		return ok(s.view(x.place, &made, expand))
	}
}

// onIntent reads an action on one payment intent that is in one of the statuses.
func (s *Server) onIntent(x *exchange, statuses []string, do func(*PaymentIntent, moment) answer) work {
	return func(m moment) answer {
		i := x.place.intent(x.target)
		if i == nil {
			return missing(intentKind, x.target, "intent").answer()
		}
		if statuses != nil && !slices.Contains(statuses, i.Status) {
			e := invalid("", "This PaymentIntent could not be changed because it has a status of %s.", i.Status)
			e.Code, e.PaymentIntent = "payment_intent_unexpected_state", i.show(s.fixtures)
			return e.answer()
		}
		return do(i, m)
	}
}

func (s *Server) updateIntent(x *exchange) work {
	metadata, description, expand := x.params.metadata(), x.params.text("description"), x.params.expand(false)
	return s.onIntent(x, nil, func(i *PaymentIntent, m moment) answer {
		if e := change(&i.Metadata, metadata); e != nil {
			return e.answer()
		}
		i.Description = cmp.Or(description, i.Description)
		return ok(s.view(x.place, i, expand))
	})
}

func (s *Server) confirmIntent(x *exchange) work {
	method, expand := x.params.text("payment_method"), x.params.expand(false)
	x.params.ignore("off_session", "return_url", "error_on_requires_action", "receipt_email")
	statuses := []string{"requires_payment_method", "requires_confirmation", "requires_action"}
	return s.onIntent(x, statuses, func(i *PaymentIntent, m moment) answer {
		i.PaymentMethod = cmp.Or(method, i.PaymentMethod)
		return s.confirmed(x.place, i, expand, m)
	})
}

// confirmed tries to take the money. Metadata goes over to the charge.
func (s *Server) confirmed(p *place, i *PaymentIntent, expand []string, m moment) answer {
	if i.PaymentMethod == "" {
		e := invalid("", "You cannot confirm this PaymentIntent because it's missing a payment method.")
		e.Code, e.PaymentIntent = "payment_intent_unexpected_state", i.show(s.fixtures)
		return e.answer()
	}
	switch outcome := outcomes[i.PaymentMethod]; outcome {
	case "declined":
		return s.declined(p, i, m)
	case "requires_action", "processing":
		i.Status = outcome
		s.emit(p, "payment_intent."+outcome, i, m)
		return ok(s.view(p, i, expand))
	}
	c := s.chargeFor(p, i, s.ids.next("ch_", i.ID), m)
	i.LastErrorCode = ""
	change := "payment_intent.succeeded"
	if i.CaptureMethod == "manual" {
		i.Status, i.AmountCapturable = "requires_capture", i.Amount
		change = "payment_intent.amount_capturable_updated"
	} else {
		i.AmountReceived = i.Amount
		s.collect(p, i, c, m)
	}
	s.emit(p, "charge.succeeded", c, m)
	s.emit(p, change, i, m)
	return ok(s.view(p, i, expand))
}

// declined leaves a failed charge and an intent that wants another payment method.
func (s *Server) declined(p *place, i *PaymentIntent, m moment) answer {
	c := s.chargeFor(p, i, s.ids.next("ch_", i.ID), m)
	c.Status, c.FailureCode = "failed", "card_declined"
	i.Status, i.PaymentMethod, i.LastErrorCode = "requires_payment_method", "", "card_declined"
	s.emit(p, "charge.failed", c, m)
	s.emit(p, "payment_intent.payment_failed", i, m)
	return (&apiError{Status: http.StatusPaymentRequired, Type: cardError, Code: "card_declined",
		DeclineCode: "generic_decline", Message: "Your card was declined.", Charge: c.ID,
		PaymentIntent: i.show(s.fixtures)}).answer()
}

// chargeFor makes the charge of an intent, not yet captured.
func (s *Server) chargeFor(p *place, i *PaymentIntent, id string, m moment) *Charge {
	c := &Charge{
		ID: id, Account: p.account, Mode: p.mode, Amount: i.Amount, Currency: i.Currency,
		Status: "succeeded", Customer: i.Customer, PaymentIntent: i.ID, PaymentMethod: i.PaymentMethod,
		Metadata: i.Metadata, Created: m.at, Key: m.key, RequestID: m.requestID,
	}
	i.LatestCharge = c.ID
	s.put(p, c)
	return c
}

// collect captures a charge: what the intent received. The rest goes back to the customer.
func (s *Server) collect(p *place, i *PaymentIntent, c *Charge, m moment) {
	c.Captured, c.AmountCaptured, c.AmountRefunded = true, i.AmountReceived, c.Amount-i.AmountReceived
	c.BalanceTransaction = s.move(p, &movement{Type: "charge", Source: c.ID, Amount: c.AmountCaptured, Currency: c.Currency, Created: m.at})
	i.Status, i.AmountCapturable = "succeeded", 0
	if c.AmountRefunded > 0 && s.opt.ReleaseRefunds {
		s.release(p, c, moment{at: m.at})
	}
}

// release makes the refund by which the provider gives back what was not captured. Nobody
// asked for it, and no money moved.
func (s *Server) release(p *place, c *Charge, m moment) {
	r := &Refund{ID: s.ids.next("re_", c.ID), Account: p.account, Mode: p.mode, Charge: c.ID, PaymentIntent: c.PaymentIntent,
		Amount: c.AmountRefunded, Currency: c.Currency, Status: "succeeded", Created: m.at}
	s.put(p, r)
	s.emit(p, "refund.created", r, m)
}

func (s *Server) captureIntent(x *exchange) work {
	amount, expand := x.params.amount("amount_to_capture"), x.params.expand(false)
	return s.onIntent(x, []string{"requires_capture"}, func(i *PaymentIntent, m moment) answer {
		received := i.AmountCapturable
		if amount != nil {
			received = *amount
		}
		if received > i.AmountCapturable {
			return invalid("amount_to_capture", "The remaining amount is %s.", money(i.AmountCapturable, i.Currency)).answer()
		}
		i.AmountReceived = received
		c := x.place.charge(i.LatestCharge)
		s.collect(x.place, i, c, m)
		s.emit(x.place, "charge.captured", c, m)
		s.emit(x.place, "payment_intent.succeeded", i, m)
		return ok(s.view(x.place, i, expand))
	})
}

func (s *Server) cancelIntent(x *exchange) work {
	reason := x.params.choice("cancellation_reason", "abandoned", "duplicate", "fraudulent", "requested_by_customer")
	expand := x.params.expand(false)
	statuses := []string{"requires_payment_method", "requires_confirmation", "requires_action", "requires_capture", "processing"}
	return s.onIntent(x, statuses, func(i *PaymentIntent, m moment) answer {
		i.Status, i.CanceledAt, i.CancellationReason, i.AmountCapturable = "canceled", m.at, reason, 0
		if c := x.place.charge(i.LatestCharge); c != nil && c.Status == "succeeded" && !c.Captured {
			c.AmountRefunded = c.Amount
			s.emit(x.place, "charge.refunded", c, m)
		}
		s.emit(x.place, "payment_intent.canceled", i, m)
		return ok(s.view(x.place, i, expand))
	})
}
