package slack

import (
	"context"
	"errors"
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
)

// scopesHeader is where Slack says what a token may do.
const scopesHeader = "X-OAuth-Scopes"

// Access is what Slack says of a token.
type Access struct {
	Who string // the workspace and the app's user
	// Closed says why nothing can be posted to the channel, with the next step; empty: nothing
	// is known to be in the way.
	Closed string
	// Lacks tells what is missing, one sentence each with the next step.
	Lacks []string
}

// Probe asks Slack whose the token is and what it may do. It changes nothing. An error
// says what to do about it.
func (n *Notifier) Probe(ctx context.Context) (Access, error) {
	const op = "ask who we are"
	client, err := n.client(op)
	if err != nil {
		return Access{}, errors.New("the token file cannot be read: check token_file and who may read it")
	}
	who, err := client.AuthTestContext(ctx)
	if err != nil {
		fault := n.fault(op, err)
		if errors.Is(fault, escalation.Refused) {
			return Access{}, errors.New("Slack refuses the token (" + wordOf(fault) + "): install the app again and write its bot token, xoxb-…, into token_file")
		}
		return Access{}, errors.New("Slack does not answer (" + wordOf(fault) + "): check the way out to " + n.settings.APIURL)
	}
	a := Access{Who: cut(who.Team, 80) + " as " + cut(who.User, 80)}
	scopes := strings.FieldsFunc(who.Header.Get(scopesHeader), func(r rune) bool { return r == ',' || r == ' ' })
	if len(scopes) > 0 { // else they are not known
		a.Lacks = n.lacks(scopes)
	}
	if a.Closed, err = n.closed(ctx, client, scopes); err != nil {
		return Access{}, errors.New("Slack does not answer (" + wordOf(err) + "): try again")
	}
	if !n.Interactive() {
		a.Lacks = append(a.Lacks, "messages have no buttons: set signing_secret_file to the app's signing secret")
	}
	return a, nil
}

// closed asks whether the channel takes what the app posts. What a missing scope keeps from
// being known is no finding: lacks tells of the scope.
func (n *Notifier) closed(ctx context.Context, client *slackgo.Client, scopes []string) (string, error) {
	const op = "look at the channel"
	name := n.settings.Channel
	id, err := n.lookupID(ctx, client)
	if wordOf(err) == noSuchChannel {
		return "the app is in no channel " + name + " that is not archived: invite it, or correct the name", nil
	}
	var info *slackgo.Channel
	if err == nil {
		info, err = client.GetConversationInfoContext(ctx, &slackgo.GetConversationInfoInput{ChannelID: id})
		err = n.faultOrNil(op, err)
	}
	switch {
	case wordOf(err) == "channel_not_found":
		return "there is no channel " + name + " for this app: correct the id, or invite the app if the channel is private", nil
	case errors.Is(err, escalation.Refused): // a scope, mostly
		return "", nil
	case err != nil:
		return "", err
	case info.IsArchived:
		return "the channel " + name + " is archived: unarchive it, or name another", nil
	case !info.IsMember && !info.IsIM && !slices.Contains(scopes, "chat:write.public"):
		return "the app is no member of the channel " + name + ": invite it", nil
	}
	return "", nil
}

// lacks tells what these scopes do not let us do.
func (n *Notifier) lacks(scopes []string) []string {
	given := map[string]bool{}
	for _, s := range scopes {
		given[s] = true
	}
	var list []string
	if !given["chat:write"] {
		list = append(list, "the scope chat:write is missing, without which nothing is told: add it and install the app again")
	}
	if !given["channels:history"] && !given["groups:history"] {
		list = append(list, "the scope channels:history (groups:history for a private channel) is missing, so a post whose answer was lost may be told twice: add it and install the app again")
	}
	if !isID(n.settings.Channel) && !given["channels:read"] && !given["groups:read"] {
		list = append(list, "the channel is named by its name, and the scope channels:read (groups:read) is missing: write its id, C0123456789, or add the scope")
	}
	return list
}
