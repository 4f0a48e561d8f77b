package stripetest

import (
	"maps"
	"time"
)

// Refund is a refund as it truly is. Amounts are minor units.
type Refund struct {
	ID, Account, Mode  string
	Charge             string
	PaymentIntent      string
	Amount             int64
	Currency           string // lower case, as the provider writes it
	Status             string // pending, requires_action, succeeded, failed, canceled
	Reason             string // why it was asked for: duplicate, fraudulent, requested_by_customer
	PendingReason      string
	FailureReason      string
	Metadata           map[string]string
	Created            time.Time
	BalanceTransaction string
	FailureTransaction string // failure_balance_transaction
	Key, RequestID     string // who asked; empty for what nobody asked for through the API
}

// Charge is a charge as it truly is. AmountRefunded is the running total of its
// refunds that are neither failed nor canceled.
type Charge struct {
	ID, Account, Mode  string
	Amount             int64
	AmountCaptured     int64
	AmountRefunded     int64
	Currency           string
	Status             string // succeeded, pending, failed
	Captured           bool
	Disputed           bool
	Customer           string
	PaymentIntent      string
	PaymentMethod      string
	FailureCode        string
	Metadata           map[string]string
	Created            time.Time
	BalanceTransaction string
	Key, RequestID     string

	grows bool // made by AddRefund for want of a charge: its amount follows its refunds
}

// PaymentIntent is a payment intent as it truly is.
type PaymentIntent struct {
	ID, Account, Mode  string
	Amount             int64
	AmountCapturable   int64
	AmountReceived     int64
	Currency           string
	Status             string
	CaptureMethod      string
	Customer           string
	Description        string
	PaymentMethod      string
	LatestCharge       string
	CancellationReason string
	LastErrorCode      string
	Metadata           map[string]string
	Created            time.Time
	CanceledAt         time.Time
	Key, RequestID     string
}

// Event is one event. Key and RequestID are empty for what the provider did by itself.
type Event struct {
	ID, Account, Mode string
	Type              string
	Created           time.Time
	ObjectID          string
	Key, RequestID    string

	snapshot  object       // the object as it was then
	children  []object     // and what hung under it, where a version shows it
	owed      map[int]bool // numbers of the endpoints that have not taken it
	connected bool
	version   string
}

func (r *Refund) own()        { r.Metadata = maps.Clone(r.Metadata) }
func (c *Charge) own()        { c.Metadata = maps.Clone(c.Metadata) }
func (i *PaymentIntent) own() { i.Metadata = maps.Clone(i.Metadata) }
func (e *Event) own()         { e.owed = maps.Clone(e.owed) }
