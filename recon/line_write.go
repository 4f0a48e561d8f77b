package recon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// operationLine is the operation line (contracts: JSON) in the order it is written.
// Only names that stand in the contract may be added, and none may be renamed.
type operationLine struct {
	ID        OperationID     `json:"id"`
	Source    SourceName      `json:"source"`
	Action    string          `json:"action"`
	Target    string          `json:"target"`
	Parent    string          `json:"parent,omitempty"`
	Key       string          `json:"key,omitempty"`
	Amount    int64           `json:"amount,omitempty"`
	Currency  string          `json:"currency,omitempty"`
	State     State           `json:"state"`
	CreatedAt time.Time       `json:"created_at"`
	SentAt    time.Time       `json:"sent_at,omitzero"`
	ClosedAt  time.Time       `json:"closed_at,omitzero"`
	EffectID  string          `json:"effect_id,omitempty"`
	Account   string          `json:"account,omitempty"`
	Mode      string          `json:"mode,omitempty"`
	Reference string          `json:"reference,omitempty"`
	Group     string          `json:"group,omitempty"`
	Run       string          `json:"run,omitempty"`
	ToolCall  string          `json:"tool_call,omitempty"`
	Case      string          `json:"case,omitempty"`
	Step      *int64          `json:"step,omitempty"`
	ErrorCode string          `json:"error_code,omitempty"`
	Marks     []Mark          `json:"marks,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
}

// effectLine is the effect line (contracts: JSON) in the order it is written.
type effectLine struct {
	ID                 string          `json:"id"`
	Source             SourceName      `json:"source"`
	Kind               string          `json:"kind"`
	Status             EffectStatus    `json:"status"`
	Amount             int64           `json:"amount,omitempty"`
	Currency           string          `json:"currency,omitempty"`
	Parent             string          `json:"parent,omitempty"`
	Target             string          `json:"target,omitempty"`
	Reference          string          `json:"reference,omitempty"`
	NaturalReference   string          `json:"natural_reference,omitempty"`
	Key                string          `json:"key,omitempty"`
	CreatedAt          time.Time       `json:"created_at"`
	UpdatedAt          time.Time       `json:"updated_at,omitzero"`
	OtherParents       []string        `json:"other_parents,omitempty"`
	Account            string          `json:"account,omitempty"`
	Mode               string          `json:"mode,omitempty"`
	Fee                *int64          `json:"fee,omitempty"`
	Net                *int64          `json:"net,omitempty"`
	SettlementAmount   int64           `json:"settlement_amount,omitempty"`
	SettlementCurrency string          `json:"settlement_currency,omitempty"`
	CreatedBy          string          `json:"created_by,omitempty"`
	FailureReason      string          `json:"failure_reason,omitempty"`
	CausedBy           string          `json:"caused_by,omitempty"`
	ParentTotal        *int64          `json:"parent_total,omitempty"`
	Metadata           json.RawMessage `json:"metadata,omitempty"`
}

// MarshalOperation writes the operation line of o, without a line end. What the
// ledger alone keeps (version, leases, attempts) is not part of it.
func MarshalOperation(o Operation) ([]byte, error) {
	return marshalLine(operationLine{
		ID: o.ID, Source: o.Source, Action: o.Action, Target: o.Target, Parent: o.Parent, Key: o.Key,
		Amount: o.Money.Minor, Currency: o.Money.Currency, State: o.State,
		CreatedAt: o.CreatedAt.UTC(), SentAt: o.SentAt.UTC(), ClosedAt: o.ClosedAt.UTC(),
		EffectID: o.EffectID, Account: o.Account, Mode: o.Mode, Reference: o.Reference, Group: o.Group,
		Run: o.Run, ToolCall: o.ToolCall, Case: o.Case, Step: o.Step, ErrorCode: o.ErrorCode,
		Marks: o.Marks, Metadata: o.Metadata,
	})
}

// MarshalEffect writes the effect line of e, without a line end. Its owner and
// system are the ledger's and the configuration's, not part of it.
func MarshalEffect(e Effect) ([]byte, error) {
	return marshalLine(effectLine{
		ID: e.ID, Source: e.Source, Kind: e.Kind, Status: e.Status,
		Amount: e.Money.Minor, Currency: e.Money.Currency, Parent: e.Parent, Target: e.Target,
		Reference: e.Reference, NaturalReference: e.NaturalReference, Key: e.Key,
		CreatedAt: e.CreatedAt.UTC(), UpdatedAt: e.UpdatedAt.UTC(), OtherParents: e.OtherParents,
		Account: e.Account, Mode: e.Mode, Fee: e.Fee, Net: e.Net,
		SettlementAmount: e.Settlement.Minor, SettlementCurrency: e.Settlement.Currency,
		CreatedBy: e.CreatedBy, FailureReason: e.FailureReason, CausedBy: e.CausedBy,
		ParentTotal: e.ParentTotal, Metadata: e.Metadata,
	})
}

func marshalLine(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // ids with & and < stay legible and greppable
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write line: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
