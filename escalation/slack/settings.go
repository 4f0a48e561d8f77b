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
	// Mentions are the ids of users (U…) and user groups (S…) whom a step's mention calls,
	// by the name that the ladders use.
	Mentions map[string]string `yaml:"mentions" json:"mentions"`
	// SigningSecret is the app's, by which a click is believed. Messages have buttons only
	// where it is set.
	SigningSecret     recon.Secret `yaml:"signing_secret" json:"signing_secret"`
	SigningSecretFile string       `yaml:"signing_secret_file" json:"signing_secret_file"`
	// Link is a page of one's own, such as a dashboard, that every message leads to.
	Link string `yaml:"link" json:"link"`
}

// interactive reports whether clicks on buttons can be believed.
func (s Settings) interactive() bool { return !s.SigningSecret.IsZero() || s.SigningSecretFile != "" }

// Calls reports whether a mention of the name calls anybody, where people are known by
// these names.
func (s Settings) Calls(name string, people map[string]string) bool {
	_, mentioned := s.Mentions[name]
	_, person := people[name]
	return mentioned || person || addressed(name)
}

// ReadSecrets fills the token and the signing secret that files hold, without the white
// space around them.
func (s *Settings) ReadSecrets(read func(name string) ([]byte, error)) []recon.Fault {
	faults := s.Token.ReadFile("token_file", s.TokenFile, "the bot token", read)
	return append(faults, s.SigningSecret.ReadFile("signing_secret_file", s.SigningSecretFile, "the app's signing secret", read)...)
}

// Filled gives the settings as they are used, with their defaults.
func (s Settings) Filled(string) any {
	if s.APIURL == "" {
		s.APIURL = slackgo.APIURL
	}
	if s.Mentions == nil {
		s.Mentions = map[string]string{}
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
	for name, id := range s.Mentions {
		if !userID.MatchString(id) && !groupID.MatchString(id) {
			fault("mentions."+name, "is no id of a user (U…) or a user group (S…)")
		}
	}
	if s.Link != "" {
		if u, err := url.Parse(s.Link); err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && u.Scheme != "http" || strings.ContainsAny(s.Link, "|<> ") {
			fault("link", "is not an address; write it like https://dashboards.example/reconciler")
		}
	}
	if s.APIURL != "" {
		u, err := url.Parse(s.APIURL)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || (u.Scheme != "https" && u.Scheme != "http") {
			fault("api_url", "is not a base address; write it like https://slack.com/api/, without user or query")
		}
	}
	return faults
}
