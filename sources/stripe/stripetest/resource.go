package stripetest

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Resource is an object of one of the kinds that are seeded and turned, not made by
// requests: checkout.session, credit_note, customer, dispute, invoice, payout,
// subscription, transfer.
type Resource struct {
	Kind              string // as the provider writes it in the field object
	ID, Account, Mode string
	Amount            int64  // minor units; absent where a kind has none
	Currency          string // lower case
	Status            string // absent where a kind has none
	Metadata          map[string]string
	Created           time.Time
	// Fields are further fields as the provider sends them: "customer": "cus_1". What an
	// object hangs under is here.
	Fields         map[string]any
	Key, RequestID string // who asked; empty for what nobody asked for through the API

	deleted bool
}

// The further kinds of objects.
const (
	sessionKind      kind = "checkout.session"
	creditNoteKind   kind = "credit_note"
	customerKind     kind = "customer"
	disputeKind      kind = "dispute"
	invoiceKind      kind = "invoice"
	payoutKind       kind = "payout"
	subscriptionKind kind = "subscription"
	transferKind     kind = "transfer"
)

// form is what is particular to a kind of resources.
type form struct {
	prefix string
	path   string
	amount string   // name of the field that holds the amount; empty: it has none
	status string   // that of a seed which names none; empty: it has none
	made   string   // the event of its creation; empty: there is none
	refs   []string // fields that name other objects, or that lists filter by; null unless given
	lists  []string // filters of its list
	// turns are the statuses that may follow each one, with the events that tell of it.
	turns map[string]map[string][]string
}

var forms = map[kind]form{
	sessionKind: {
		prefix: "cs_", path: "/v1/checkout/sessions", amount: "amount_total", status: "open",
		refs:  []string{"client_reference_id", "customer", "invoice", "payment_intent", "payment_link", "subscription"},
		lists: []string{"customer", "payment_intent", "subscription", "payment_link", "status"},
		turns: map[string]map[string][]string{
			"open": {"complete": {"checkout.session.completed"}, "expired": {"checkout.session.expired"}},
		},
	},
	creditNoteKind: {
		prefix: "cn_", path: "/v1/credit_notes", amount: "amount", status: "issued", made: "credit_note.created",
		refs: []string{"customer", "invoice", "number", "reason", "voided_at"}, lists: []string{"customer", "invoice"},
		turns: map[string]map[string][]string{"issued": {"void": {"credit_note.voided"}}},
	},
	customerKind: {
		prefix: "cus_", path: "/v1/customers", made: "customer.created", refs: []string{"email"}, lists: []string{"email"},
		turns: map[string]map[string][]string{"": {"deleted": {"customer.deleted"}}},
	},
	disputeKind: {
		prefix: "dp_", path: "/v1/disputes", amount: "amount", status: "needs_response", made: "charge.dispute.created",
		refs: []string{"charge", "payment_intent"}, lists: []string{"charge", "payment_intent"},
		turns: map[string]map[string][]string{
			"warning_needs_response": {"warning_under_review": {"charge.dispute.updated"}, "warning_closed": {"charge.dispute.closed"},
				"needs_response": {"charge.dispute.updated", "charge.dispute.funds_withdrawn"}},
			"warning_under_review": {"warning_closed": {"charge.dispute.closed"}, "needs_response": {"charge.dispute.updated", "charge.dispute.funds_withdrawn"}},
			"needs_response": {"under_review": {"charge.dispute.updated"}, "lost": {"charge.dispute.closed"},
				"won": {"charge.dispute.closed", "charge.dispute.funds_reinstated"}},
			"under_review": {"lost": {"charge.dispute.closed"}, "won": {"charge.dispute.closed", "charge.dispute.funds_reinstated"}},
		},
	},
	invoiceKind: {
		prefix: "in_", path: "/v1/invoices", amount: "total", status: "draft", made: "invoice.created",
		refs:  []string{"billing_reason", "customer", "number", "parent", "subscription"},
		lists: []string{"customer", "subscription", "status"},
		turns: map[string]map[string][]string{
			"draft":         {"open": {"invoice.finalized"}},
			"open":          {"paid": {"invoice.paid"}, "void": {"invoice.voided"}, "uncollectible": {"invoice.marked_uncollectible"}},
			"uncollectible": {"paid": {"invoice.paid"}, "void": {"invoice.voided"}},
		},
	},
	payoutKind: {
		prefix: "po_", path: "/v1/payouts", amount: "amount", status: "pending", made: "payout.created",
		refs:  []string{"destination", "failure_balance_transaction", "failure_code", "original_payout", "reversed_by"},
		lists: []string{"destination", "status"},
		turns: map[string]map[string][]string{
			"pending":    {"in_transit": {"payout.updated"}, "canceled": {"payout.canceled"}, "failed": {"payout.failed"}, "paid": {"payout.paid"}},
			"in_transit": {"paid": {"payout.paid"}, "failed": {"payout.failed"}},
			"paid":       {"failed": {"payout.failed"}}, // within five business days
		},
	},
	subscriptionKind: {
		prefix: "sub_", path: "/v1/subscriptions", status: "incomplete", made: "customer.subscription.created",
		refs: []string{"canceled_at", "cancel_at", "customer", "ended_at", "trial_end", "trial_start"}, lists: []string{"customer"},
		turns: map[string]map[string][]string{
			"incomplete": {"active": subscriptionUpdated, "incomplete_expired": subscriptionUpdated, "trialing": subscriptionUpdated},
			"trialing":   {"active": subscriptionUpdated, "past_due": subscriptionUpdated, "paused": subscriptionUpdated, "canceled": subscriptionDeleted},
			"active":     {"past_due": subscriptionUpdated, "paused": subscriptionUpdated, "canceled": subscriptionDeleted},
			"past_due":   {"active": subscriptionUpdated, "unpaid": subscriptionUpdated, "canceled": subscriptionDeleted},
			"unpaid":     {"active": subscriptionUpdated, "canceled": subscriptionDeleted},
			"paused":     {"active": subscriptionUpdated, "canceled": subscriptionDeleted},
		},
	},
	transferKind: {
		prefix: "tr_", path: "/v1/transfers", amount: "amount", made: "transfer.created",
		refs:  []string{"destination", "destination_payment", "source_transaction", "transfer_group"},
		lists: []string{"destination", "transfer_group"},
	},
}

var (
	subscriptionUpdated = []string{"customer.subscription.updated"}
	subscriptionDeleted = []string{"customer.subscription.deleted"}
)

func (r *Resource) id() string              { return r.ID }
func (r *Resource) born() time.Time         { return r.Created }
func (r *Resource) home() (kind, placeID)   { return kind(r.Kind), placeID{r.Account, r.Mode} }
func (r *Resource) tags() map[string]string { return r.Metadata }
func (r *Resource) own()                    { r.Metadata, r.Fields = maps.Clone(r.Metadata), maps.Clone(r.Fields) }

func (r *Resource) ref(name string) string {
	switch name {
	case "status":
		return r.Status
	case "currency":
		return r.Currency
	}
	text, _ := r.Fields[name].(string)
	return text
}

func (r *Resource) show(f fixtures) map[string]any {
	if r.deleted {
		return map[string]any{"id": r.ID, "object": r.Kind, "deleted": true}
	}
	shape := forms[kind(r.Kind)]
	own := map[string]any{"id": r.ID, "created": r.Created.Unix(), "livemode": r.Mode == "live", "metadata": texts(r.Metadata)}
	if shape.amount != "" {
		own[shape.amount], own["currency"] = r.Amount, r.Currency
	}
	if shape.status != "" {
		own["status"] = r.Status
	}
	for _, name := range shape.refs {
		own[name] = nil
	}
	maps.Copy(own, r.Fields)
	return f.like(r.Kind, own)
}

// with sets fields of a resource that snapshots may share.
func (r *Resource) with(fields map[string]any) {
	r.Fields = maps.Clone(r.Fields)
	if r.Fields == nil {
		r.Fields = map[string]any{}
	}
	maps.Copy(r.Fields, fields)
}

// AddResource seeds an object of a further kind. Kind, Account and Mode are needed; by
// default it is made now, in usd, in its kind's first status. A dispute marks its charge
// and takes its amount from the balance.
func (s *Server) AddResource(r Resource) (Resource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shape, known := forms[kind(r.Kind)]
	if !known {
		return Resource{}, fmt.Errorf("stripetest: seed %s %s: no such kind; known are %v", r.Kind, r.ID, slices.Sorted(maps.Keys(forms)))
	}
	p, err := s.seedPlace(&r)
	if err != nil {
		return Resource{}, err
	}
	if r.Key != "" && r.RequestID == "" {
		r.RequestID = s.requestID()
	}
	if r.Status == "" {
		r.Status = shape.status
	}
	s.fill(&r.ID, shape.prefix, &r.Currency, &r.Created)
	made := r
	made.own()
	m := moment{at: r.Created, key: r.Key, requestID: r.RequestID}
	s.put(p, &made)
	if shape.made != "" {
		s.emit(p, shape.made, &made, m)
	}
	if made.Kind == string(disputeKind) {
		s.dispute(p, &made, m)
	}
	return copyOf(&made), nil
}

// TurnResource changes an object's status now, as its life allows, and makes the events
// that tell of it. A customer turns "deleted". Reason is the failure_code of a payout and
// the payment_status of a session.
func (s *Server) TurnResource(of Resource, t Turn) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opt.Now()
	s.advance(now)
	p := s.places[placeID{of.Account, of.Mode}]
	if p == nil {
		return fmt.Errorf("stripetest: turn %s %s: account %q in mode %q is not among Options.Accounts", of.Kind, of.ID, of.Account, of.Mode)
	}
	r, _ := p.object(kind(of.Kind), of.ID).(*Resource)
	if r == nil {
		return fmt.Errorf("stripetest: turn %s %s: account %s %s has none", of.Kind, of.ID, of.Account, of.Mode)
	}
	events, may := forms[kind(r.Kind)].turns[r.Status][t.Status]
	if !may || r.deleted {
		return fmt.Errorf("stripetest: turn %s %s: from %q it cannot become %q", r.Kind, r.ID, r.Status, t.Status)
	}
	m := moment{at: now}
	s.become(p, r, t, m)
	for _, typ := range events {
		s.emit(p, typ, r, m)
	}
	r.deleted = t.Status == "deleted"
	return nil
}

// ReverseTransfer takes back a part of a transfer, or all that is left of it.
func (s *Server) ReverseTransfer(of Resource, amount int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.places[placeID{of.Account, of.Mode}]
	if p == nil {
		return fmt.Errorf("stripetest: reverse %s: account %q in mode %q is not among Options.Accounts", of.ID, of.Account, of.Mode)
	}
	r, _ := p.object(transferKind, of.ID).(*Resource)
	if r == nil {
		return fmt.Errorf("stripetest: reverse %s: account %s %s has no such transfer", of.ID, of.Account, of.Mode)
	}
	before, _ := r.Fields["amount_reversed"].(int64)
	if amount <= 0 || amount > r.Amount-before {
		return fmt.Errorf("stripetest: reverse %s: %d of the %d that are left", of.ID, amount, r.Amount-before)
	}
	r.with(map[string]any{"amount_reversed": before + amount, "reversed": before+amount == r.Amount})
	s.emit(p, "transfer.reversed", r, moment{at: s.opt.Now()})
	return nil
}

// Resources gives the true state of all objects of a further kind now, in order of creation.
func (s *Server) Resources(of string) []Resource { return truth[Resource](s, kind(of)) }
