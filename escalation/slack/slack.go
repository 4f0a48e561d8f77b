// Package slack tells findings in a Slack channel, with the slack-go client.
//
// One message is one finding or one incident; it is edited in place as that changes and
// ends. A further step of its ladder answers in its thread, for the whole channel to
// see, because an edit calls nobody. Slack keeps no idempotency keys, so every message carries the id of its
// notice as metadata, by which a post whose answer was lost is found again.
//
// No text from outside is ever read as formatting, a mention or a link: it stands in
// plain text or in a code span, escaped and cut. The package never retries; the
// errors say whether and when to.
package slack

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	// requestTimeout bounds one request; a post that takes longer counts as lost.
	requestTimeout = 10 * time.Second
	// maxReply bounds one answer: a page of 100 messages with their metadata.
	maxReply = 8 << 20
	maxToken = 4 << 10
	// eventType names our metadata, so that it is told apart from other apps'.
	eventType = "reconciler_notice"
)

// Notifier is one Slack channel.
type Notifier struct {
	name     string
	settings Settings
	http     *http.Client
	zone     *time.Location
	people   map[string]string // Slack user ids by the name that the configuration gives them

	mu sync.Mutex
	// channelID is the channel's id as Slack last answered it, guarded by mu. Edits and
	// look-backs need the id; it is never looked up when it is known.
	channelID string
}

var (
	_ escalation.Notifier = (*Notifier)(nil)
	_ escalation.Placed   = (*Notifier)(nil)
)

// Option changes how a Notifier works.
type Option func(*Notifier)

// WithZone shows times in a zone; the default is UTC.
func WithZone(z *time.Location) Option { return func(n *Notifier) { n.zone = z } }

// WithPeople makes people known by name, so that they can be called: to the id of their
// Slack user, T1/U1 or U1.
func WithPeople(ids map[string]string) Option { return func(n *Notifier) { n.people = ids } }

// New makes the notifier of a destination. It asks nobody anything.
func New(name string, s Settings, options ...Option) (*Notifier, error) {
	if faults := s.Validate(); len(faults) > 0 {
		return nil, faults[0]
	}
	if s.APIURL == "" {
		s.APIURL = slackgo.APIURL
	}
	if !strings.HasSuffix(s.APIURL, "/") {
		s.APIURL += "/"
	}
	n := &Notifier{name: name, settings: s, zone: time.UTC, http: &http.Client{
		Timeout:   requestTimeout,
		Transport: bounded{http.DefaultTransport},
		// A redirect would carry the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if isID(s.Channel) {
		n.channelID = s.Channel
	}
	for _, o := range options {
		o(n)
	}
	return n, nil
}

// Place is the channel, whichever destination names it.
func (n *Notifier) Place() string { return n.settings.APIURL + " " + n.settings.Channel }

// Send posts a new message. A message that Slack refuses for its form is posted once
// more as plain text, so that a fault of rendering never silences a finding.
func (n *Notifier) Send(ctx context.Context, m escalation.Message) (recon.Receipt, error) {
	return n.post(ctx, m, n.render(m), recon.Receipt{})
}

// Reply answers in the thread of the message at root, and shows the answer in the
// channel as well: who is called has not followed the thread.
func (n *Notifier) Reply(ctx context.Context, root recon.Receipt, m escalation.Message) (recon.Receipt, error) {
	return n.post(ctx, m, n.reply(m), root)
}

// post posts under a message, or for itself where root is zero.
func (n *Notifier) post(ctx context.Context, m escalation.Message, r rendered, root recon.Receipt) (recon.Receipt, error) {
	receipt, err := n.postOnce(ctx, m, r, root)
	if !formCodes[wordOf(err)] {
		return receipt, err
	}
	return n.postOnce(ctx, m, rendered{Text: r.Text}, root)
}

func (n *Notifier) postOnce(ctx context.Context, m escalation.Message, r rendered, root recon.Receipt) (recon.Receipt, error) {
	client, err := n.client("post message")
	if err != nil {
		return recon.Receipt{}, err
	}
	options := append(n.options(r), slackgo.MsgOptionMetadata(slackgo.SlackMetadata{
		EventType: eventType, EventPayload: map[string]any{"notice": m.Notice},
	}))
	to := n.channel()
	if !root.IsZero() {
		to = root.Channel // where the message stands, whatever the destination's channel is now
		options = append(options, slackgo.MsgOptionTS(root.TS), slackgo.MsgOptionBroadcast())
	}
	channel, ts, err := client.PostMessageContext(ctx, to, options...)
	if err == nil && (channel == "" || ts == "") {
		err = errNoReceipt
	}
	if err != nil {
		return recon.Receipt{}, n.fault("post message", err)
	}
	if root.IsZero() {
		n.remember(channel)
	}
	return recon.Receipt{Channel: channel, TS: ts}, nil
}

// Edit replaces the message at r.
func (n *Notifier) Edit(ctx context.Context, at recon.Receipt, m escalation.Message) error {
	client, err := n.client("edit message")
	if err != nil {
		return err
	}
	r := n.render(m)
	_, ts, _, err := client.UpdateMessageContext(ctx, at.Channel, at.TS, n.options(r)...)
	if formCodes[wordOf(n.faultOrNil("edit message", err))] {
		_, ts, _, err = client.UpdateMessageContext(ctx, at.Channel, at.TS, n.options(rendered{Text: r.Text})...)
	}
	if err == nil && ts == "" {
		err = errNoReceipt
	}
	return n.faultOrNil("edit message", err)
}

// options are those of a post and of an edit. An edit leaves the message's mark as it is.
func (n *Notifier) options(r rendered) []slackgo.MsgOption {
	o := []slackgo.MsgOption{
		slackgo.MsgOptionText(r.Text, false), // already escaped
		slackgo.MsgOptionDisableMarkdown(),
		slackgo.MsgOptionDisableLinkUnfurl(),
		slackgo.MsgOptionDisableMediaUnfurl(),
	}
	if len(r.Blocks) > 0 {
		o = append(o, slackgo.MsgOptionBlocks(r.Blocks...))
	}
	return o
}

// client makes a client with the token as it is now.
func (n *Notifier) client(op string) (*slackgo.Client, error) {
	token := n.settings.Token.Reveal()
	if n.settings.TokenFile != "" {
		t, err := readToken(n.settings.TokenFile)
		if err != nil {
			return nil, &escalation.Error{Destination: n.name, Op: op, Kind: escalation.Refused, Code: "the token file cannot be read"}
		}
		token = t
	}
	return slackgo.New(token, slackgo.OptionAPIURL(n.settings.APIURL), slackgo.OptionHTTPClient(n.http)), nil
}

func readToken(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxToken))
	return strings.TrimSpace(string(b)), err
}

// channel is the best name that we know of the channel.
func (n *Notifier) channel() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.channelID != "" {
		return n.channelID
	}
	return n.settings.Channel
}

func (n *Notifier) remember(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.channelID = id
}

// isID reports whether a channel is named by its id.
func isID(s string) bool {
	return len(s) >= 9 && strings.ContainsRune("CGD", rune(s[0])) &&
		strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// bounded limits what is read of an answer.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxReply), resp.Body}
	}
	return resp, err
}
