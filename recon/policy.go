package recon

import "time"

// ActionClass is how dangerous a repeat of the action is.
type ActionClass string

const (
	Irreversible ActionClass = "irreversible"
	Reversible   ActionClass = "reversible"
	Idempotent   ActionClass = "idempotent"
	Read         ActionClass = "read"
)

// Repeat says whether an unknown outcome may be asked again by sending again.
type Repeat string

const (
	RepeatNever   Repeat = "never"
	RepeatSameKey Repeat = "same_key"
)

// OnNeverSent says what becomes of an operation that nobody ever sent.
type OnNeverSent string

const (
	NeverSentKeep OnNeverSent = "keep"
	NeverSentFail OnNeverSent = "fail"
)

// OnAbsent says what becomes of an operation whose effect is absent.
type OnAbsent string

const (
	AbsentMissing OnAbsent = "missing"
	AbsentRelease OnAbsent = "release"
)

// Backoff is the wait before a repeat: base doubled each time, at most max, with
// full jitter.
type Backoff struct {
	Base Duration `json:"base"`
	Max  Duration `json:"max"`
}

// AbsencePolicy is how many absent looks, spread over how long, make "absent".
type AbsencePolicy struct {
	Looks int      `json:"looks"`
	Over  Duration `json:"over"`
}

// Policy is what may be done with the operations of one action. Versions are never
// edited in place. The JSON names are those of the configuration and of
// policies.body; system to exponents are written there from the source's sheet.
type Policy struct {
	Action  string `json:"action"`
	Version int    `json:"version,omitempty"`

	Source          SourceName    `json:"source"`
	Effect          string        `json:"effect"` // kind of effect that the action makes
	Class           ActionClass   `json:"class"`
	Repeat          Repeat        `json:"repeat"`
	PerCall         int           `json:"per_call"`
	PerOperation    int           `json:"per_operation"`
	Backoff         Backoff       `json:"backoff"`
	KeyLifetime     Duration      `json:"key_lifetime"` // 0: no keys
	KeyMargin       Duration      `json:"key_margin"`
	OneOpen         bool          `json:"one_open"`
	AmountRequired  bool          `json:"amount_required"`
	LeaseMax        Duration      `json:"lease_max"`
	ResultFields    []string      `json:"result_fields"`
	Marks           []Mark        `json:"marks"`
	CheckAfter      Duration      `json:"check_after"`
	Checks          []Duration    `json:"checks"`
	StalePending    Duration      `json:"stale_pending"`
	OnNeverSent     OnNeverSent   `json:"on_never_sent"`
	Absence         AbsencePolicy `json:"absence"`
	OnAbsent        OnAbsent      `json:"on_absent"`
	UnresolvedAfter Duration      `json:"unresolved_after"`
	GiveUpAfter     Duration      `json:"give_up_after"`
	InFlightAfter   Duration      `json:"in_flight_after"`
	Grace           Duration      `json:"grace"`
	BlindAfter      Duration      `json:"blind_after"`
	Tolerance       int64         `json:"tolerance"` // minor units
	DuplicateWithin Duration      `json:"duplicate_within"`
	Witness         string        `json:"witness,omitempty"`
	Unverifiable    string        `json:"unverifiable"` // refused, accepted
	// Orphans says which effects without operation are ours and may be orphans: all, or
	// those that are marked with a reference of ours.
	Orphans string `json:"orphans"`
	// OrphansBy are the only ones whose unexplained effects are ours, as the provider names
	// who made them. Empty: anybody's.
	OrphansBy []string `json:"orphans_by"`

	System       string    `json:"system,omitempty"`
	Accounts     []Account `json:"accounts,omitempty"`
	Marker       string    `json:"marker,omitempty"`
	RepeatAnswer bool      `json:"repeat_answer,omitempty"`
	// Exponents are the provider's own, as Sheet.Exponents says.
	Exponents map[string]int `json:"exponents,omitempty"`
}

// NeedsNoKey reports whether a second effect does no harm by the nature of the action: a
// read, or what is idempotent without a key. Where the provider keeps keys, an
// idempotent action may be so only by its key, so the key's lifetime binds it too. The
// SQL function needs_no_key says the same.
func (p Policy) NeedsNoKey() bool {
	return p.Class == Read || p.Class == Idempotent && p.KeyLifetime == 0
}

// DefaultPolicy is the policy of an action that configures nothing: the cautious
// values of the contract. The required keys source, effect and class stay empty.
func DefaultPolicy() Policy {
	h := func(n int64) Duration { return Duration(time.Duration(n) * time.Hour) }
	m := func(n int64) Duration { return Duration(time.Duration(n) * time.Minute) }
	s := func(n int64) Duration { return Duration(time.Duration(n) * time.Second) }
	return Policy{
		Repeat: RepeatNever, PerCall: 3, PerOperation: 6,
		Backoff:   Backoff{Base: s(1), Max: m(1)},
		KeyMargin: m(30), LeaseMax: s(60),
		ResultFields: []string{}, Marks: []Mark{MarkKey, MarkReference},
		CheckAfter:   s(30),
		Checks:       []Duration{m(1), m(5), m(15), h(1), h(3), h(6), h(12), h(24)},
		StalePending: m(15), OnNeverSent: NeverSentKeep,
		Absence: AbsencePolicy{Looks: 3, Over: m(10)}, OnAbsent: AbsentMissing,
		UnresolvedAfter: m(15), GiveUpAfter: h(72), InFlightAfter: h(14 * 24),
		Grace: h(1), BlindAfter: m(15), DuplicateWithin: s(60),
		Unverifiable: "refused", Orphans: "all", OrphansBy: []string{},
	}
}
