package recon

import "time"

// Check is what the ledger plans and counts for one operation. Rules return the
// whole next value; the ledger stores it.
type Check struct {
	Next     time.Time // when to ask next; zero for a closed operation off the ladder
	Looks    int       // looks so far that were not blind
	Blinds   int       // blind looks in a row
	Rung     int       // re-verification rungs used, for closed operations
	Absence  Absence
	Failures int // times that recording its conclusion failed
}

// Absence counts the looks that count as absent (design: When "absent" counts).
type Absence struct {
	Looks       int
	First, Last time.Time // when the first and the last of them were made
	LookIDs     []string
}

// Case is one operation with everything that is known about it, ready to be judged.
type Case struct {
	Operation Operation
	Policy    Policy
	Sheet     Sheet
	// Group are the other operations of the declared group, with their policies alone: what
	// an effect of the group is worth depends on all of them.
	Group []Case
	// Effects are those linked to the operation, those that name it (which another
	// operation may own), and unowned ones of the same parent, amount and currency.
	Effects []Effect
	// Matches pair Operation with Effects, as matchers made them.
	Matches []Match
	// Looks were made in this pass or are standing coverage that answers for it.
	Looks []Look
	// Witness is what a local business object says; nil where none was asked.
	Witness *Testimony
	// Late are answers of senders that came when their lease was over, oldest first. They
	// changed nothing and are kept as evidence.
	Late  []AttemptReport
	Check Check
	// Findings are those on it that are not settled and have not ended.
	Findings []Finding
	// Settled are those on it that a person settled: what was accepted changes no
	// state and is not raised again, unless what was observed changes.
	Settled []Finding
}

// Decision is what a rule concludes of one operation. It is pure: the same case and
// the same now give the same decision.
type Decision struct {
	Operation OperationID
	Rule      string // the rule's name, which is its file's and its page's
	Reason    string // one sentence for people
	From, To  State  // equal: it stays
	EffectID  string // to be stored; empty leaves what is there
	ErrorCode string
	Release   bool // To is pending and grants exactly one claim
	Links     []Match
	LookIDs   []string // the evidence
	Check     Check    // the next plan
	Blind     bool     // nothing could be asked in this pass
	Findings  []Finding
	Ends      []string // fingerprints of open findings that no longer hold
}

// Changes reports whether the decision adds anything to the operation's story.
func (d Decision) Changes() bool {
	return d.From != d.To || d.EffectID != "" || len(d.Links) > 0 || len(d.Findings) > 0 || len(d.Ends) > 0
}
