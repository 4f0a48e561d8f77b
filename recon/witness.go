package recon

// Word is what a business object's status means for an operation.
type Word string

const (
	SaysDone    Word = "done"     // it says that the operation was done
	SaysNotDone Word = "not_done" // it says that it was not
	SaysNothing Word = "nothing"  // it says nothing of it
)

// Valid reports whether w is one of the three words.
func (w Word) Valid() bool { return w == SaysDone || w == SaysNotDone || w == SaysNothing }

// Testimony is what a local witness says of one operation: is the order marked refunded, and
// for how much? It never closes anything; that it disagrees with what was decided is a finding.
type Testimony struct {
	Operation OperationID
	Witness   string // its name in the configuration
	Object    string // what it was asked about: order:4417
	// Look is the evidence: found, absent (the witness knows no such object) or blind. Its
	// detail says in words what the object shows.
	Look Look
	Says Word
	// Money is the amount that the object shows; its Currency is set where it shows one, also
	// one of nothing.
	Money Money
	// Sums says that Money adds up all that was done for the object.
	Sums bool
	// Lag is how long after the closing the object may still say otherwise.
	Lag Duration
}

// Heard reports whether the witness said anything, also that it knows no such object.
func (t *Testimony) Heard() bool { return t != nil && t.Look.Outcome != Blind }

// IsTestimony reports whether the look asked a local witness: its objects are in no account
// of a provider, so that it covers no operation.
func (l Look) IsTestimony() bool { return l.Method == ByReference && l.Account == "" && l.Mode == "" }
