package stripe

import (
	"context"
	"maps"
	"slices"
	"strings"

	stripego "github.com/stripe/stripe-go/v82"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// The kinds of effects that this source observes.
const (
	kindCharge          = "charge"
	kindCheckoutSession = "checkout_session"
	kindCreditNote      = "credit_note"
	kindCustomer        = "customer"
	kindDispute         = "dispute"
	kindInvoice         = "invoice"
	kindPaymentIntent   = "payment_intent"
	kindPayout          = "payout"
	kindRefund          = "refund"
	kindSubscription    = "subscription"
	kindTransfer        = "transfer"
)

// kindEvent is no kind of effect: the feed of events is listed like one.
const kindEvent = "event"

// kind is all that is particular to the objects of one kind.
type kind struct {
	path   string // of its list
	object string // what Stripe calls it; empty: as we do
	// made are the events by which the request that made an object is known. Where Stripe
	// has none, nothing is found by key.
	made []string
	// told are the prefixes of the types of all events whose object is of the kind.
	told []string
	// needed are the fields that an event's object must have, null or not: where one is
	// absent, the event is of a version that has it elsewhere or not at all, and the object
	// is read. One of a|b is enough.
	needed []string
	// filters are the parameters by which Stripe lists the objects under a parent.
	filters []string
	// bare says that an object has no amount of its own, and so no currency.
	bare bool
	// status says what an object's status means, false when it is not known to us.
	status func(object) (recon.EffectStatus, bool)
	// parents are all objects that it hangs under, the closest first.
	parents func(object) []link
	// list, one and search ask for a page, an object and the index; search is nil where
	// there is none.
	list   func(context.Context, listing, stripego.ListParams) error
	one    func(context.Context, *place, string, stripego.Params) error
	search func(context.Context, *place, stripego.SearchParams) error
}

// kinds are the kinds by our name for them. Adding one is one entry here, one in
// reachable, which names the methods that it calls, and the fields that it reads.
var kinds = map[string]*kind{
	kindCharge: {
		path: "/v1/charges", made: []string{"charge.failed", "charge.pending", "charge.succeeded"},
		filters: []string{"payment_intent", "customer"},
		told:    []string{"charge."},
		needed: []string{"amount", "amount_captured", "amount_refunded", "captured", "currency", "customer",
			"metadata", "payment_intent", "refunded", "status"},
		status:  chargeStatus,
		parents: func(o object) []link { return []link{o.PaymentIntent, o.Invoice, o.Customer} },
		list:    listCharges, one: oneCharge, search: searchCharges,
	},
	kindCheckoutSession: {
		path: "/v1/checkout/sessions", object: "checkout.session",
		filters: []string{"payment_intent", "subscription", "customer"},
		told:    []string{"checkout.session."},
		needed: []string{"amount_total", "currency", "customer", "metadata", "payment_intent",
			"payment_status", "status", "subscription"},
		status:  sessionStatus,
		parents: func(o object) []link { return []link{o.PaymentIntent, o.Subscription, o.Invoice, o.Customer} },
		list:    listSessions, one: oneSession,
	},
	kindCreditNote: {
		path: "/v1/credit_notes", made: []string{"credit_note.created"},
		filters: []string{"invoice", "customer"},
		told:    []string{"credit_note."},
		needed:  []string{"amount", "currency", "customer", "invoice", "metadata", "number", "status"},
		status:  byWord(map[string]recon.EffectStatus{"issued": recon.Completed, "void": recon.Reversed}),
		parents: func(o object) []link { return []link{o.Invoice, o.Customer} },
		list:    listCreditNotes, one: oneCreditNote,
	},
	kindCustomer: {
		path: "/v1/customers", made: []string{"customer.created"}, bare: true,
		told:   []string{"customer."},
		needed: []string{"metadata"},
		// A deleted one is no object any more: it is not there.
		status:  func(object) (recon.EffectStatus, bool) { return recon.Completed, true },
		parents: func(object) []link { return nil },
		list:    listCustomers, one: oneCustomer, search: searchCustomers,
	},
	kindDispute: {
		path:    "/v1/disputes", // made by the customer's bank, under nobody's key
		filters: []string{"charge", "payment_intent"},
		told:    []string{"charge.dispute."},
		needed:  []string{"amount", "balance_transactions", "charge", "currency", "metadata", "payment_intent", "status"},
		status: byWord(map[string]recon.EffectStatus{
			"warning_needs_response": recon.InFlight, "warning_under_review": recon.InFlight,
			"needs_response": recon.InFlight, "under_review": recon.InFlight,
			"won": recon.Completed, "warning_closed": recon.Completed, "prevented": recon.Completed,
			"lost": recon.EffectFailed,
		}),
		parents: func(o object) []link { return []link{o.Charge, o.PaymentIntent} },
		list:    listDisputes, one: oneDispute,
	},
	kindInvoice: {
		path: "/v1/invoices", made: []string{"invoice.created"},
		filters: []string{"subscription", "customer"},
		told:    []string{"invoice."},
		needed: []string{"currency", "customer", "metadata", "number", "parent|subscription",
			"status", "status_transitions", "total"},
		status: byWord(map[string]recon.EffectStatus{
			"draft": recon.InFlight, "open": recon.InFlight, "paid": recon.Completed,
			"void": recon.EffectFailed, "uncollectible": recon.EffectFailed,
		}),
		parents: func(o object) []link { return []link{o.subscription(), o.Customer} },
		list:    listInvoices, one: oneInvoice, search: searchInvoices,
	},
	kindPaymentIntent: {
		path: "/v1/payment_intents", made: []string{"payment_intent.created"},
		filters: []string{"customer"},
		told:    []string{"payment_intent."},
		needed:  []string{"amount", "amount_received", "canceled_at", "currency", "customer", "metadata", "status"},
		// One that still wants a payment method or a confirmation is in flight: nothing has
		// happened yet, and it still may at any time, so that neither "failed" nor "not
		// there" is true of it. A hold that was placed and not captured is in flight too.
		status: byWord(map[string]recon.EffectStatus{
			"requires_payment_method": recon.InFlight, "requires_confirmation": recon.InFlight,
			"requires_action": recon.InFlight, "processing": recon.InFlight, "requires_capture": recon.InFlight,
			"succeeded": recon.Completed, "canceled": recon.EffectFailed,
		}),
		parents: func(o object) []link { return []link{o.Invoice, o.Customer} },
		list:    listIntents, one: oneIntent, search: searchIntents,
	},
	kindPayout: {
		path: "/v1/payouts", made: []string{"payout.created"},
		told: []string{"payout."},
		needed: []string{"amount", "automatic", "currency", "destination", "metadata",
			"original_payout", "reversed_by", "status"},
		status:  payoutStatus,
		parents: func(o object) []link { return []link{o.OriginalPayout, o.Destination} },
		list:    listPayouts, one: onePayout,
	},
	kindRefund: {
		path: "/v1/refunds", made: []string{"refund.created"},
		filters: []string{"charge", "payment_intent"},
		told:    []string{"refund.", "charge.refund."},
		needed:  []string{"amount", "charge", "currency", "metadata", "payment_intent", "reason", "status"},
		status: byWord(map[string]recon.EffectStatus{
			"pending": recon.InFlight, "requires_action": recon.InFlight, "succeeded": recon.Completed,
			"failed": recon.EffectFailed, "canceled": recon.EffectFailed,
		}),
		parents: func(o object) []link { return []link{o.Charge, o.PaymentIntent} },
		list:    listRefunds, one: oneRefund,
	},
	kindSubscription: {
		path: "/v1/subscriptions", made: []string{"customer.subscription.created"}, bare: true,
		filters: []string{"customer"},
		told:    []string{"customer.subscription."},
		needed:  []string{"canceled_at", "customer", "ended_at", "metadata", "status"},
		status: byWord(map[string]recon.EffectStatus{
			"incomplete": recon.InFlight, "trialing": recon.InFlight, "past_due": recon.InFlight,
			"paused": recon.InFlight, "unpaid": recon.InFlight, "active": recon.Completed,
			// It ran and was ended; the other one never began.
			"canceled": recon.Reversed, "incomplete_expired": recon.EffectFailed,
		}),
		parents: func(o object) []link { return []link{o.Customer} },
		list:    listSubscriptions, one: oneSubscription, search: searchSubscriptions,
	},
	kindTransfer: {
		path: "/v1/transfers", made: []string{"transfer.created"},
		told: []string{"transfer."},
		needed: []string{"amount", "amount_reversed", "currency", "destination",
			"metadata", "reversed", "source_transaction"},
		status:  transferStatus,
		parents: func(o object) []link { return []link{o.SourceTransaction, o.Destination} },
		list:    listTransfers, one: oneTransfer,
	},
}

// kindsThat gives the names of the kinds that fit, in order.
func kindsThat(fits func(*kind) bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(kinds)), func(name string) bool { return !fits(kinds[name]) })
}

// ourKind gives our name for what Stripe calls an object, and false for one that we do
// not observe.
func ourKind(object string) (string, bool) {
	name := strings.ReplaceAll(object, ".", "_")
	k := kinds[name]
	return name, k != nil && k.objectName(name) == object
}

// objectName is what Stripe calls an object of the kind with our name.
func (k *kind) objectName(name string) string {
	if k.object != "" {
		return k.object
	}
	return name
}

// pathOf is the path of the list of a kind, or of the events.
func pathOf(name string) string {
	if name == kindEvent {
		return "/v1/events"
	}
	return kinds[name].path
}

// parameters are the parameters that take a parent, by the prefix of its id.
var parameters = map[string]string{
	"ch": "charge", "py": "charge", "pi": "payment_intent", "cus": "customer", "in": "invoice", "sub": "subscription",
}

// byWord reads an effect's status from the object's alone.
func byWord(words map[string]recon.EffectStatus) func(object) (recon.EffectStatus, bool) {
	return func(o object) (recon.EffectStatus, bool) {
		status, ok := words[o.Status]
		return status, ok
	}
}

func chargeStatus(o object) (recon.EffectStatus, bool) {
	switch o.Status {
	case "pending":
		return recon.InFlight, true
	case "failed":
		return recon.EffectFailed, true
	case "succeeded":
		switch {
		case o.Captured == nil || *o.Captured:
			return recon.Completed, true
		case o.Refunded != nil && *o.Refunded:
			return recon.EffectFailed, true // the hold was released uncaptured
		}
		return recon.InFlight, true
	}
	return "", false
}

// payoutStatus: "paid" says that the money is on its way and should arrive. It may still
// turn to failed within days, and a paid one may be taken back by a payout of its own.
func payoutStatus(o object) (recon.EffectStatus, bool) {
	switch o.Status {
	case "pending", "in_transit":
		return recon.InFlight, true
	case "paid":
		if o.ReversedBy.ID != "" {
			return recon.Reversed, true
		}
		return recon.Completed, true
	case "failed", "canceled":
		return recon.EffectFailed, true
	}
	return "", false
}

// transferStatus: a transfer has no status. It is done when it exists, and undone when
// all of it was reversed; a part that was reversed leaves the rest where it is.
func transferStatus(o object) (recon.EffectStatus, bool) {
	if o.Reversed != nil && *o.Reversed {
		return recon.Reversed, true
	}
	return recon.Completed, true
}

// sessionStatus: a session that is complete may still wait for a payment that takes days.
func sessionStatus(o object) (recon.EffectStatus, bool) {
	switch o.Status {
	case "open":
		return recon.InFlight, true
	case "expired":
		return recon.EffectFailed, true
	case "complete":
		switch o.PaymentStatus {
		case "paid", "no_payment_required":
			return recon.Completed, true
		case "unpaid":
			return recon.InFlight, true
		}
	}
	return "", false
}
