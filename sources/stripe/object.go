package stripe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// object holds the fields of all kinds of objects that are read and kept. It is the
// allow-list: whatever is not a field here never leaves this package. Times are seconds
// since 1970, amounts minor units. What Stripe does not send for a kind is absent.
type object struct {
	kind string // ours

	ID       string                     `json:"id"`
	Object   string                     `json:"object"`
	Livemode *bool                      `json:"livemode,omitempty"` // refunds have none
	Status   string                     `json:"status,omitempty"`
	Amount   *int64                     `json:"amount,omitempty"`
	Currency string                     `json:"currency,omitempty"`
	Created  int64                      `json:"created"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"` // only the marker is kept

	// Under what it hangs.
	Charge            link    `json:"charge,omitzero"`
	PaymentIntent     link    `json:"payment_intent,omitzero"`
	Invoice           link    `json:"invoice,omitzero"`
	Customer          link    `json:"customer,omitzero"`
	Subscription      link    `json:"subscription,omitzero"`
	LatestCharge      link    `json:"latest_charge,omitzero"`
	SourceTransaction link    `json:"source_transaction,omitzero"` // transfer: the charge that it shares
	Destination       link    `json:"destination,omitzero"`        // transfer: an account; payout: a bank account or card
	OriginalPayout    link    `json:"original_payout,omitzero"`    // payout that takes back another one
	ReversedBy        link    `json:"reversed_by,omitzero"`        // payout that was taken back
	Parent            *origin `json:"parent,omitempty"`            // invoice
	Application       link    `json:"application,omitzero"`        // the Connect application that made it

	// What moved, and when.
	AmountCaptured *int64       `json:"amount_captured,omitempty"` // charge
	AmountRefunded *int64       `json:"amount_refunded,omitempty"` // charge
	AmountReceived *int64       `json:"amount_received,omitempty"` // payment intent
	AmountReversed *int64       `json:"amount_reversed,omitempty"` // transfer
	AmountPaid     *int64       `json:"amount_paid,omitempty"`     // invoice
	AmountTotal    *int64       `json:"amount_total,omitempty"`    // checkout session
	Total          *int64       `json:"total,omitempty"`           // invoice
	Balance        link         `json:"balance_transaction,omitzero"`
	Balances       []link       `json:"balance_transactions,omitempty"` // dispute: taken, and given back
	CanceledAt     *int64       `json:"canceled_at,omitempty"`          // payment intent, subscription
	EndedAt        *int64       `json:"ended_at,omitempty"`             // subscription
	VoidedAt       *int64       `json:"voided_at,omitempty"`            // credit note
	ArrivalDate    *int64       `json:"arrival_date,omitempty"`         // payout
	Transitions    *transitions `json:"status_transitions,omitempty"`   // invoice

	// What became of it, and why.
	Captured            *bool         `json:"captured,omitempty"`       // charge
	Refunded            *bool         `json:"refunded,omitempty"`       // charge
	Disputed            *bool         `json:"disputed,omitempty"`       // charge
	Reversed            *bool         `json:"reversed,omitempty"`       // transfer
	Automatic           *bool         `json:"automatic,omitempty"`      // payout
	PaymentStatus       string        `json:"payment_status,omitempty"` // checkout session
	Reason              *string       `json:"reason,omitempty"`         // refund, dispute, credit note
	BillingReason       *string       `json:"billing_reason,omitempty"` // invoice
	PendingReason       *string       `json:"pending_reason,omitempty"` // refund
	FailureReason       *string       `json:"failure_reason,omitempty"` // refund
	FailureCode         *string       `json:"failure_code,omitempty"`   // charge, payout
	CancellationReason  *string       `json:"cancellation_reason,omitempty"`
	CancellationDetails *cancellation `json:"cancellation_details,omitempty"` // subscription
	LastError           *lastError    `json:"last_payment_error,omitempty"`   // payment intent

	// What its maker calls it.
	Number            *string `json:"number,omitempty"`              // invoice, credit note
	ClientReferenceID *string `json:"client_reference_id,omitempty"` // checkout session
}

// origin is what made an invoice.
type origin struct {
	Subscription struct {
		Subscription link `json:"subscription,omitzero"`
	} `json:"subscription_details,omitzero"`
}

// transitions are the times at which an invoice changed.
type transitions struct {
	Finalized     *int64 `json:"finalized_at,omitempty"`
	Paid          *int64 `json:"paid_at,omitempty"`
	Voided        *int64 `json:"voided_at,omitempty"`
	Uncollectible *int64 `json:"marked_uncollectible_at,omitempty"`
}

// cancellation is why a subscription was ended, without what people wrote about it.
type cancellation struct {
	Reason *string `json:"reason,omitempty"`
}

// lastError is why a payment intent was last declined, without its message.
type lastError struct {
	Code string `json:"code,omitempty"`
}

// link is a reference to another object: an id, or the object itself where it was
// expanded, of which the few fields below are kept.
type link struct {
	ID             string `json:"id"`
	Livemode       *bool  `json:"livemode,omitempty"`
	AmountRefunded *int64 `json:"amount_refunded,omitempty"` // this and the next two: of an expanded charge
	AmountCaptured *int64 `json:"amount_captured,omitempty"`
	Amount         *int64 `json:"amount,omitempty"` // this and below: of an expanded balance transaction
	Fee            *int64 `json:"fee,omitempty"`
	Net            *int64 `json:"net,omitempty"`
	Currency       string `json:"currency,omitempty"`
}

func (l *link) UnmarshalJSON(b []byte) error {
	type bare link
	into := any((*bare)(l))
	if b[0] == '"' {
		into = &l.ID
	}
	if err := json.Unmarshal(b, into); err != nil {
		return err
	}
	if !isID(l.ID) {
		l.ID = ""
	}
	return nil
}

// isID reports whether a text can be stored as an id.
func isID(s string) bool { return s != "" && len(s) <= maxText && !strings.ContainsRune(s, 0) }

func (l link) MarshalJSON() ([]byte, error) {
	if l == (link{ID: l.ID}) {
		return json.Marshal(l.ID)
	}
	type bare link
	return json.Marshal(bare(l))
}

// Stripe's times lie within these; anything else is not a time.
const (
	minTime = 946684800  // 2000
	maxTime = 4102444800 // 2100
	maxText = 1024
)

// readObject reads one object of a kind. An object that cannot be understood in full
// is an error: half of an object must not become evidence.
func readObject(kind string, raw []byte) (object, error) {
	k := kinds[kind]
	if k == nil {
		return object{}, errors.New("not a kind that is observed")
	}
	o := object{kind: kind}
	if err := json.Unmarshal(raw, &o); err != nil {
		return object{}, fmt.Errorf("%s: not the JSON that the API sends", kind)
	}
	if field := o.fault(k); field != "" {
		return object{}, fmt.Errorf("%s: field %s is missing or not what the API sends", kind, field)
	}
	return o, nil
}

// fault names the first field without which an object is not understood, empty when it is.
func (o object) fault(k *kind) string {
	_, known := k.status(o)
	switch {
	case o.Object != k.objectName(o.kind):
		return "object"
	case !isID(o.ID):
		return "id"
	case o.Created < minTime || o.Created >= maxTime:
		return "created"
	case !known:
		return "status"
	case k.bare:
		return ""
	}
	return o.moneyFault()
}

// moneyFault is the part of fault that is about the amount. An invoice may be in the
// customer's favour, a payout may take from the bank, and a checkout that only stores a
// card has no amount.
func (o object) moneyFault() string {
	amount, field := o.asked(), "amount"
	if o.kind == kindInvoice {
		field = "total"
	}
	signed := o.kind == kindInvoice || o.kind == kindPayout
	switch {
	case amount == nil && o.kind == kindCheckoutSession:
		return ""
	case amount == nil || *amount < 0 && !signed:
		return field
	case !isCurrency(o.Currency):
		return "currency"
	}
	return ""
}

// asked is the amount that an object was made for.
func (o object) asked() *int64 {
	switch o.kind {
	case kindInvoice:
		return o.Total
	case kindCheckoutSession:
		return o.AmountTotal
	}
	return o.Amount
}

func isCurrency(s string) bool {
	if len(s) != 3 {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// reference gives the marker's value, when it is text that an operation's id can be.
func (o object) reference(marker string) string {
	var s string
	if json.Unmarshal(o.Metadata[marker], &s) != nil || len(s) > maxText || strings.ContainsRune(s, 0) {
		return ""
	}
	return s
}

// subscription is the one that an invoice is for, in whichever place an API version has it.
func (o object) subscription() link {
	if o.Subscription.ID == "" && o.Parent != nil {
		return o.Parent.Subscription.Subscription
	}
	return o.Subscription
}

// naturalReference is what the business itself calls the object. A value that may hold an
// address or a sentence is not kept.
func (o object) naturalReference() string {
	for _, name := range []*string{o.Number, o.ClientReferenceID} {
		if name != nil && plainNames.MatchString(*name) {
			return *name
		}
	}
	return ""
}

// plainNames are numbers of invoices and the like.
var plainNames = regexp.MustCompile(`^[\p{L}\p{N}._:/#+-]{1,200}$`)

// reduced gives the object as it is kept: the fields above, and of the metadata only
// the marker.
func (o object) reduced(marker string) []byte {
	mark, ok := o.Metadata[marker]
	o.Metadata = nil
	if ok {
		o.Metadata = map[string]json.RawMessage{marker: mark}
	}
	if o.LastError != nil && !codeWords.MatchString(o.LastError.Code) {
		o.LastError = nil
	}
	if o.CancellationDetails != nil && (o.CancellationDetails.Reason == nil || !codeWords.MatchString(*o.CancellationDetails.Reason)) {
		o.CancellationDetails = nil
	}
	for _, word := range []**string{&o.Reason, &o.BillingReason, &o.PendingReason, &o.FailureReason, &o.FailureCode, &o.CancellationReason} {
		keepIf(word, codeWords)
	}
	keepIf(&o.Number, plainNames)
	keepIf(&o.ClientReferenceID, plainNames)
	if !codeWords.MatchString(o.PaymentStatus) {
		o.PaymentStatus = ""
	}
	if !isCurrency(o.Currency) {
		o.Currency = ""
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil {
		return nil // unreachable: every field was read from JSON
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// keepIf drops a text that is not of a shape.
func keepIf(text **string, shape *regexp.Regexp) {
	if *text != nil && !shape.MatchString(**text) {
		*text = nil
	}
}

// wrongMode reports that the object itself says that it is of another mode. Refunds do
// not say; an expanded charge says it for them.
func (o object) wrongMode(mode string) bool {
	for _, live := range []*bool{o.Livemode, o.Charge.Livemode, o.PaymentIntent.Livemode, o.Balance.Livemode} {
		if live != nil && *live != (mode == modeLive) {
			return true
		}
	}
	return false
}

func (o object) created() time.Time { return time.Unix(o.Created, 0).UTC() }
