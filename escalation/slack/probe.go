package slack

import (
	"context"
	"errors"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
)

// scopesHeader is where Slack says what a token may do.
const scopesHeader = "X-OAuth-Scopes"

// Access is what Slack says of a token.
type Access struct {
	Who string // the workspace and the app's user
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
	if given := who.Header.Get(scopesHeader); given != "" { // else it is not known
		a.Lacks = n.lacks(strings.FieldsFunc(given, func(r rune) bool { return r == ',' || r == ' ' }))
	}
	if !n.Interactive() {
		a.Lacks = append(a.Lacks, "messages have no buttons: set signing_secret_file to the app's signing secret")
	}
	return a, nil
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
