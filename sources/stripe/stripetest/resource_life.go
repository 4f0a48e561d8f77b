package stripetest

import "cmp"

// become sets a status with the fields that belong to it.
func (s *Server) become(p *place, r *Resource, t Turn, m moment) {
	at := m.at.Unix()
	switch kind(r.Kind) {
	case payoutKind:
		if t.Status == "failed" {
			r.with(map[string]any{
				"failure_code":                cmp.Or(t.Reason, "could_not_process"),
				"failure_balance_transaction": s.move(p, &movement{Type: "payout_failure", Source: r.ID, Amount: r.Amount, Currency: r.Currency, Created: m.at}),
			})
		}
	case sessionKind:
		if t.Status == "complete" {
			r.with(map[string]any{"payment_status": cmp.Or(t.Reason, "paid")})
		}
	case subscriptionKind:
		if t.Status == "canceled" || t.Status == "incomplete_expired" {
			r.with(map[string]any{"canceled_at": at, "ended_at": at})
		}
	case creditNoteKind:
		r.with(map[string]any{"voided_at": at})
	case invoiceKind:
		s.enterInvoice(r, t.Status, at)
	case disputeKind:
		if t.Status == "needs_response" {
			s.withdraw(p, r, m)
		}
		if t.Status == "won" {
			s.reinstate(p, r, m)
		}
	case customerKind:
		return // it is what it was until it is gone
	}
	r.Status = t.Status
}

// enterInvoice notes when an invoice changed. It gets its number when it is finalized.
func (s *Server) enterInvoice(r *Resource, status string, at int64) {
	names := map[string]string{"open": "finalized_at", "paid": "paid_at", "void": "voided_at", "uncollectible": "marked_uncollectible_at"}
	times := map[string]any{"finalized_at": nil, "paid_at": nil, "voided_at": nil, "marked_uncollectible_at": nil}
	if before, ok := r.Fields["status_transitions"].(map[string]any); ok {
		for name, t := range before {
			times[name] = t
		}
	}
	times[names[status]] = at
	fields := map[string]any{"status_transitions": times}
	if status == "open" && r.Fields["number"] == nil {
		fields["number"] = s.ids.next("", "invoice")[:7] + "-0001"
	}
	if status == "paid" {
		fields["amount_paid"], fields["amount_remaining"] = r.Amount, 0
	}
	r.with(fields)
}

// disputeFee is what the provider keeps of a dispute, won or lost.
const disputeFee = 1500

// dispute marks the charge, and takes the money unless it is only an inquiry.
func (s *Server) dispute(p *place, r *Resource, m moment) {
	if c := p.charge(r.ref("charge")); c != nil {
		c.Disputed = true
		if c.PaymentIntent != "" && r.Fields["payment_intent"] == nil {
			r.with(map[string]any{"payment_intent": c.PaymentIntent})
		}
	}
	if r.Status == "needs_response" || r.Status == "under_review" {
		s.withdraw(p, r, m)
		s.emit(p, "charge.dispute.funds_withdrawn", r, m)
	}
}

// withdraw takes the amount and the fee.
func (s *Server) withdraw(p *place, r *Resource, m moment) {
	s.moveDispute(p, r, &movement{Amount: -r.Amount, Fee: disputeFee, Created: m.at})
}

// reinstate gives the amount back. The fee is kept.
func (s *Server) reinstate(p *place, r *Resource, m moment) {
	s.moveDispute(p, r, &movement{Amount: r.Amount, Created: m.at})
}

// moveDispute adds a movement, which a dispute shows whole.
func (s *Server) moveDispute(p *place, r *Resource, mv *movement) {
	mv.Type, mv.Source, mv.Currency = "adjustment", r.ID, r.Currency
	s.move(p, mv)
	before, _ := r.Fields["balance_transactions"].([]any)
	r.with(map[string]any{"balance_transactions": append(before[:len(before):len(before)], mv.show(s.fixtures))})
}
