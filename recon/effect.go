package recon

import (
	"encoding/json"
	"time"
)

// EffectStatus is what became of an effect at its provider.
type EffectStatus string

const (
	InFlight  EffectStatus = "in_flight" // begun, not done
	Completed EffectStatus = "completed" // it happened
	// EffectFailed is an effect that came to nothing: failed, cancelled, declined.
	EffectFailed EffectStatus = "failed"
	Reversed     EffectStatus = "reversed" // it happened and was undone later
)

// Valid reports whether s is one of the four statuses.
func (s EffectStatus) Valid() bool { return s.Rank() > 0 }

// Rank orders statuses along an effect's life: in_flight 1, completed 2, failed and
// reversed 3. A merge never moves to a lower rank on event time alone.
func (s EffectStatus) Rank() int {
	switch s {
	case InFlight:
		return 1
	case Completed:
		return 2
	case EffectFailed, Reversed:
		return 3
	}
	return 0
}

// Live reports whether the effect exists or may still come to exist.
func (s EffectStatus) Live() bool { return s == InFlight || s == Completed }

// EffectIdentity is what makes two observations the same effect. Account and mode
// are part of it: an effect of another mode never stands for this one.
type EffectIdentity struct {
	System, Account, Mode, ID string
}

// EffectRef names an effect to people and in findings.
type EffectRef struct {
	Source  SourceName `json:"source"`
	Account string     `json:"account"`
	Mode    string     `json:"mode"`
	Kind    string     `json:"kind"`
	ID      string     `json:"id"`
}

// Effect is what exists at a provider because somebody asked for it.
type Effect struct {
	ID               string
	Source           SourceName
	System           string // the same for an API source and the export files of one provider
	Kind             string // refund, payment_intent, charge, transfer…
	Status           EffectStatus
	Money            Money
	Parent           string
	OtherParents     []string // further objects it hangs under
	Target           string
	Reference        string // our operation id (or group) as the provider holds it
	NaturalReference string
	Key              string
	CreatedAt        time.Time
	UpdatedAt        time.Time
	Account          string
	Mode             string
	Fee              *int64 // nil: not known, never 0
	Net              *int64
	Settlement       Money
	CreatedBy        string
	FailureReason    string
	CausedBy         string // the effect it follows from, such as a partial capture
	ParentTotal      *int64 // the parent's own running total, where the provider shows it
	Metadata         json.RawMessage

	// Owner is the operation or group that the effect is already linked to in the
	// ledger; empty while it waits on the shelf.
	Owner string
	// NeedsRead asks the next look to read the object: what we hold is in doubt.
	NeedsRead bool
}

// Identity gives the effect's identity.
func (e Effect) Identity() EffectIdentity {
	return EffectIdentity{System: e.System, Account: e.Account, Mode: e.Mode, ID: e.ID}
}

// Ref gives the effect's name for people.
func (e Effect) Ref() EffectRef {
	return EffectRef{Source: e.Source, Account: e.Account, Mode: e.Mode, Kind: e.Kind, ID: e.ID}
}

// ShowsAmount reports whether the effect shows what it moved. An amount of nothing that is
// shown has a currency, and differs from every amount of an operation.
func (e Effect) ShowsAmount() bool { return e.Money.Minor != 0 || e.Money.Currency != "" }

// Lost reports whether the effect is a dispute that was lost: the customer's bank took the
// money of its parents back for good.
func (e Effect) Lost() bool { return e.Kind == "dispute" && e.Status == EffectFailed }

// Under reports whether parent is one of the objects that the effect hangs under.
func (e Effect) Under(parent string) bool {
	if e.Parent == parent {
		return true
	}
	for _, p := range e.OtherParents {
		if p == parent {
			return true
		}
	}
	return false
}
