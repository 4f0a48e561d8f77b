package slack

import (
	"encoding/json"

	slackgo "github.com/slack-go/slack"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Action is what a button asks for; it is the button's action_id.
type Action string

// The buttons of a message.
const (
	Acknowledge  Action = "acknowledge"
	CheckNow     Action = "check_now"
	Snooze       Action = "snooze"
	Assign       Action = "assign"
	Happened     Action = "happened"
	DidNotHappen Action = "did_not_happen"
	Release      Action = "release"
	Adopt        Action = "adopt"
	Ignore       Action = "ignore"
)

var labels = map[Action]string{
	Acknowledge: "Acknowledge", CheckNow: "Check now", Snooze: "Snooze", Assign: "Assign",
	Happened: "It happened…", DidNotHappen: "It did not happen…", Release: "Release…", Adopt: "Adopt…", Ignore: "Not ours…",
}

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
	row := func(block string, actions []Action) slackgo.Block {
		var elements []slackgo.BlockElement
		for _, a := range actions {
			elements = append(elements, slackgo.NewButtonBlockElement(string(a), string(value),
				slackgo.NewTextBlockObject(slackgo.PlainTextType, labels[a], false, false)))
		}
		return slackgo.NewActionBlock(block, elements...)
	}
	blocks := []slackgo.Block{row("attend", attend(m))}
	if d := decide(m); len(d) > 0 {
		blocks = append(blocks, row("decide", d))
	}
	return blocks
}

// attend are the actions that change no operation.
func attend(m escalation.Message) []Action {
	if len(m.About.Operations) == 0 && m.About.Kind != recon.FindBlind {
		return []Action{Acknowledge, Snooze, Assign} // nothing could be looked at
	}
	return []Action{Acknowledge, CheckNow, Snooze, Assign}
}

// decide are the actions that settle the finding. What was found at the provider is not
// decided by a click: both sides must be compared first.
func decide(m escalation.Message) []Action {
	switch m.About.Kind {
	case recon.FindOrphan:
		return []Action{Adopt, Ignore}
	case recon.FindUnresolved, recon.FindMissing:
		actions := []Action{Happened, DidNotHappen}
		// A release is refused near the end of the key's lifetime, for everyone.
		if m.Now.Before(m.Story.SafeRetryUntil()) && m.Story.Operation.LastClass != recon.ClassStoredError {
			actions = append(actions, Release)
		}
		return actions
	case recon.FindNeverSent:
		return []Action{DidNotHappen}
	}
	return nil
}
