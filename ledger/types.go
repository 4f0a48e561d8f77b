package ledger

import (
	"encoding/json"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Hold is the right to write what was seen at one source. Its token grows with every
// new holder, so that an earlier one is told apart however late it wakes.
type Hold struct {
	Source recon.SourceName
	Holder string
	Token  int64
	Until  time.Time // by the database's clock
}

// SourceState is what is remembered of a source between sweeps.
type SourceState struct {
	BlindSince time.Time // zero: it answers
	Blinds     int       // blind answers in a row
	ProbeAt    time.Time // when to probe next, while it is down
}

// Ladder tells the open operations from the closed ones that are re-verified.
type Ladder string

const (
	OpenOperations   Ladder = "open"
	ClosedOperations Ladder = "closed"
)

// Scope says which operations are due: those of one source, on one ladder. An empty
// ladder means the open ones.
type Scope struct {
	Source recon.SourceName
	Ladder Ladder
}

// Raw is one object as its provider sent it, already reduced to the allow-list. It
// has the shape of sources.Raw, so that one converts to the other.
type Raw struct {
	Effect recon.EffectIdentity
	Bytes  []byte
}

// Batch is everything that one pass over some operations learned and concluded. It
// is recorded whole or not at all, but for operations that are reported as lost.
type Batch struct {
	Hold  Hold // zero: no source was asked, so none needs to be held
	RunID string
	Now   time.Time
	Looks []recon.Look
	// SeenBy are looks that were recorded before, with those effects of this batch that they
	// saw. They are not written again.
	SeenBy   []recon.Look
	Effects  []recon.Effect
	Raw      []Raw
	Coverage []recon.Coverage
	// Decisions, at most one per operation.
	Decisions []recon.Decision
	// Versions are those that the decisions were made from: the guard of each.
	Versions map[recon.OperationID]int64
	// Findings and Ends belong to no decision: a blind source, and its end.
	Findings []recon.Finding
	Ends     []string // fingerprints
	// SourceState replaces the source's; nil leaves it. It needs a Hold.
	SourceState *SourceState
	// List is how far a list of the source was read with this batch; nil: none was. It
	// needs a Hold.
	List *ListState
}

// Recorded says what became of a batch.
type Recorded struct {
	// Lost are operations that another writer changed first, or whose effect became
	// another operation's. Nothing of them was written; the next pass sees them anew.
	Lost []recon.OperationID
	// Kept are operations whose decision could not be carried out: a release while
	// another operation holds the slot. They stay as they were, with a next check.
	Kept []Kept
	// SetAside are operations whose conclusion the database refuses to store. They are
	// tried again later; after five times a finding names the fault.
	SetAside []SetAside
	// LeftOut are effects that belong to no decision and that the database refuses to
	// store. What was seen completely with them is not stored completely.
	LeftOut []recon.EffectIdentity
	Opened  map[recon.FindingKind]int // findings opened or opened again
	Ended   map[recon.FindingKind]int
}

// Kept is one decision that was not carried out, and why.
type Kept struct {
	Operation recon.OperationID
	Reason    string
}

// SetAside is one operation whose conclusion was refused, and by what fault.
type SetAside struct {
	Operation recon.OperationID
	Fault     string
	Failures  int // times so far
}

// RunStart asks for a place in the list of runs.
type RunStart struct {
	Name   string // "sweep/stripe-main"
	Tick   string // what makes this run the only one of its time; empty: a manual run
	Holder string
	TTL    time.Duration // how long without a heartbeat until it counts as dead
}

// Run is one run of a sweep, an audit or another scheduled thing.
type Run struct {
	ID         string
	Name       string
	Tick       string
	Holder     string
	StartedAt  time.Time
	FinishedAt time.Time // zero while it runs
	LeaseUntil time.Time // by the database's clock
	Outcome    string    // done, failed, abandoned; empty while it runs
	Counts     json.RawMessage
	Error      string
	token      string
}

// RunEnd is how a run ended.
type RunEnd struct {
	Outcome string          // RunDone or RunFailed
	Counts  json.RawMessage // one JSON object; nil: none
	Error   string          // for operators, without secrets
}

// Outcomes of runs.
const (
	RunDone      = "done"
	RunFailed    = "failed"
	RunAbandoned = "abandoned" // its process died and the next run closed it, or was told to stop
)

// OperationFilter narrows a list of operations. Empty fields do not narrow.
type OperationFilter struct {
	Source recon.SourceName
	Action string
	States []recon.State
	Case   string
	Key    string
	// Reference is an operation's own natural reference.
	Reference string
	Limit     int // 0: 100; at most 10,000
}

// FindingFilter narrows a list of findings. Empty fields do not narrow.
type FindingFilter struct {
	Source    recon.SourceName
	Kinds     []recon.FindingKind
	States    []recon.FindingState
	Operation recon.OperationID
	Limit     int // 0: 100; at most 10,000
}

// FindingRow is a finding as it is listed to people.
type FindingRow struct {
	recon.Finding
	EndedAt   time.Time
	SettledAt time.Time
	SettledBy string
	SettledAs string
	Level     int // the highest step of the escalation ladder that was taken
	Assignee  string
	// Until when a person acknowledged it or put it off; zero: they did not.
	AcknowledgedUntil time.Time
	SnoozedUntil      time.Time
	Proposal          *recon.Proposal // what waits for a second person; nil: nothing
}

// StateAt is where the finding stands at a time: what was put off for a while is open
// again once that is over, also before anybody has written it.
func (r FindingRow) StateAt(now time.Time) recon.FindingState {
	until := r.SnoozedUntil
	if r.State == recon.FindingAcknowledged {
		until = r.AcknowledgedUntil
	}
	if !until.IsZero() && !until.After(now) {
		return recon.FindingOpen
	}
	return r.State
}

// Snapshot is one reading of what the gauges show. Times are zero where there is none.
type Snapshot struct {
	At              time.Time
	Operations      []OperationGauge
	Findings        map[recon.FindingKind]int64 // open, acknowledged and snoozed
	BlindSince      map[recon.SourceName]time.Time
	RunLastSuccess  map[string]time.Time
	OldestNotice    time.Time                  // due and not delivered
	EffectsUnowned  map[recon.SourceName]int64 // of kinds that some action of the source makes
	UndeliveredOpen int64                      // notices counted as undelivered
	Tallies         []Tally                    // in no order
	NotFolded       int64                      // how much of the tallies was counted for this snapshot
}

// OperationGauge counts the open operations of one source, action and state.
type OperationGauge struct {
	Source recon.SourceName
	Action string
	State  recon.State
	Count  int64
	// OldestUnknown is the earliest unknown_since among those without a known effect
	// (unknown ones, and in_progress ones whose lease is over).
	OldestUnknown time.Time
	// OldestInFlight is the earliest among unknown ones whose effect is known.
	OldestInFlight time.Time
	// NextKeyExpiry is the earliest end of a key still to come among those without a known
	// effect.
	NextKeyExpiry time.Time
}
