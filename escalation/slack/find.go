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

// Find looks for the message of a notice by its metadata.
func (n *Notifier) Find(ctx context.Context, notice string, since time.Time) (recon.Receipt, bool, error) {
	client, err := n.client("look back")
	if err != nil {
		return recon.Receipt{}, false, err
	}
	channel, err := n.lookupID(ctx, client)
	if err != nil {
		return recon.Receipt{}, false, err
	}
	p := slackgo.GetConversationHistoryParameters{
		ChannelID: channel, Oldest: stamp(since), Inclusive: true, Limit: pageSize, IncludeAllMetadata: true,
	}
	for range maxPages {
		page, err := client.GetConversationHistoryContext(ctx, &p)
		if err != nil {
			return recon.Receipt{}, false, n.fault("look back", err)
		}
		if !page.Ok {
			return recon.Receipt{}, false, n.fault("look back", errNoReceipt)
		}
		for _, m := range page.Messages {
			if m.Metadata.EventType == eventType && m.Metadata.EventPayload["notice"] == notice {
				return recon.Receipt{Channel: channel, TS: m.Timestamp}, true, nil
			}
		}
		if p.Cursor = page.ResponseMetaData.NextCursor; p.Cursor == "" {
			if page.HasMore {
				break // it says that there is more and not where: not a complete look
			}
			return recon.Receipt{}, false, nil
		}
	}
	return recon.Receipt{}, false, &escalation.Error{Destination: n.name, Op: "look back", Kind: escalation.Refused, Code: "too many messages since"}
}

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
	return "", &escalation.Error{Destination: n.name, Op: "look up channel", Kind: escalation.Refused, Code: "the bot is in no such channel"}
}

// stamp writes an instant as Slack's message ids do.
func stamp(t time.Time) string {
	return strconv.FormatInt(t.Unix(), 10) + "." + "000000"
}
