package stripetest

import "time"

func (r *Refund) id() string              { return r.ID }
func (r *Refund) born() time.Time         { return r.Created }
func (r *Refund) home() (kind, placeID)   { return refundKind, placeID{r.Account, r.Mode} }
func (r *Refund) tags() map[string]string { return r.Metadata }
func (r *Refund) ref(name string) string {
	switch name {
	case "charge":
		return r.Charge
	case "payment_intent":
		return r.PaymentIntent
	}
	return ""
}

func (r *Refund) show(f fixtures) map[string]any {
	shown := f.like("refund", map[string]any{
		"id": r.ID, "amount": r.Amount, "currency": r.Currency, "charge": orNull(r.Charge),
		"payment_intent": orNull(r.PaymentIntent), "created": r.Created.Unix(), "status": r.Status,
		"reason": orNull(r.Reason), "metadata": texts(r.Metadata), "balance_transaction": orNull(r.BalanceTransaction),
	})
	// The provider leaves these out unless they say something.
	for name, value := range map[string]string{"pending_reason": r.PendingReason,
		"failure_reason": r.FailureReason, "failure_balance_transaction": r.FailureTransaction} {
		if value != "" {
			shown[name] = value
		}
	}
	return shown
}

func (c *Charge) id() string              { return c.ID }
func (c *Charge) born() time.Time         { return c.Created }
func (c *Charge) home() (kind, placeID)   { return chargeKind, placeID{c.Account, c.Mode} }
func (c *Charge) tags() map[string]string { return c.Metadata }
func (c *Charge) ref(name string) string {
	switch name {
	case "payment_intent":
		return c.PaymentIntent
	case "customer":
		return c.Customer
	case "status":
		return c.Status
	case "currency":
		return c.Currency
	}
	return ""
}

func (c *Charge) show(f fixtures) map[string]any {
	shown := f.like("charge", map[string]any{
		"id": c.ID, "amount": c.Amount, "amount_captured": c.AmountCaptured, "amount_refunded": c.AmountRefunded,
		"balance_transaction": orNull(c.BalanceTransaction), "captured": c.Captured, "created": c.Created.Unix(),
		"currency": c.Currency, "customer": orNull(c.Customer), "disputed": c.Disputed, "livemode": c.Mode == "live",
		"failure_code": orNull(c.FailureCode), "metadata": texts(c.Metadata), "paid": c.Status == "succeeded",
		"payment_intent": orNull(c.PaymentIntent), "payment_method": orNull(c.PaymentMethod),
		"refunded": c.AmountRefunded > 0 && c.AmountRefunded >= c.AmountCaptured, "status": c.Status,
		"shipping": nil, "source": nil, "transfer_data": nil, "outcome": nil, "receipt_url": nil, "description": nil,
	})
	// Not part of a charge since API version 2022-11-15, unless expanded.
	delete(shown, "refunds")
	return shown
}

func (i *PaymentIntent) id() string              { return i.ID }
func (i *PaymentIntent) born() time.Time         { return i.Created }
func (i *PaymentIntent) home() (kind, placeID)   { return intentKind, placeID{i.Account, i.Mode} }
func (i *PaymentIntent) tags() map[string]string { return i.Metadata }
func (i *PaymentIntent) ref(name string) string {
	switch name {
	case "customer":
		return i.Customer
	case "status":
		return i.Status
	case "currency":
		return i.Currency
	}
	return ""
}

func (i *PaymentIntent) show(f fixtures) map[string]any {
	var lastError any
	if i.LastErrorCode != "" {
		lastError = map[string]any{"type": cardError, "code": i.LastErrorCode, "message": "Your card was declined."}
	}
	return f.like("payment_intent", map[string]any{
		"id": i.ID, "amount": i.Amount, "amount_capturable": i.AmountCapturable, "amount_received": i.AmountReceived,
		"canceled_at": seconds(i.CanceledAt), "cancellation_reason": orNull(i.CancellationReason),
		"capture_method": i.CaptureMethod, "client_secret": i.ID + "_secret_for_tests", "created": i.Created.Unix(),
		"currency": i.Currency, "customer": orNull(i.Customer), "description": orNull(i.Description),
		"last_payment_error": lastError, "latest_charge": orNull(i.LatestCharge), "livemode": i.Mode == "live",
		"metadata": texts(i.Metadata), "payment_method": orNull(i.PaymentMethod), "status": i.Status,
		"next_action": nil, "processing": nil, "shipping": nil, "transfer_data": nil,
		"payment_method_configuration_details": nil, "managed_payments": nil,
	})
}

func (e *Event) id() string              { return e.ID }
func (e *Event) born() time.Time         { return e.Created }
func (e *Event) home() (kind, placeID)   { return eventKind, placeID{e.Account, e.Mode} }
func (e *Event) tags() map[string]string { return nil }
func (e *Event) ref(name string) string {
	if name == "type" {
		return e.Type
	}
	return ""
}

func (e *Event) show(f fixtures) map[string]any { return e.shownIn(f, e.version) }

// movement is a balance transaction: money that moved because of source.
type movement struct {
	ID, Type, Source string
	place            placeID
	Amount, Fee      int64
	Currency         string
	Created          time.Time
}

func (m *movement) id() string              { return m.ID }
func (m *movement) born() time.Time         { return m.Created }
func (m *movement) home() (kind, placeID)   { return movementKind, m.place }
func (m *movement) tags() map[string]string { return nil }
func (m *movement) own()                    {}
func (m *movement) ref(name string) string {
	switch name {
	case "source":
		return m.Source
	case "type":
		return m.Type
	case "currency":
		return m.Currency
	}
	return ""
}

func (m *movement) show(f fixtures) map[string]any {
	return f.like("balance_transaction", map[string]any{
		"id": m.ID, "amount": m.Amount, "net": m.Amount - m.Fee, "fee": m.Fee, "currency": m.Currency, "type": m.Type,
		"reporting_category": m.Type, "source": m.Source, "created": m.Created.Unix(),
		"available_on": m.Created.Unix(), "description": nil,
	})
}
