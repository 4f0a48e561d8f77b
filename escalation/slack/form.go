package slack

import (
	"context"
	"encoding/json"
	"net/url"
	"unicode/utf8"

	slackgo "github.com/slack-go/slack"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// formCallback names our forms, so that they are told apart from other ones.
const formCallback = "reconciler_decide"

// FieldReason is the field that every form has.
const FieldReason = "reason"

// Other fields of forms.
const (
	fieldEffect    = "effect"
	fieldOperation = "operation"
	fieldAssignee  = "assignee"
	fieldFor       = "for"
)

// Slack's limits on forms, in characters.
const (
	maxOption   = 75
	maxChoice   = 150
	maxOptions  = 100
	maxMetadata = 3000
)

// spans are the times that a finding can be put off by.
var spans = []string{"30m", "1h", "4h", "8h", "24h", "3d", "7d"}

// Form is what a person is asked before their word counts.
type Form struct {
	Verb recon.Verb
	Button
	// About says what is decided on, one line each.
	About []string
	// Effect is the effect's id as far as it is known; a person may put in another one.
	Effect string
	// Proposal is what somebody else wants, which this form ends.
	Proposal *recon.Proposal
	// People may be assigned; Person is whoever asked for the form.
	People []string
	Person string
	// Answer is where the person is told, when the form is no longer open.
	Answer string
}

// subject is what a form is about, as it comes back when it is sent.
type subject struct {
	Button
	Verb      recon.Verb        `json:"verb"`
	Effect    string            `json:"effect,omitempty"` // fixed by a proposal
	Operation recon.OperationID `json:"operation,omitempty"`
	Action    string            `json:"action,omitempty"`
	Answer    string            `json:"answer,omitempty"`
}

// Open opens a form for whoever clicked, with the click's trigger, which is good for
// three seconds and once.
func (n *Notifier) Open(ctx context.Context, trigger string, f Form) error {
	const op = "open form"
	client, err := n.client(op)
	if err != nil {
		return err
	}
	view, err := f.view()
	if err != nil {
		return &escalation.Error{Destination: n.name, Op: op, Kind: escalation.Rejected, Code: "form too large"}
	}
	_, err = client.OpenViewContext(ctx, trigger, view)
	return n.faultOrNil(op, err)
}

// Show replaces what a form that was sent shows, where it is still open.
func (n *Notifier) Show(ctx context.Context, view, said string) error {
	const op = "show answer"
	client, err := n.client(op)
	if err != nil {
		return err
	}
	_, err = client.UpdateViewContext(ctx, Shown(said), "", "", view)
	return n.faultOrNil(op, err)
}

// Shown is a form that only says something.
func Shown(said string) slackgo.ModalViewRequest {
	return slackgo.ModalViewRequest{
		Type: slackgo.VTModal, Title: label("Answer"), Close: label("Close"),
		Blocks: slackgo.Blocks{BlockSet: []slackgo.Block{text(plain(said, maxSection))}},
	}
}

// Tell tells one person something that nobody else sees, at the address that came with
// their click. An address that is not of Slack's is not called.
func (n *Notifier) Tell(ctx context.Context, address, said string) error {
	const op = "tell the person"
	if !n.ours(address) {
		return &escalation.Error{Destination: n.name, Op: op, Kind: escalation.Rejected, Code: "no address of Slack's"}
	}
	said = plain(said, maxSection)
	err := slackgo.PostWebhookCustomHTTPContext(ctx, address, n.http, &slackgo.WebhookMessage{
		ResponseType: slackgo.ResponseTypeEphemeral, Text: said,
		Blocks: &slackgo.Blocks{BlockSet: []slackgo.Block{text(said)}},
	})
	return n.faultOrNil(op, err)
}

// ours reports whether an address is Slack's, or of the host that stands in its place: no
// one else is to be called.
func (n *Notifier) ours(address string) bool {
	u, err := url.Parse(address)
	api, fault := url.Parse(n.settings.APIURL)
	if err != nil || fault != nil || u.User != nil {
		return false
	}
	slacks := u.Host == "hooks.slack.com" || u.Host == "hooks.slack-gov.com"
	return slacks && u.Scheme == "https" || u.Host == api.Host && u.Scheme == api.Scheme
}

// titles head the forms; Slack takes 24 characters.
var titles = map[recon.Verb]string{
	recon.Snooze: "Snooze", recon.Assign: "Assign", recon.Happened: "It happened", recon.DidNotHappen: "It did not happen",
	recon.Release: "Release", recon.Accept: "Accept", recon.Adopt: "Adopt the effect", recon.Ignore: "Not ours", Approve: "Approve", recon.Reject: "Reject",
}

// effects say what comes of it when the form is sent.
var effects = map[recon.Verb]string{
	recon.Snooze:       "Nobody is told again before then.",
	recon.Happened:     "The operation becomes succeeded, with this effect.",
	recon.DidNotHappen: "The operation becomes failed, for good. Be sure that the provider has nothing of it.",
	recon.Release:      "It may be sent once more, under the same key, so that the provider does it at most once.",
	recon.Accept:       "What was found stands as it is, and is not told again.",
	recon.Adopt:        "The effect becomes one of an operation of ours.",
	recon.Ignore:       "The effect is none of ours, and is not told again.",
	recon.Reject:       "What was proposed is dropped. The finding stays open.",
}

// view makes the form.
func (f Form) view() (slackgo.ModalViewRequest, error) {
	of := subject{Button: f.Button, Verb: f.Verb, Answer: f.Answer}
	title := titles[f.Verb]
	if p := f.Proposal; p != nil && f.Verb == Approve {
		of.Verb, of.Effect, of.Operation, of.Action = p.Verb, p.Effect, p.Operation, p.Action
	}
	metadata, err := json.Marshal(of)
	if err != nil {
		return slackgo.ModalViewRequest{}, err
	}
	if utf8.RuneCount(metadata) > maxMetadata { // only ids that Slack takes nowhere are that long
		of.Answer = ""
		if metadata, err = json.Marshal(of); err != nil || utf8.RuneCount(metadata) > maxMetadata {
			return slackgo.ModalViewRequest{}, ErrUnreadable
		}
	}
	return slackgo.ModalViewRequest{
		Type: slackgo.VTModal, CallbackID: formCallback, PrivateMetadata: string(metadata),
		Title: label(title), Submit: label(title), Close: label("Cancel"), Blocks: slackgo.Blocks{BlockSet: f.blocks()},
	}, nil
}

// blocks are what the form says and asks.
func (f Form) blocks() []slackgo.Block {
	var blocks []slackgo.Block
	add := func(b slackgo.Block) {
		if b != nil {
			blocks = append(blocks, b)
		}
	}
	var about []string
	for _, l := range f.About {
		about = append(about, first(l))
	}
	add(text(lines(about, maxSection)))
	verb := f.Verb
	if p := f.Proposal; p != nil {
		if verb == Approve {
			verb = p.Verb
		}
		add(text(plain("Proposed by "+recon.Shorten(p.Person, 100)+": "+p.Verb.Text(p.Effect)+". Why: "+p.Reason, maxSection)))
	}
	add(text(effects[verb]))
	switch {
	case f.Verb == recon.Snooze:
		add(f.spans())
	case f.Verb == recon.Assign:
		add(f.people())
	case f.Proposal != nil:
	case f.Verb == recon.Happened:
		add(question{field: fieldEffect, name: "The effect's id at the provider", value: f.Effect,
			hint: "It is looked up there before it counts. A second person is needed where it is not found."}.block())
	case f.Verb == recon.Adopt:
		add(question{field: fieldOperation, name: "The operation that it belongs to", hint: "Leave it empty and one is made for it.", optional: true}.block())
	}
	add(question{field: FieldReason, name: "Reason", hint: "Why it is so, in your own words. It is kept as evidence.",
		optional: f.Verb == recon.Snooze || f.Verb == recon.Assign, long: true}.block())
	return blocks
}

// question is a field for text.
type question struct {
	field, name, hint string
	value             string // what it begins with
	optional, long    bool
}

func (q question) block() slackgo.Block {
	input := slackgo.NewPlainTextInputBlockElement(nil, q.field)
	input.MaxLength, input.InitialValue, input.Multiline = maxEntry, recon.Shorten(q.value, maxEntry), q.long
	block := slackgo.NewInputBlock(q.field, label(q.name), label(q.hint), input)
	block.Optional = q.optional
	return block
}

// choice is a field with several answers.
func choice(field, name string, options []*slackgo.OptionBlockObject, first *slackgo.OptionBlockObject) slackgo.Block {
	list := slackgo.NewOptionsSelectBlockElement(slackgo.OptTypeStatic, nil, field, options...)
	list.InitialOption = first
	return slackgo.NewInputBlock(field, label(name), nil, list)
}

func (f Form) spans() slackgo.Block {
	var options []*slackgo.OptionBlockObject
	for _, s := range spans {
		options = append(options, slackgo.NewOptionBlockObject(s, label(s), nil))
	}
	return choice(fieldFor, "For how long", options, options[2])
}

func (f Form) people() slackgo.Block {
	var options []*slackgo.OptionBlockObject
	var me *slackgo.OptionBlockObject
	for _, name := range f.People {
		if len(options) == maxOptions || utf8.RuneCountInString(name) > maxChoice {
			continue // those are assigned on the command line
		}
		o := slackgo.NewOptionBlockObject(name, label(plain(name, maxOption)), nil)
		if options = append(options, o); name == f.Person {
			me = o
		}
	}
	return choice(fieldAssignee, "Whose it is", options, me)
}

// label is our own short text.
func label(s string) *slackgo.TextBlockObject {
	return slackgo.NewTextBlockObject(slackgo.PlainTextType, s, false, false)
}
