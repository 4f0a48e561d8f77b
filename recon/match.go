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
	// Group is the declared group that the effect stands for; nil: the operation alone.
	Group *Group
	// Part says that the effect stands for the operation only together with others of
	// its group, each with a share.
	Part bool
}

// Owner is whose the effect is by the match: an operation's id, or a group's name.
func (m Match) Owner() string {
	if m.Group != nil {
		return m.Group.Name
	}
	return string(m.Operation)
}

// Group is what an effect that stands for a declared group is worth to each of its
// operations. The shares add up to the effect's amount exactly.
type Group struct {
	Name       string
	Operations []OperationID // in order of their ids
	// Shares are in minor units, one an operation, 0 where another effect of the group
	// stands for it. Nil where the sums differ or amounts are not known.
	Shares []int64
	Money  Money // what the operations add up to; zero where it is not known
}

// Equal reports whether everything that both sides show agrees.
func (m Match) Equal() bool { return len(m.Differences) == 0 }

// Difference is one compared field with both sides' values, as text for people.
type Difference struct {
	Field  string `json:"field"`
	Ours   string `json:"ours"`
	Theirs string `json:"theirs"`
}
