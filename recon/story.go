package recon

import (
	"encoding/json"
	"time"
)

// Story is one operation with everything that a person needs to understand it: what
// was meant, tried, asked, answered, concluded, and what comes next. The ledger
// reads it; reports and messages tell it.
type Story struct {
	Operation Operation
	Policy    Policy // the version that the operation was opened under
	Check     Check
	// Kept says that the request is stored, without which the same cannot be sent again.
	Kept    bool
	Journal []Entry  // oldest first
	Looks   []Look   // those that the journal or its findings rest on, oldest first
	Effects []Effect // linked to it or to its group, earliest first
	// Shares are what of a group's effect is the operation's, in minor units.
	Shares   map[EffectIdentity]int64
	Findings []Finding // on it, ended and settled ones too, oldest first
}

// Entry is one line of an operation's journal.
type Entry struct {
	Seq  int64
	At   time.Time
	Kind EntryKind
	// Body is the exact text that the chain hashes, a JSON object. Screens for people
	// know the keys by, holder, attempt, class, lease_until, effect_id, error_code,
	// request_id, rule, reason, from, to, method, outcome, look_ids, event_id; they
	// leave out what they do not know.
	Body json.RawMessage
}

// EntryKind is what a line of the journal tells.
type EntryKind string

const (
	EntryOpened   EntryKind = "opened"
	EntryStarted  EntryKind = "attempt_started"
	EntryFinished EntryKind = "attempt_finished"
	EntrySeen     EntryKind = "seen" // a look or a stored effect told something new
	EntryEvent    EntryKind = "event"
	EntryDecision EntryKind = "decision"
	EntryPerson   EntryKind = "person"
	EntryRelease  EntryKind = "release"
	EntryErased   EntryKind = "erased"
)
