package recon

import (
	"fmt"
	"strings"
	"time"
)

// The words of this file are read by people, in messages and on screens. They stand
// here so that a message and a screen never say the same thing in two ways.

// Text says in plain words what is wrong.
func (k FindingKind) Text() string {
	switch k {
	case FindUnresolved:
		return "nobody knows yet whether it happened"
	case FindMissing:
		return "it should be at the provider, and it is not there"
	case FindOrphan:
		return "it is at the provider, and no operation explains it"
	case FindDuplicate:
		return "it looks as if it was done more than once"
	case FindMismatch:
		return "what was done differs from what was asked"
	case FindReversed:
		return "it was done, and was undone later"
	case FindConflict:
		return "our record said failed, the provider says otherwise"
	case FindNeverSent:
		return "it was recorded and never sent"
	case FindFailing:
		return "it keeps failing"
	case FindBlind:
		return "the provider cannot be asked"
	}
	return string(k)
}

// Advice says what a person who is told of such a finding should do first. It is
// short on purpose: it is read at night.
func (k FindingKind) Advice() string {
	switch k {
	case FindUnresolved:
		return "Tell nobody yes or no, and do not send it under a new key: that could do it twice. It is asked again by itself; look at the provider if it cannot wait."
	case FindMissing:
		return "A complete look found nothing. Decide whether to do it again (under the same key while the safe retry lasts) or to drop it."
	case FindOrphan:
		return "Find out who made it. Adopt it or mark it as not ours."
	case FindDuplicate:
		return "Stop sending it. Compare the effects named here, and decide at the provider whether one must be taken back."
	case FindMismatch:
		return "Compare both sides' values. Correct it at the provider, or accept the difference."
	case FindReversed:
		return "It did not last. Tell whoever relies on it, and decide whether to do it another way."
	case FindConflict:
		return "Make sure that nobody does it again: our record said failed, and it is at the provider."
	case FindNeverSent:
		return "Nothing left the house. Decide whether it is still wanted."
	case FindFailing:
		return "Find out why before anyone tries again."
	case FindBlind:
		return "Nothing can be concluded until the provider answers. Check its status page and our credentials."
	}
	return ""
}

// Accepted says what it means that a person accepts such a finding.
func (k FindingKind) Accepted() string {
	switch k {
	case FindMismatch:
		return "the difference stands; an operation with an effect succeeded with it"
	case FindDuplicate:
		return "it is seen to: what is at the provider stands, each of it"
	case FindReversed:
		return "it is seen to: it was done, and what came of it later stands"
	case FindConflict:
		return "the provider's word stands; an operation with an effect succeeded with it"
	case FindFailing:
		return "it is seen to"
	}
	return Accept.Text("")
}

// Text says in plain words what the ledger believes.
func (s State) Text() string {
	switch s {
	case Pending:
		return "pending: may be sent, nothing is under way"
	case InProgress:
		return "in progress: a call is under way"
	case Unknown:
		return "unknown: sent, and nobody knows what came of it"
	case ManualReview:
		return "manual review: a person must decide"
	case Succeeded:
		return "succeeded: the effect exists"
	case Failed:
		return "failed: it definitely did not happen"
	}
	return string(s)
}

// Text writes a span for people with its two largest units, such as "3 h 10 min".
// What is smaller is cut off, never rounded up, so that time left is not overstated.
func (d Duration) Text() string {
	t := time.Duration(d)
	if t < 0 {
		t = -t
	}
	if t < time.Second {
		return "0 s"
	}
	units := []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for i, u := range units {
		if t < u.size {
			continue
		}
		s := fmt.Sprintf("%d %s", t/u.size, u.name)
		if i+1 < len(units) {
			if n := t % u.size / units[i+1].size; n > 0 {
				s += fmt.Sprintf(" %d %s", n, units[i+1].name)
			}
		}
		return s
	}
	return "0 s"
}

// TimeText writes an instant for people with its zone, to the second.
func TimeText(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return "not known"
	}
	if zone == nil {
		zone = time.UTC
	}
	return t.In(zone).Format("2006-01-02 15:04:05 MST")
}

// Noun names a kind of effect in words: "payment_intent" is "payment intent".
func Noun(kind string) string {
	if kind == "" {
		return "effect"
	}
	return strings.ReplaceAll(kind, "_", " ")
}

// faults says in words why a look was blind.
var faults = map[string]string{
	"rate_limited":    "it allowed no more requests",
	"unavailable":     "it did not answer",
	"timeout":         "no answer in time",
	"bad_credentials": "it refused our credentials",
	"wrong_account":   "the account or mode is not one of ours there",
	"truncated":       "its list broke off",
	"malformed":       "its answer was not readable",
	"own_bug":         "it refused our request as wrong",
	"unsupported":     "it cannot be asked this",
}

// FaultText says in words why a look was blind.
func FaultText(fault string) string {
	if s, ok := faults[fault]; ok {
		return s
	}
	if fault == "" {
		return "no reason given"
	}
	return Noun(fault)
}
