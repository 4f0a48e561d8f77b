package recon

import (
	"encoding/json"
	"time"
)

type (
	// OperationID names one intent. The product makes UUIDv7s; imported ledgers
	// bring their own, so it is opaque text of at most 1,024 characters.
	OperationID string
	// SourceName is the name that the configuration gives to a source.
	SourceName string
)

// Mark is something that a sender really gave to the provider and by which its
// effect can be found again.
type Mark string

const (
	MarkKey       Mark = "key"       // the idempotency key was sent
	MarkReference Mark = "reference" // our operation id stands in the provider's metadata
)

// Operation is one business intent, recorded before anything is sent. Times are
// UTC; a zero time, an empty text and a zero Money mean "not known" or "not there".
//
// The fields up to Metadata are those of the operation line (contracts: JSON). The
// rest is kept by the ledger alone and stays zero in a comparison of two files.
type Operation struct {
	ID        OperationID
	Source    SourceName
	Action    string
	Target    string // our name for what it is about: order:4417
	Parent    string // the provider's object it hangs under: pi_…, ch_…
	Key       string // the idempotency key, one for ever
	Money     Money
	State     State
	CreatedAt time.Time
	SentAt    time.Time // start of the first attempt; zero when certainly nothing was sent
	ClosedAt  time.Time
	EffectID  string
	Account   string // empty: not known, and then nothing is absent
	Mode      string
	Reference string // a natural reference that the provider keeps: supplier + invoice number
	Group     string
	Run       string
	ToolCall  string
	Case      string
	Step      *int64
	ErrorCode string
	Marks     []Mark // what was really sent; none for imported lines that do not say
	Metadata  json.RawMessage

	Version       int64 // guards every conclusion: another writer was first when it differs
	UnknownSince  time.Time
	LeaseUntil    time.Time // end of the last lease, over or not
	KeyExpiresAt  time.Time
	LastClass     AttemptClass // of the last finished attempt; empty before
	InDoubt       bool         // some attempt may have had an effect that nobody reported
	Attempts      int
	Released      bool // a granted release that no claim has used, one that lapsed too
	PolicyVersion int
}

// FirstPossible is the earliest time at which an effect of the operation can exist,
// less five minutes because the provider's clock is not ours.
func (o Operation) FirstPossible() time.Time {
	t := o.SentAt
	if t.IsZero() {
		t = o.CreatedAt
	}
	return t.Add(-ClockSkew)
}

// ClockSkew is how far a provider's clock may differ from ours when windows are
// compared. Five minutes is what webhook signatures commonly tolerate.
const ClockSkew = 5 * time.Minute
