package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// importRow is one imported operation with its first journal entry and its plan, as
// import.sql reads it.
type importRow struct {
	line int

	ID           string          `json:"operation_id"`
	Source       string          `json:"source"`
	Action       string          `json:"action"`
	Target       string          `json:"target"`
	Parent       *string         `json:"parent"`
	Key          *string         `json:"key"`
	Amount       *int64          `json:"amount"`
	Currency     *string         `json:"currency"`
	State        recon.State     `json:"state"`
	CreatedAt    time.Time       `json:"created_at"`
	SentAt       *time.Time      `json:"sent_at"`
	ClosedAt     *time.Time      `json:"closed_at"`
	EffectID     *string         `json:"effect_id"`
	Account      *string         `json:"account"`
	Mode         string          `json:"mode"`
	Reference    *string         `json:"reference"`
	Group        *string         `json:"group"`
	Run          *string         `json:"run"`
	ToolCall     *string         `json:"tool_call"`
	Case         *string         `json:"case"`
	Step         *int64          `json:"step"`
	ErrorCode    *string         `json:"error_code"`
	Marks        []recon.Mark    `json:"marks"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	Policy       int             `json:"policy_version"`
	Attempts     int             `json:"attempts"`
	InDoubt      bool            `json:"in_doubt"`
	LeaseUntil   *time.Time      `json:"lease_until"`
	KeyExpiresAt *time.Time      `json:"key_expires_at"`
	UnknownSince *time.Time      `json:"unknown_since"`

	Body        string     `json:"body"`
	Hash        string     `json:"hash"` // hex
	ContentHash string     `json:"-"`    // part of Body
	Closed      bool       `json:"closed"`
	NextCheck   *time.Time `json:"next_check"`
	Rung        int        `json:"rung"`
}

// importedBody is the first journal entry of an imported operation. It holds a hash of
// the whole line, by which the same line is known again.
type importedBody struct {
	Kind          recon.EntryKind  `json:"kind"`
	At            time.Time        `json:"at"`
	By            string           `json:"by"`
	To            recon.State      `json:"to"`
	Source        recon.SourceName `json:"source"`
	Action        string           `json:"action"`
	Key           string           `json:"key,omitempty"`
	EffectID      string           `json:"effect_id,omitempty"`
	PolicyVersion int              `json:"policy_version"`
	ContentHash   string           `json:"content_hash"`
}

func importRowOf(o recon.Operation, p recon.Policy, now time.Time) (importRow, error) {
	content, err := contentHash(o)
	if err != nil {
		return importRow{}, err
	}
	body, err := encode(importedBody{
		Kind: recon.EntryOpened, At: now, By: "import", To: o.State, Source: o.Source, Action: o.Action,
		Key: o.Key, EffectID: o.EffectID, PolicyVersion: p.Version, ContentHash: content,
	})
	if err != nil {
		return importRow{}, err
	}
	hash := sha256.Sum256(body) // the first of its chain
	r := importRow{
		ID: string(o.ID), Source: string(o.Source), Action: o.Action, Target: o.Target, Parent: optional(o.Parent),
		Key: optional(o.Key), Currency: optional(o.Money.Currency), State: o.State, CreatedAt: stored(o.CreatedAt),
		SentAt: orNull(o.SentAt), ClosedAt: orNull(o.ClosedAt), EffectID: optional(o.EffectID),
		Account: optional(o.Account), Mode: o.Mode, Reference: optional(o.Reference), Group: optional(o.Group),
		Run: optional(o.Run), ToolCall: optional(o.ToolCall), Case: optional(o.Case), Step: o.Step,
		ErrorCode: optional(o.ErrorCode), Marks: emptyList(o.Marks), Metadata: o.Metadata, Policy: p.Version,
		Body: string(body), Hash: hex.EncodeToString(hash[:]), ContentHash: content,
	}
	if o.Money.Minor != 0 {
		r.Amount = &o.Money.Minor
	}
	r.doubt(o, p)
	r.plan(o, p, now)
	return r, nil
}

// doubt fills in what the ledger would know had the operation been sent through it.
// Where the line is silent it assumes the worst: an attempt of which nobody knows how
// it ended, under a lease of the policy's length.
func (r *importRow) doubt(o recon.Operation, p recon.Policy) {
	sent := o.SentAt
	if sent.IsZero() && (o.State == recon.Unknown || o.State == recon.InProgress) {
		sent = o.CreatedAt
	}
	if !o.State.Open() || sent.IsZero() {
		return
	}
	r.Attempts, r.InDoubt = 1, true
	r.LeaseUntil = orNull(sent.Add(p.LeaseMax.Std()))
	if o.Key != "" && p.KeyLifetime > 0 {
		r.KeyExpiresAt = orNull(sent.Add(p.KeyLifetime.Std()))
	}
	if o.State != recon.InProgress && o.State != recon.Pending {
		r.UnknownSince = orNull(sent)
	}
}

// plan says when to look first. Open operations are looked at as soon as their policy
// would have, which for most is past: they are due at once, also for a run that is told
// an earlier time (--now).
func (r *importRow) plan(o recon.Operation, p recon.Policy, now time.Time) {
	next := o.CreatedAt.Add(p.CheckAfter.Std())
	switch {
	case !o.State.Open():
		r.Closed = true
		r.NextCheck, r.Rung = reverification(o, now)
		return
	case o.State == recon.Pending:
		next = o.CreatedAt.Add(p.StalePending.Std())
	case r.LeaseUntil != nil:
		next = r.LeaseUntil.Add(p.CheckAfter.Std())
	}
	r.NextCheck = orNull(next)
}

// reverifyAfter is the slow ladder of closed operations, from when they closed.
var reverifyAfter = []time.Duration{24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, 90 * 24 * time.Hour}

// reverification is the first rung of the slow ladder that is not past, moved by up to a
// fifth either way so that a month of closings is not asked for at once. A line without
// closed_at counts from when it was created.
func reverification(o recon.Operation, now time.Time) (*time.Time, int) {
	from := o.ClosedAt
	if from.IsZero() {
		from = o.CreatedAt
	}
	h := fnv.New32a()
	h.Write([]byte(o.ID))
	const steps = 1000
	share := time.Duration(h.Sum32()%(2*steps+1)) - steps
	for rung, after := range reverifyAfter {
		if at := from.Add(after + after/5*share/steps); at.After(now) {
			return orNull(at), rung
		}
	}
	return nil, len(reverifyAfter)
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
