package slack

import (
	"context"
	"strconv"
	"strings"
	"time"

	slackgo "github.com/slack-go/slack"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	pageSize = 100
	// maxPages bounds a look-back. A channel with more messages than that since the
	// first try cannot be searched, which is told as an error and not as "not there".
	maxPages = 20
)

// Find looks for the message of a notice by its metadata: in the channel, or among the
// answers to the message at root.
func (n *Notifier) Find(ctx context.Context, m escalation.Message, root recon.Receipt, since time.Time) (recon.Receipt, bool, error) {
	client, err := n.client("look back")
	if err != nil {
		return recon.Receipt{}, false, err
	}
	channel, err := n.lookupID(ctx, client)
	if err != nil {
		return recon.Receipt{}, false, err
	}
	if !root.IsZero() {
		channel = root.Channel
	}
	look := page{client: client, channel: channel, thread: root.TS, oldest: stamp(since)}
	for range maxPages {
		messages, more, err := look.next(ctx)
		if err != nil {
			return recon.Receipt{}, false, n.fault("look back", err)
		}
		for _, x := range messages {
			if x.Metadata.EventType == eventType && x.Metadata.EventPayload["notice"] == m.Notice {
				if x.Timestamp == "" { // nobody could edit it, or answer to it
					return recon.Receipt{}, false, n.fault("look back", errNoReceipt)
				}
				return recon.Receipt{Channel: channel, TS: x.Timestamp}, true, nil
			}
		}
		if look.cursor == "" {
			if more {
				break // it says that there is more and not where: not a complete look
			}
			return recon.Receipt{}, false, nil
		}
	}
	return recon.Receipt{}, false, &escalation.Error{Destination: n.name, Op: "look back", Kind: escalation.Refused, Code: "too many messages since"}
}

// page reads a channel or a thread page by page.
type page struct {
	client  *slackgo.Client
	channel string
	thread  string // the message whose answers are read; empty: the channel
	oldest  string
	cursor  string // of the next page; empty after the last one
}

func (p *page) next(ctx context.Context) (messages []slackgo.Message, more bool, err error) {
	if p.thread != "" {
		messages, more, p.cursor, err = p.client.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{
			ChannelID: p.channel, Timestamp: p.thread, Oldest: p.oldest, Inclusive: true, Limit: pageSize, IncludeAllMetadata: true, Cursor: p.cursor,
		})
		return messages, more, err
	}
	h, err := p.client.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{
		ChannelID: p.channel, Oldest: p.oldest, Inclusive: true, Limit: pageSize, IncludeAllMetadata: true, Cursor: p.cursor,
	})
	switch {
	case err != nil:
		return nil, false, err
	case !h.Ok:
		return nil, false, errNoReceipt
	}
	p.cursor = h.ResponseMetaData.NextCursor
	return h.Messages, h.HasMore, nil
}

// noSuchChannel is our own word for a name that none of the bot's channels has.
const noSuchChannel = "the bot is in no such channel"

// lookupID gives the channel's id, which a look-back needs. For a channel that is
// configured by name and in which nothing was posted since the start, it is looked up
// once among the channels of the bot.
func (n *Notifier) lookupID(ctx context.Context, client *slackgo.Client) (string, error) {
	name := n.channel()
	if !strings.HasPrefix(name, "#") && isID(name) {
		return name, nil
	}
	name = strings.TrimPrefix(name, "#")
	p := slackgo.GetConversationsForUserParameters{
		Types: []string{"public_channel", "private_channel"}, Limit: 200, ExcludeArchived: true,
	}
	for range maxPages {
		channels, next, err := client.GetConversationsForUserContext(ctx, &p)
		if err != nil {
			return "", n.fault("look up channel", err)
		}
		for _, c := range channels {
			if c.Name == name {
				n.remember(c.ID)
				return c.ID, nil
			}
		}
		if p.Cursor = next; next == "" {
			break
		}
	}
	return "", &escalation.Error{Destination: n.name, Op: "look up channel", Kind: escalation.Refused, Code: noSuchChannel}
}

// stamp writes an instant as Slack's message ids do.
func stamp(t time.Time) string {
	return strconv.FormatInt(t.Unix(), 10) + "." + "000000"
}
