package large

import (
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// So much must have been lived through before it is a fault that something never happened.
const (
	manyWorlds     = 100
	manyOperations = 30_000
	manyActs       = 100_000 // operations, where it takes people
)

// NeverHappened names what should have befallen so many worlds and did not: they prove nothing
// about it. Fewer or smaller ones may miss something.
func (n Numbers) NeverHappened() (never []string) {
	if n.Worlds < manyWorlds || n.Operations < manyOperations {
		return nil
	}
	for _, fault := range expected() {
		if n.Faults[fault] == 0 {
			never = append(never, fault)
		}
	}
	if n.Operations < manyActs {
		return never
	}
	for _, b := range slack.Buttons() {
		if n.Buttons[b] == 0 {
			never = append(never, "click of which something came, on "+string(b))
		}
	}
	for _, e := range errands {
		if n.Errands[e] == 0 {
			never = append(never, e)
		}
	}
	return never
}

// expected are the faults that a hundred worlds suffer, as the tally names them.
func expected() (list []string) {
	for kind := cardsDown; kind <= eventsResent; kind++ {
		list = append(list, kind.String())
	}
	for _, r := range rooms {
		list = append(list, "product died in "+string(r.room))
	}
	for m := beforeStatement; m <= atRequest; m++ {
		list = append(list, "product died "+m.String())
	}
	for _, name := range []recon.SourceName{cards, bank, letters} {
		list = append(list, timedOut(name))
	}
	for _, method := range slackMethods {
		list = append(list, slackFailed(method))
	}
	return list
}

// slackFailed is what is counted of a request to Slack that did not go well.
func slackFailed(method string) string { return fmt.Sprintf("Slack failed at %s", method) }
