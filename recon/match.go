package recon

// Certainty is how sure a match is. Only proof and strong may close anything.
type Certainty string

const (
	Proof      Certainty = "proof"      // effect id, our reference, idempotency key
	StrongSign Certainty = "strong"     // a declared unique natural reference
	Suggestion Certainty = "suggestion" // all else; never closes, never changes a class
	Suspected  Certainty = "suspected"  // of a finding: two operations look like one intent
)

// Basis is what a match rests on, in order of strength.
type Basis string

const (
	OnReference        Basis = "reference"
	OnEffectID         Basis = "effect_id"
	OnKey              Basis = "key"
	OnNaturalReference Basis = "natural_reference"
	OnCandidate        Basis = "candidate" // parent, amount and currency only
	OnLookalike        Basis = "lookalike" // a reference that differs in case, spaces or prefix
	OnPerson           Basis = "person"    // adopted by a person
)

// Role is the part that a linked effect plays for its operation.
type Role string

const (
	Main    Role = "main"
	Surplus Role = "surplus"
)

// Match says that an effect belongs, or may belong, to an operation, and why.
type Match struct {
	Operation OperationID
	Effect    EffectIdentity
	Basis     Basis
	Certainty Certainty
	Role      Role
	// Differences names the compared fields that differ: amount, currency, parent,
	// account, target, key, reference, effect_id. Empty means equal.
	Differences []Difference
}

// Equal reports whether everything that both sides show agrees.
func (m Match) Equal() bool { return len(m.Differences) == 0 }

// Difference is one compared field with both sides' values, as text for people.
type Difference struct {
	Field  string `json:"field"`
	Ours   string `json:"ours"`
	Theirs string `json:"theirs"`
}
