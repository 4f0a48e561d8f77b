package slack

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestTheProbeSaysWhatATokenLacks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		channel, scopes string
		secret          string
		lacks           []string // how each begins
	}{
		"all":                   {"C000000001", "chat:write,channels:history", "s", nil},
		"all, of a private one": {"C000000001", "chat:write, groups:history", "s", nil},
		"a name":                {"#payments-recon", "chat:write,channels:history", "s", []string{"the channel is named by its name"}},
		"a name and its scope":  {"#payments-recon", "chat:write,channels:history,channels:read", "s", nil},
		"nothing of use":        {"C000000001", "users:read", "s", []string{"the scope chat:write is missing", "the scope channels:history"}},
		"no word of scopes":     {"C000000001", "", "s", nil},
		"no signing secret":     {"C000000001", "", "", []string{"messages have no buttons"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := workspace(t, slacktest.Options{Scopes: tt.scopes})
			n, err := New("recon", Settings{Channel: tt.channel, Token: recon.NewSecret("xoxb-TESTONLY"), APIURL: s.URL(), SigningSecret: recon.NewSecret(tt.secret)})
			if err != nil {
				t.Fatal(err)
			}
			a, err := n.Probe(t.Context())
			if err != nil || a.Who != "Example as reconciler" {
				t.Fatalf("%+v, %v", a, err)
			}
			for i := range min(len(a.Lacks), len(tt.lacks)) {
				if !strings.HasPrefix(a.Lacks[i], tt.lacks[i]) {
					t.Errorf("lacks: %s, want %s", a.Lacks[i], tt.lacks[i])
				}
			}
			if len(a.Lacks) != len(tt.lacks) {
				t.Errorf("lacks (-want +got):\n%s", cmp.Diff(tt.lacks, a.Lacks))
			}
		})
	}
}

func TestTheProbeSaysWhyATokenIsNoUse(t *testing.T) {
	t.Parallel()
	s := workspace(t, slacktest.Options{})
	n := notifier(t, s, "C000000001")
	s.Spoil(slacktest.Fault{Method: "auth.test", Error: "token_revoked"})
	s.Spoil(slacktest.Fault{Method: "auth.test", Status: 502})
	for _, want := range []string{"Slack refuses the token (token_revoked): install the app again", "Slack does not answer (http_502)"} {
		if _, err := n.Probe(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "TESTONLY") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestTheProbeSaysWhyAChannelTakesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		channel, scopes string
		change          func(*slacktest.Server)
		closed          string // how it begins
	}{
		"a member, by id":         {"C000000001", "", nil, ""},
		"a member, by name":       {"#payments-recon", "", nil, ""},
		"archived, by id":         {"C000000001", "", func(s *slacktest.Server) { s.Archive("payments-recon", true) }, "the channel C000000001 is archived"},
		"archived, by name":       {"#payments-recon", "", func(s *slacktest.Server) { s.Archive("payments-recon", true) }, "the app is in no channel #payments-recon"},
		"no member, by id":        {"C000000001", "", func(s *slacktest.Server) { s.Kick("payments-recon", true) }, "the app is no member of the channel C000000001: invite it"},
		"no member, who may post": {"C000000001", "chat:write,chat:write.public", func(s *slacktest.Server) { s.Kick("payments-recon", true) }, ""},
		"no such id":              {"C000000009", "", nil, "there is no channel C000000009"},
		"no such name":            {"#nobody", "", nil, "the app is in no channel #nobody"},
		"not known for want of scope": {"C000000009", "", func(s *slacktest.Server) {
			s.Spoil(slacktest.Fault{Method: "conversations.info", Error: "missing_scope"})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := workspace(t, slacktest.Options{Scopes: c.scopes})
			if c.change != nil {
				c.change(s)
			}
			a, err := notifier(t, s, c.channel).Probe(t.Context())
			if err != nil || (a.Closed == "") != (c.closed == "") || !strings.HasPrefix(a.Closed, c.closed) {
				t.Errorf("%q, %v; want %q", a.Closed, err, c.closed)
			}
		})
	}
	s := workspace(t, slacktest.Options{})
	s.Spoil(slacktest.Fault{Method: "conversations.info", Status: 502})
	if _, err := notifier(t, s, "C000000001").Probe(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "Slack does not answer") {
		t.Errorf("a channel that could not be looked at: %v", err)
	}
}
