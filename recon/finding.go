package recon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sort"
	"time"
)

// FindingKind is what is wrong.
type FindingKind string

const (
	FindUnresolved FindingKind = "unresolved" // unknown for too long
	FindMissing    FindingKind = "missing"    // recorded, and no effect in a complete place
	FindOrphan     FindingKind = "orphan"     // an effect that no operation explains
	FindDuplicate  FindingKind = "duplicate"  // two or more effects of one intent
	FindMismatch   FindingKind = "mismatch"   // found, and something differs
	FindReversed   FindingKind = "reversed"   // was good, turned bad later
	FindConflict   FindingKind = "conflict"   // ledger says failed, provider says done
	FindNeverSent  FindingKind = "never_sent" // pending, and no call was made
	FindFailing    FindingKind = "failing"    // the same thing fails again and again
	FindBlind      FindingKind = "blind"      // could not look for too long
)

// FindingKinds lists every kind, alphabetically.
var FindingKinds = []FindingKind{
	FindBlind, FindConflict, FindDuplicate, FindFailing, FindMismatch,
	FindMissing, FindNeverSent, FindOrphan, FindReversed, FindUnresolved,
}

// FindingState is where a finding stands.
type FindingState string

const (
	FindingOpen         FindingState = "open"
	FindingAcknowledged FindingState = "acknowledged"
	FindingSnoozed      FindingState = "snoozed"
	FindingSettled      FindingState = "settled" // by a person
	FindingEnded        FindingState = "ended"   // by itself
)

// Finding is a fact that a person may have to act on: data, never a log line.
type Finding struct {
	ID         string // given by the ledger
	Kind       FindingKind
	Certainty  Certainty
	Source     SourceName
	Operations []OperationID
	Effects    []EffectRef
	Observed   []Difference // the differing values; a settled finding re-opens only if these change
	Reason     string       // one sentence for people; never part of the fingerprint
	Money      Money        // at risk
	State      FindingState
	OpenedAt   time.Time
	EndedAt    time.Time // when it ended or was settled; zero while it is open
	Ending     string    // how, in one sentence for people; empty while it is open
	Version    int64
}

// Open reports whether the finding still waits for somebody or something. A finding
// that was just raised and is not stored yet has no state and is open.
func (f Finding) Open() bool { return f.State != FindingSettled && f.State != FindingEnded }

// Fingerprint identifies what the finding is about: sha256 in hex over the JSON
// array [kind, source, sorted operation ids, sorted effect ids]. Free text never
// takes part, so that a better sentence does not make a second finding.
func (f Finding) Fingerprint() string {
	ops := make([]string, 0, len(f.Operations))
	for _, o := range f.Operations {
		ops = append(ops, string(o))
	}
	effects := make([]string, 0, len(f.Effects))
	for _, e := range f.Effects {
		effects = append(effects, e.ID)
	}
	sort.Strings(ops)
	sort.Strings(effects)
	b, err := json.Marshal([]any{f.Kind, f.Source, ops, effects})
	if err != nil {
		panic("recon: strings do not marshal: " + err.Error()) // unreachable: only strings and slices of them
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
