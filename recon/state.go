package recon

// State is what the ledger believes of an operation. The same text stands in Go,
// SQL and JSON.
type State string

const (
	Pending      State = "pending"       // recorded, may be claimed; nothing is under way
	InProgress   State = "in_progress"   // leased, a call is under way
	Unknown      State = "unknown"       // sent, and nobody knows what came of it
	ManualReview State = "manual_review" // a person must decide
	Succeeded    State = "succeeded"     // the effect exists
	Failed       State = "failed"        // definitely did not happen
)

// States lists every state, in the order of an operation's life.
var States = []State{Pending, InProgress, Unknown, ManualReview, Succeeded, Failed}

// transitions is the one table of legal changes (design: States). The trigger in
// migrations repeats it; a test walks all 36 pairs against both.
var transitions = map[State][]State{
	Pending:      {InProgress, Succeeded, Failed, Unknown, ManualReview},
	InProgress:   {Succeeded, Failed, Unknown, Pending},
	Unknown:      {InProgress, Succeeded, Failed, Pending, ManualReview},
	ManualReview: {Succeeded, Failed, Unknown, Pending},
	Succeeded:    {ManualReview},
	Failed:       {Succeeded, Unknown, ManualReview},
}

// Legal reports whether an operation may go from one state to another. A state to
// itself is no transition and is legal; an unknown word never is.
func Legal(from, to State) bool {
	if !from.Valid() || !to.Valid() {
		return false
	}
	if from == to {
		return true
	}
	for _, s := range transitions[from] {
		if s == to {
			return true
		}
	}
	return false
}

// Valid reports whether s is one of the six states.
func (s State) Valid() bool {
	_, ok := transitions[s]
	return ok
}

// Open reports whether the operation still waits for its truth: everything but
// succeeded and failed.
func (s State) Open() bool { return s.Valid() && s != Succeeded && s != Failed }

// AttemptClass is how an attempt ended, as its sender reports it (contracts:
// finish_attempt).
type AttemptClass string

const (
	ClassSucceeded     AttemptClass = "succeeded"     // complete effect
	ClassAccepted      AttemptClass = "accepted"      // taken on, not final
	ClassRefused       AttemptClass = "refused"       // the provider's definite no to this key
	ClassNotSent       AttemptClass = "not_sent"      // this request did nothing
	ClassStoredError   AttemptClass = "stored_error"  // the provider's stored 5xx; ends repeating
	ClassIndeterminate AttemptClass = "indeterminate" // anything else
)
