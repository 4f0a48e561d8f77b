package ledger

import (
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Text says in plain words what became of an action: one sentence, and what to do next
// where something is to be done. Messages and screens use the same.
func (a PersonAnswer) Text(verb Verb, zone *time.Location) string {
	switch a.Outcome {
	case ChangedMeanwhile:
		return "Changed meanwhile: " + sentence(a.Reason, a.Next)
	case PersonRefused:
		return "Refused: " + sentence(a.Reason, a.Next)
	case PersonProposed:
		return fmt.Sprintf("Proposed by %s: %s. A second person must say the same, because %s.", a.Person, a.what(verb, zone), TwoText(a.Two))
	}
	text := fmt.Sprintf("Done by %s: %s", a.Person, a.what(verb, zone))
	if a.ProposedBy != "" {
		text += ", as " + a.ProposedBy + " proposed"
	}
	if a.OperationState != "" {
		text += fmt.Sprintf(". Operation %s is %s", a.Operation, a.OperationState)
	}
	if a.Repeated {
		text += ". It was done before; nothing was done twice"
	}
	return text + "."
}

func sentence(reason, next string) string {
	if next == "" {
		return reason + "."
	}
	return reason + ". " + next
}

// TwoText says why a second person is needed.
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

// what tells the action itself.
func (a PersonAnswer) what(verb Verb, zone *time.Location) string {
	until := ""
	if a.Until != nil {
		until = " until " + recon.TimeText(*a.Until, zone)
	}
	switch verb {
	case Acknowledge:
		return "acknowledged" + until
	case Snooze:
		return "snoozed" + until
	case Assign:
		return "assigned to " + a.Assignee
	case CheckNow:
		return "the next sweep looks at it"
	case Adopt:
		if a.Made != "" {
			return fmt.Sprintf("%s was adopted as a new operation", a.Effect)
		}
		return fmt.Sprintf("%s is adopted", a.Effect)
	case Ignore:
		return fmt.Sprintf("%s is not ours", a.Effect)
	}
	return verb.Text(a.Effect)
}

// Text says in plain words how a finding is settled by the verb.
func (v Verb) Text(effect string) string {
	switch v {
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
		return "the difference stands"
	case Adopt:
		return "the effect belongs to an operation"
	case Ignore:
		return "the effect is not ours"
	}
	return string(v)
}
