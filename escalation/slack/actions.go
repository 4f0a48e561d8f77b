package slack

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Approve is a button that is no verb of the ledger's: it says what somebody else
// proposed.
const Approve recon.Verb = "approve"

// maxEntry is how many characters of one field are taken; the ledger keeps 1,024.
const maxEntry = 1000

// Sort says which of the things that Slack sends an [Action] is.
type Sort string

// What Slack sends.
const (
	Click      Sort = "click"      // on a button of a message
	Submission Sort = "submission" // of a form that a click opened
	Other      Sort = "other"      // anything else: nothing is to be done
)

// Action is one thing that a person did with a message or a form of ours.
type Action struct {
	Sort Sort
	// Accounts are the ways in which the configuration may name whoever did it, as
	// TEAM/USER, the nearest first.
	Accounts []string
	Verb     recon.Verb
	Button   // the finding, as the person saw it
	// Key is the same for the same click told again, and for the same form sent again.
	Key     string
	Channel string // id of the message's channel; empty for a form
	Trigger string // opens a form, for three seconds
	Answer  string // address at which the person alone is told; empty: nowhere
	View    string // id of the form
	Entry   Entry
}

// Entry is what a form was filled in with.
type Entry struct {
	Reason    string
	Effect    string
	Operation recon.OperationID
	Action    string // of the operation that is to be made; only a proposal says it
	Assignee  string
	For       string // how long, such as 4h

	fields map[string]string // as they were filled in
}

// ErrUnreadable is a body that is no interaction of Slack's.
var ErrUnreadable = errors.New("this is not what Slack sends for a click: a form whose payload is JSON")

// payload is what we read of Slack's interactions.
type payload struct {
	Type       string `json:"type"`
	Team       id     `json:"team"`
	Enterprise id     `json:"enterprise"`
	Channel    id     `json:"channel"`
	User       struct {
		ID   string `json:"id"`
		Team string `json:"team_id"`
	} `json:"user"`
	Container struct {
		TS string `json:"message_ts"`
	} `json:"container"`
	Trigger string `json:"trigger_id"`
	Answer  string `json:"response_url"`
	Actions []struct {
		ID    string `json:"action_id"`
		TS    string `json:"action_ts"`
		Value string `json:"value"`
	} `json:"actions"`
	View struct {
		ID       string `json:"id"`
		Callback string `json:"callback_id"`
		Metadata string `json:"private_metadata"`
		State    struct {
			Values map[string]map[string]entered `json:"values"` // by block, by element
		} `json:"state"`
	} `json:"view"`
}

type id struct {
	ID string `json:"id"`
}

// entered is one field of a form: a text, or one of several choices.
type entered struct {
	Value  string `json:"value"`
	Choice struct {
		Value string `json:"value"`
	} `json:"selected_option"`
}

// ParseAction reads the body of one of Slack's interactions, whose signature was
// verified. What is none of ours is an [Other]; only what cannot be read is an error.
func ParseAction(body []byte) (Action, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return Action{}, ErrUnreadable
	}
	var p payload
	if json.Unmarshal([]byte(form.Get("payload")), &p) != nil || p.Type == "" {
		return Action{}, ErrUnreadable
	}
	a := Action{Sort: Other, Accounts: p.accounts(), Trigger: p.Trigger, Answer: p.Answer, Channel: p.Channel.ID}
	if len(a.Accounts) == 0 {
		return a, nil
	}
	switch {
	case p.Type == "block_actions" && len(p.Actions) == 1 && p.Container.TS != "":
		p.click(&a)
	case p.Type == "view_submission" && p.View.Callback == formCallback && p.View.ID != "":
		p.submission(&a)
	}
	return a, nil
}

// accounts names whoever did it: in their own workspace, which in a shared channel is
// not that of the message, else in the organisation that the workspace belongs to.
func (p payload) accounts() []string {
	team := p.User.Team
	if team == "" {
		team = p.Team.ID
	}
	if team == "" || p.User.ID == "" {
		return nil
	}
	list := []string{team + "/" + p.User.ID}
	if e := p.Enterprise.ID; e != "" && e != team && team == p.Team.ID {
		list = append(list, e+"/"+p.User.ID)
	}
	return list
}

// click reads a click on one of our buttons.
func (p payload) click(a *Action) {
	pressed := p.Actions[0]
	verb := recon.Verb(pressed.ID)
	var of Button
	if labels[verb] == "" || json.Unmarshal([]byte(pressed.Value), &of) != nil || of.bad() {
		return
	}
	a.Sort, a.Verb, a.Button = Click, verb, of
	a.Key = key("click", p.Container.TS, pressed.TS, a.Accounts[0])
}

// submission reads a form that was sent. What the form was opened for stands in its
// metadata, which people do not see.
func (p payload) submission(a *Action) {
	var of subject
	if json.Unmarshal([]byte(p.View.Metadata), &of) != nil || of.bad() || of.Verb == "" {
		return
	}
	in := map[string]string{}
	for field, elements := range p.View.State.Values {
		for _, e := range elements { // each of our fields has one
			in[field] = strings.TrimSpace(e.Value)
			if e.Choice.Value != "" {
				in[field] = e.Choice.Value
			}
		}
	}
	a.Sort, a.Verb, a.Button, a.View, a.Answer = Submission, of.Verb, of.Button, p.View.ID, of.Answer
	a.Key = key("form", p.View.ID, a.Accounts[0])
	a.Entry = Entry{
		Reason: in[FieldReason], Effect: in[fieldEffect], Operation: recon.OperationID(in[fieldOperation]),
		Action: of.Action, Assignee: in[fieldAssignee], For: in[fieldFor], fields: in,
	}
	if of.Effect != "" {
		a.Entry.Effect = of.Effect
	}
	if of.Operation != "" {
		a.Entry.Operation = of.Operation
	}
}

// bad reports whether the button cannot be one of ours.
func (b Button) bad() bool { return b.Finding == "" || len(b.Finding) > 200 || b.Version < 1 }

// key joins what makes an action the same one.
func key(parts ...string) string { return recon.Shorten("slack/"+strings.Join(parts, "/"), maxEntry) }

// Typed is the field of the form that an answer with the verb rests on; empty where the
// form did not ask for it.
func (e Entry) Typed(v recon.Verb) string {
	field := map[recon.Verb]string{recon.Happened: fieldEffect, recon.Adopt: fieldOperation}[v]
	if _, asked := e.fields[field]; !asked {
		return ""
	}
	return field
}

// Faults tells what is wrong with what was filled in, by field.
func (e Entry) Faults(v recon.Verb) map[string]string {
	faults := map[string]string{}
	if (v.Settles() || v == recon.Reject) && e.Reason == "" {
		faults[FieldReason] = "Say why it is so. It is kept as evidence."
	}
	if typed, asked := e.fields[fieldEffect]; asked && typed == "" {
		faults[fieldEffect] = "Look it up at the provider and write its id here."
	}
	for field, value := range e.fields {
		if n := utf8.RuneCountInString(value); n > maxEntry {
			faults[field] = "At most " + thousands(maxEntry) + " characters are kept; these are " + thousands(n) + "."
		} else if strings.ContainsRune(value, 0) || !utf8.ValidString(value) {
			faults[field] = "There are characters in it that no text has."
		}
	}
	if v == recon.Snooze && !slices.Contains(spans, e.For) {
		faults[fieldFor] = "Choose one of the times."
	}
	if v == recon.Assign && e.Assignee == "" {
		faults[fieldAssignee] = "Choose whose it is."
	}
	return faults
}
