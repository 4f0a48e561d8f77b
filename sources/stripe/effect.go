package stripe

import (
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// effectOf says what an object means. The object was read by readObject.
func (s *Source) effectOf(p *place, o object) recon.Effect {
	status, _ := statusOf(o.Object, o)
	e := recon.Effect{
		ID: o.ID, Source: s.name, System: s.system, Kind: o.Object,
		Status: status, Money: money(amountOf(o), o.Currency),
		Reference: o.reference(s.marker),
		CreatedAt: o.created(), UpdatedAt: o.created(),
		Account: p.account, Mode: p.mode,
		FailureReason: failureOf(o),
		Fee:           o.Balance.Fee, Net: o.Balance.Net,
	}
	if t := o.Balance; t.Amount != nil && isCurrency(t.Currency) {
		e.Settlement = money(max(*t.Amount, -*t.Amount), t.Currency)
	}
	if o.CanceledAt != nil && *o.CanceledAt > o.Created && *o.CanceledAt < maxTime {
		e.UpdatedAt = time.Unix(*o.CanceledAt, 0).UTC()
	}
	setParents(&e, o)
	if o.Object == kindRefund {
		e.ParentTotal = o.Charge.AmountRefunded
		if o.Reason != nil && *o.Reason == "expired_uncaptured_charge" {
			e.CausedBy = o.Charge.ID // Stripe's own release of a hold, asked for by nobody
		}
	}
	return e
}

// setParents gives the effect all the objects that it hangs under, the closest first.
func setParents(e *recon.Effect, o object) {
	var parents []link
	switch o.Object {
	case kindRefund:
		parents = []link{o.Charge, o.PaymentIntent}
	case kindCharge:
		parents = []link{o.PaymentIntent, o.Invoice, o.Customer}
	case kindPaymentIntent:
		parents = []link{o.Invoice, o.Customer}
	}
	for _, p := range parents {
		switch {
		case p.ID == "":
		case e.Parent == "":
			e.Parent = p.ID
		default:
			e.OtherParents = append(e.OtherParents, p.ID)
		}
	}
}

// amountOf gives what really moved: of a completed payment what was captured, which may
// be less than was asked for.
func amountOf(o object) int64 {
	moved := o.AmountReceived
	if o.Object == kindCharge && o.Captured != nil && *o.Captured {
		moved = o.AmountCaptured
	}
	if o.Status == "succeeded" && moved != nil && *moved > 0 {
		return *moved
	}
	return o.Amount
}

func money(minor int64, currency string) recon.Money {
	if minor <= 0 {
		return recon.Money{}
	}
	return recon.Money{Minor: minor, Currency: strings.ToUpper(currency)}
}

// failureOf gives the provider's word for why it failed, if it is one of its words.
func failureOf(o object) string {
	words := []*string{o.FailureReason, o.FailureCode, o.CancellationReason}
	if o.LastError != nil {
		words = append(words, &o.LastError.Code)
	}
	for _, w := range words {
		if w != nil && codeWords.MatchString(*w) {
			return *w
		}
	}
	return ""
}
