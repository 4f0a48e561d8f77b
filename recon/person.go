package recon

import (
	"fmt"
	"slices"
	"time"
)

// Verb is what a person does with a finding.
type Verb string

// What an operator may do; none changes an operation's state.
const (
	Acknowledge Verb = "acknowledge" // seen: ladders pause until it expires
	Snooze      Verb = "snooze"      // put off until a time
	Assign      Verb = "assign"
	CheckNow    Verb = "check_now"
)

// How an approver settles a finding.
const (
	Happened     Verb = "happened"       // the operation succeeded with an effect
	DidNotHappen Verb = "did-not-happen" // it failed
	Release      Verb = "release"        // it may be sent once more under its key
	Accept       Verb = "accept"         // what was found stands as it is
	Adopt        Verb = "adopt"          // the effect belongs to an operation
	Ignore       Verb = "ignore"         // the effect is not ours
)

// Reject drops what somebody proposed; the finding stays as it is. It takes an approver.
const Reject Verb = "reject"

// Answers lists how a finding can be settled, in the order in which people are shown them.
var Answers = []Verb{Happened, DidNotHappen, Release, Accept, Adopt, Ignore}

// Settles reports whether the verb is one by which an approver settles a finding.
func (v Verb) Settles() bool { return slices.Contains(Answers, v) }

// Text says in plain words what the verb says of a finding; effect may be empty.
func (v Verb) Text(effect string) string {
	it := "the effect"
	if effect != "" {
		it = effect
	}
	switch v {
	case Acknowledge:
		return "acknowledged"
	case Snooze:
		return "snoozed"
	case Assign:
		return "assigned"
	case CheckNow:
		return "the next sweep looks at it"
	case Happened:
		if effect != "" {
			return "it happened, as " + effect
		}
		return "it happened"
	case DidNotHappen:
		return "it did not happen"
	case Release:
		return "it may be sent once more under the same key"
	case Accept:
		return "it stands as it is"
	case Adopt:
		return it + " belongs to an operation of ours"
	case Ignore:
		return it + " is not ours"
	case Reject:
		return "what was proposed is rejected"
	}
	return string(v)
}

// Why one person's word is not enough.
const (
	TwoForAmount   = "amount"    // above the configured limit
	TwoForNotFound = "not_found" // the provider does not know the effect
	TwoForBlind    = "blind"     // the provider could not be asked
	TwoForNotAsked = "not_asked" // nobody asked
	TwoForDiffers  = "differs"   // the effect is not what was asked for
)

// TwoText says why a second person is needed, as the end of a sentence.
func TwoText(two string) string {
	switch two {
	case TwoForAmount:
		return "of its amount"
	case TwoForNotFound:
		return "the provider does not know that effect"
	case TwoForBlind:
		return "the provider could not be asked"
	case TwoForNotAsked:
		return "nobody asked the provider"
	case TwoForDiffers:
		return "that effect differs from what was asked for"
	}
	return "one word is not enough"
}

// Proposal is what one person wants done with a finding, until a second one says the
// same.
type Proposal struct {
	Verb      Verb        `json:"verb"`
	Person    string      `json:"person"`
	At        time.Time   `json:"at"`
	Reason    string      `json:"reason"`
	Two       string      `json:"two"` // why a second person is needed
	Operation OperationID `json:"operation_id,omitempty"`
	Effect    string      `json:"effect_id,omitempty"`
	Action    string      `json:"action,omitempty"` // of the operation that adopt would make
}

// Text tells the proposal and why it waits.
func (p Proposal) Text() string {
	return fmt.Sprintf("a second person, because %s; %s proposed: %s", TwoText(p.Two), p.Person, p.Verb.Text(p.Effect))
}

// PersonAct is one thing that a person did with a finding.
type PersonAct struct {
	At         time.Time   `json:"at"`
	Person     string      `json:"person"`
	Verb       Verb        `json:"verb"`
	Reason     string      `json:"reason,omitempty"`
	Via        string      `json:"via,omitempty"`  // command line, slack
	Role       string      `json:"role,omitempty"` // of the database, that logged in
	Proposed   bool        `json:"proposed,omitempty"`
	Two        string      `json:"two,omitempty"`
	ProposedBy string      `json:"proposed_by,omitempty"`
	Operation  OperationID `json:"operation_id,omitempty"`
	Effect     string      `json:"effect_id,omitempty"`
	Look       string      `json:"look_id,omitempty"`
	Assignee   string      `json:"assignee,omitempty"`
	Until      *time.Time  `json:"until,omitempty"`
}

// Text tells who did what: "ana proposed: it happened, as re_1".
func (a PersonAct) Text(zone *time.Location) string {
	s := a.Person
	switch {
	case a.Proposed:
		s += " proposed: " + a.Verb.Text(a.Effect)
	case a.Verb.Settles():
		s += " settled it: " + a.Verb.Text(a.Effect)
	case a.Verb == Assign:
		s += " assigned it to " + a.Assignee
	case a.Verb == Reject:
		s += " rejected what was proposed"
	case a.Verb == CheckNow:
		s += " asked for a look now"
	default:
		s += " " + a.Verb.Text("") + " it"
	}
	if a.Until != nil {
		s += " until " + TimeText(*a.Until, zone)
	}
	if a.ProposedBy != "" {
		s += ", as " + a.ProposedBy + " proposed"
	}
	return s
}

// ByItself says in words what happens to the operation without anybody, and when.
func (s Story) ByItself(f Finding, now time.Time, zone *time.Location) string {
	var text string
	switch next := s.Check.Next; {
	case next.IsZero():
		return "nothing more is asked; it waits for a person"
	case !next.After(now):
		text = "it is asked again now"
	default:
		text = fmt.Sprintf("it is asked again in %s, at %s", Duration(next.Sub(now)).Text(), TimeText(next, zone))
	}
	giveUp := s.Since().Add(s.Policy.GiveUpAfter.Std())
	switch {
	case s.Operation.State == ManualReview:
		return text + "; only proof closes it, else it waits for a person"
	case f.Kind == FindUnresolved && s.Policy.GiveUpAfter > 0 && giveUp.After(now):
		return text + ", then less often; without an answer it goes to manual review at " + TimeText(giveUp, zone)
	}
	return text
}
