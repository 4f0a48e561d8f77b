package ledger

import (
	"fmt"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Text says in plain words what became of an action: one sentence, and what to do next
// where something is to be done. Messages and screens use the same.
func (a PersonAnswer) Text(verb recon.Verb, zone *time.Location) string {
	switch a.Outcome {
	case ChangedMeanwhile:
		return "Changed meanwhile: " + sentence(a.Reason, a.Next)
	case PersonRefused:
		return "Refused: " + sentence(a.Reason, a.Next)
	case PersonProposed:
		lead := "Proposed by %s: %s. A second person must say the same, because %s."
		if a.Repeated {
			lead = "Proposed by %s already: %s. It waits for a second, other person to say the same, because %s."
		}
		return fmt.Sprintf(lead, a.Person, a.what(verb, zone), recon.TwoText(a.Two))
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

// what tells the action itself.
func (a PersonAnswer) what(verb recon.Verb, zone *time.Location) string {
	until := ""
	if a.Until != nil {
		until = " until " + recon.TimeText(*a.Until, zone)
	}
	switch {
	case verb == recon.Assign:
		return "assigned to " + a.Assignee
	case verb == recon.Adopt && a.Made != "":
		return a.Effect + " has an operation of its own now"
	}
	return verb.Text(a.Effect) + until
}
