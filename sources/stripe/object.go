package stripe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// The kinds of effects that this source observes.
const (
	kindRefund        = "refund"
	kindPaymentIntent = "payment_intent"
	kindCharge        = "charge"
)

// object holds the fields of a refund, a charge or a payment intent that are read and
// kept. It is the allow-list: whatever is not a field here never leaves this package.
// Times are seconds since 1970, amounts minor units.
type object struct {
	ID       string `json:"id"`
	Object   string `json:"object"`
	Livemode *bool  `json:"livemode,omitempty"` // refunds have none
	Status   string `json:"status"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Created  int64  `json:"created"`

	Metadata map[string]json.RawMessage `json:"metadata,omitempty"` // only the marker is kept

	Charge        link `json:"charge,omitzero"`
	PaymentIntent link `json:"payment_intent,omitzero"`
	Invoice       link `json:"invoice,omitzero"`
	Customer      link `json:"customer,omitzero"`
	LatestCharge  link `json:"latest_charge,omitzero"`
	Balance       link `json:"balance_transaction,omitzero"`

	Reason        *string `json:"reason,omitempty"`         // refund
	PendingReason *string `json:"pending_reason,omitempty"` // refund
	FailureReason *string `json:"failure_reason,omitempty"` // refund
	FailureCode   *string `json:"failure_code,omitempty"`   // charge

	Captured       *bool  `json:"captured,omitempty"`        // charge
	Refunded       *bool  `json:"refunded,omitempty"`        // charge
	Disputed       *bool  `json:"disputed,omitempty"`        // charge
	AmountCaptured *int64 `json:"amount_captured,omitempty"` // charge
	AmountRefunded *int64 `json:"amount_refunded,omitempty"` // charge

	AmountReceived     *int64     `json:"amount_received,omitempty"` // payment intent
	CanceledAt         *int64     `json:"canceled_at,omitempty"`     // payment intent
	CancellationReason *string    `json:"cancellation_reason,omitempty"`
	LastError          *lastError `json:"last_payment_error,omitempty"` // payment intent
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
	AmountRefunded *int64 `json:"amount_refunded,omitempty"` // of an expanded charge
	Amount         *int64 `json:"amount,omitempty"`          // this and below: of an expanded balance transaction
	Fee            *int64 `json:"fee,omitempty"`
	Net            *int64 `json:"net,omitempty"`
	Currency       string `json:"currency,omitempty"`
}

func (l *link) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, &l.ID)
	}
	type bare link
	return json.Unmarshal(b, (*bare)(l))
}

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
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		return object{}, fmt.Errorf("%s: not the JSON that the API sends", kind)
	}
	bad := func(field string) (object, error) {
		return object{}, fmt.Errorf("%s: field %s is missing or not what the API sends", kind, field)
	}
	switch {
	case o.Object != kind:
		return bad("object")
	case o.ID == "" || len(o.ID) > maxText:
		return bad("id")
	case o.Created < minTime || o.Created >= maxTime:
		return bad("created")
	case o.Amount < 0:
		return bad("amount")
	case !isCurrency(o.Currency):
		return bad("currency")
	}
	if _, ok := statusOf(kind, o); !ok {
		return bad("status")
	}
	return o, nil
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
	for _, word := range []**string{&o.Reason, &o.PendingReason, &o.FailureReason, &o.FailureCode, &o.CancellationReason} {
		if *word != nil && !codeWords.MatchString(**word) {
			*word = nil
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(o); err != nil {
		return nil // unreachable: every field was read from JSON
	}
	return bytes.TrimRight(b.Bytes(), "\n")
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

// statusOf maps an object's status to an effect's, false when it is not known to us.
//
// A payment intent that still wants a payment method or a confirmation is in flight:
// nothing has happened yet, and it still may at any time, so that neither "failed" nor
// "not there" is true of it. A hold that was placed and not captured is in flight too.
func statusOf(kind string, o object) (recon.EffectStatus, bool) {
	switch kind {
	case kindRefund:
		switch o.Status {
		case "pending", "requires_action":
			return recon.InFlight, true
		case "succeeded":
			return recon.Completed, true
		case "failed", "canceled":
			return recon.EffectFailed, true
		}
	case kindPaymentIntent:
		switch o.Status {
		case "requires_payment_method", "requires_confirmation", "requires_action", "processing", "requires_capture":
			return recon.InFlight, true
		case "succeeded":
			return recon.Completed, true
		case "canceled":
			return recon.EffectFailed, true
		}
	case kindCharge:
		return chargeStatus(o)
	}
	return "", false
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
