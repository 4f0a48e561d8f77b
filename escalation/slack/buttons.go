package slack

import (
	"encoding/json"
	"maps"
	"slices"

	slackgo "github.com/slack-go/slack"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// labels are the words on the buttons. A button's action_id is its verb.
var labels = map[recon.Verb]string{
	recon.Acknowledge: "Acknowledge", recon.CheckNow: "Check now", recon.Snooze: "Snooze", recon.Assign: "Assign",
	recon.Happened: "It happened…", recon.DidNotHappen: "It did not happen…", recon.Release: "Release…",
	recon.Adopt: "Adopt…", recon.Ignore: "Not ours…", Approve: "Approve…", recon.Reject: "Reject…",
}

// Buttons gives what a message may offer, in a fixed order.
func Buttons() []recon.Verb { return slices.Sorted(maps.Keys(labels)) }

// Button is what a button carries: the finding as the person saw it. A click on an
// older version decides nothing.
type Button struct {
	Finding string `json:"finding"`
	Version int64  `json:"version"`
}

// buttons are those that fit what is so now. Without a signing secret no click could be
// believed, so there are none.
func (n *Notifier) buttons(m escalation.Message) []slackgo.Block {
	if !n.settings.interactive() || m.About.ID == "" || !m.About.Open() {
		return nil
	}
	value, err := json.Marshal(Button{Finding: m.About.ID, Version: m.About.Version})
	if err != nil {
		return nil // unreachable: a text and a number
	}
	row := func(block string, actions []recon.Verb) slackgo.Block {
		var elements []slackgo.BlockElement
		for _, a := range actions {
			elements = append(elements, slackgo.NewButtonBlockElement(string(a), string(value),
				slackgo.NewTextBlockObject(slackgo.PlainTextType, labels[a], false, false)))
		}
		return slackgo.NewActionBlock(block, elements...)
	}
	var blocks []slackgo.Block
	if m.Proposal != nil {
		blocks = append(blocks, row("second", []recon.Verb{Approve, recon.Reject}))
	}
	blocks = append(blocks, row("attend", attend(m)))
	if d := decide(m); len(d) > 0 {
		blocks = append(blocks, row("decide", d))
	}
	return blocks
}

// attend are the actions that change no operation.
func attend(m escalation.Message) []recon.Verb {
	if len(m.About.Operations) == 0 && m.About.Kind != recon.FindBlind {
		return []recon.Verb{recon.Acknowledge, recon.Snooze, recon.Assign} // nothing could be looked at
	}
	return []recon.Verb{recon.Acknowledge, recon.CheckNow, recon.Snooze, recon.Assign}
}

// decide are the actions that settle the finding. What was found at the provider is not
// decided by a click: both sides must be compared first.
func decide(m escalation.Message) []recon.Verb {
	switch m.About.Kind {
	case recon.FindOrphan:
		return []recon.Verb{recon.Adopt, recon.Ignore}
	case recon.FindUnresolved, recon.FindMissing:
		actions := []recon.Verb{recon.Happened, recon.DidNotHappen}
		// What is refused for everyone is offered to nobody.
		if m.Story.Releasable(m.Now) {
			actions = append(actions, recon.Release)
		}
		return actions
	case recon.FindNeverSent:
		return []recon.Verb{recon.DidNotHappen}
	}
	return nil
}
