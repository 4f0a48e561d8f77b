package stripe

import (
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// effectOf says what an object means. The object was read by readObject.
func (s *Source) effectOf(p *place, o object) recon.Effect {
	status, _ := kinds[o.kind].status(o)
	e := recon.Effect{
		ID: o.ID, Source: s.name, System: s.system, Kind: o.kind,
		Status: status, Money: moneyOf(o),
		Reference: o.reference(s.marker), NaturalReference: o.naturalReference(),
		CreatedAt: o.created(), UpdatedAt: o.changed(),
		Account: p.account, Mode: p.mode,
		CreatedBy: creatorOf(o), CausedBy: causeOf(o), FailureReason: failureOf(o, status),
		Fee: o.Balance.Fee, Net: o.Balance.Net, Settlement: settled(o.Balance),
	}
	if len(o.Balances) > 0 {
		e.Fee, e.Net, e.Settlement = total(o.Balances)
	}
	for _, parent := range kinds[o.kind].parents(o) {
		switch {
		case parent.ID == "":
		case e.Parent == "":
			e.Parent = parent.ID
		default:
			e.OtherParents = append(e.OtherParents, parent.ID)
		}
	}
	if o.kind == kindRefund {
		e.ParentTotal = refundedOf(o.Charge)
	}
	return e
}

// refundedOf gives the running total of the refunds of an expanded charge: those that
// neither failed nor were canceled. Of a charge that was captured in part it is not known,
// since Stripe counts what it released among what was refunded.
func refundedOf(charge link) *int64 {
	if charge.Amount == nil || charge.AmountCaptured == nil || *charge.Amount != *charge.AmountCaptured {
		return nil
	}
	return charge.AmountRefunded
}

// causeOf gives the object that this one follows from without anybody asking for it.
func causeOf(o object) string {
	switch {
	case o.kind == kindRefund && (is(o.Reason, "expired_uncaptured_charge") || released(o)):
		return o.Charge.ID // Stripe's own release of a hold
	case o.kind == kindDispute:
		return o.Charge.ID // the customer's bank took the money back
	case o.kind == kindCharge && o.PaymentIntent.ID != "":
		return o.PaymentIntent.ID // what confirming an intent makes
	case o.kind == kindCharge, o.kind == kindPaymentIntent:
		return o.Invoice.ID // what collecting an invoice makes
	case o.kind == kindInvoice && o.BillingReason != nil && strings.HasPrefix(*o.BillingReason, "subscription"):
		return o.subscription().ID // what a subscription makes at its beginning and each period
	}
	return ""
}

// released reports that a refund is what capturing a part of a hold released: it moved no
// money, nobody gave a reason, and it is of what was not captured. It is told only where
// the charge is shown whole.
func released(o object) bool {
	c := o.Charge
	if c.Amount == nil || c.AmountCaptured == nil || o.Balance.ID != "" || o.Reason != nil || o.Status != "succeeded" {
		return false
	}
	rest := *c.Amount - *c.AmountCaptured
	return rest > 0 && *c.AmountCaptured > 0 && *o.Amount == rest
}

// byStripe is the creator of what Stripe makes on a schedule of its own.
const byStripe = "stripe"

// creatorOf gives the Connect application that made an object, or says that Stripe did.
func creatorOf(o object) string {
	if o.kind == kindPayout && o.Automatic != nil && *o.Automatic {
		return byStripe
	}
	return o.Application.ID
}

func is(word *string, want string) bool { return word != nil && *word == want }

// changed is the latest time at which an object says that it changed.
func (o object) changed() time.Time {
	at := o.Created
	times := []*int64{o.CanceledAt, o.EndedAt, o.VoidedAt}
	if t := o.Transitions; t != nil {
		times = append(times, t.Finalized, t.Paid, t.Voided, t.Uncollectible)
	}
	for _, t := range times {
		if t != nil && *t > at && *t < maxTime {
			at = *t
		}
	}
	return time.Unix(at, 0).UTC()
}

// settled gives the amount of an expanded balance transaction, without its sign.
func settled(t link) recon.Money {
	if t.Amount == nil || !isCurrency(t.Currency) {
		return recon.Money{}
	}
	return money(max(*t.Amount, -*t.Amount), t.Currency)
}

// total sums fees and nets of balance transactions, nil where one of them is not known,
// and gives the amount of the first, which took the money.
func total(list []link) (fee, net *int64, settlement recon.Money) {
	fee, net = new(int64), new(int64)
	for _, t := range list {
		if t.Fee == nil || t.Net == nil {
			return nil, nil, settled(list[0])
		}
		*fee, *net = *fee+*t.Fee, *net+*t.Net
	}
	return fee, net, settled(list[0])
}

// moneyOf gives what really moved: of a completed payment what was captured, which may
// be less than was asked for. An invoice that a credit paid shows an amount of nothing,
// which is not the amount of any operation; a subscription shows none.
func moneyOf(o object) recon.Money {
	moved := o.AmountReceived
	if o.kind == kindCharge && o.Captured != nil && *o.Captured {
		moved = o.AmountCaptured
	}
	if o.Status == "succeeded" && moved != nil && *moved > 0 {
		return money(*moved, o.Currency)
	}
	asked := o.asked()
	if asked == nil {
		return recon.Money{}
	}
	if *asked == 0 {
		return recon.Money{Currency: strings.ToUpper(o.Currency)}
	}
	return money(*asked, o.Currency)
}

func money(minor int64, currency string) recon.Money {
	if minor <= 0 {
		return recon.Money{}
	}
	return recon.Money{Minor: minor, Currency: strings.ToUpper(currency)}
}

// endings are the statuses that say by themselves why nothing came of an object.
var endings = []string{"void", "uncollectible", "expired", "incomplete_expired"}

// failureOf gives the provider's word for why it failed, if it is one of its words.
func failureOf(o object, status recon.EffectStatus) string {
	words := []*string{o.FailureReason, o.FailureCode, o.CancellationReason}
	if o.LastError != nil {
		words = append(words, &o.LastError.Code)
	}
	if o.CancellationDetails != nil {
		words = append(words, o.CancellationDetails.Reason)
	}
	if o.kind == kindDispute && status == recon.EffectFailed {
		words = append(words, o.Reason)
	}
	if slices.Contains(endings, o.Status) {
		words = append(words, &o.Status)
	}
	for _, w := range words {
		if w != nil && codeWords.MatchString(*w) {
			return *w
		}
	}
	return ""
}
