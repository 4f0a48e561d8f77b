package slack

import (
	"net/url"
	"strings"

	slackgo "github.com/slack-go/slack"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Settings are the settings of a destination of kind slack.
type Settings struct {
	// Channel is the channel's id (C…, G…, D…) or its name with a #. An id is the better
	// one: it survives renaming, and a lost answer can be looked up with fewer scopes.
	Channel string `yaml:"channel" json:"channel"`
	// Token is a bot token (xoxb-…) with the scope chat:write, and channels:history (or
	// groups:history) so that a lost answer can be looked up; with a channel's name also
	// channels:read (groups:read). It comes from TokenFile or the environment.
	Token recon.Secret `yaml:"token" json:"token"`
	// TokenFile is read before every request, so that a new token needs no restart.
	TokenFile string `yaml:"token_file" json:"token_file"`
	APIURL    string `yaml:"api_url" json:"api_url"` // default: https://slack.com/api/
}

// ReadSecrets fills the token that a file holds, without the white space around it.
func (s *Settings) ReadSecrets(read func(name string) ([]byte, error)) []recon.Fault {
	if s.TokenFile == "" {
		return nil
	}
	b, err := read(s.TokenFile)
	text := strings.TrimSpace(string(b))
	s.Token = recon.NewSecret(text)
	switch {
	case err != nil:
		return []recon.Fault{{Path: "token_file", Problem: "cannot read " + s.TokenFile + "; create it with the bot token as its only content"}}
	case text == "":
		return []recon.Fault{{Path: "token_file", Problem: s.TokenFile + " is empty; write the bot token into it"}}
	}
	return nil
}

// Filled gives the settings as they are used, with their defaults.
func (s Settings) Filled(string) any {
	if s.APIURL == "" {
		s.APIURL = slackgo.APIURL
	}
	return s
}

// Validate reports all that is wrong. The token is judged only where it is filled in,
// so that a file can be checked without it.
func (s Settings) Validate() []recon.Fault {
	var faults []recon.Fault
	fault := func(path, problem string) { faults = append(faults, recon.Fault{Path: path, Problem: problem}) }
	name := strings.TrimPrefix(s.Channel, "#")
	switch {
	case s.Channel == "":
		fault("channel", `is missing; write the channel's id, C0123456789, or its name, "#payments-recon"`)
	case name == "" || len(name) > 80 || strings.ContainsAny(name, " \t\r\n<>&#@,"):
		fault("channel", `is no channel; write its id, C0123456789, or its name, "#payments-recon"`)
	}
	switch {
	case s.Token.IsZero() && s.TokenFile == "":
		fault("token_file", "is missing; name the file that holds the bot token, xoxb-…")
	case !s.Token.IsZero() && strings.HasPrefix(s.Token.Reveal(), "https://"):
		fault("token_file", "holds a webhook address; a message that is posted through one cannot be edited later: use a bot token, xoxb-…")
	}
	if s.APIURL != "" {
		u, err := url.Parse(s.APIURL)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || (u.Scheme != "https" && u.Scheme != "http") {
			fault("api_url", "is not a base address; write it like https://slack.com/api/, without user or query")
		}
	}
	return faults
}
