package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack"
)

// What the example and the manual show of Slack is valid as it stands, and has buttons.
func TestTheSlackDestinationsThatTheManualsShowHaveButtons(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("xoxb-TESTONLY"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(Example, "  # - name: recon\n")
	block, _, end := strings.Cut(block, "  # - name: pager\n")
	if !ok || !end {
		t.Fatal("the example shows no destination of kind slack")
	}
	page, err := os.ReadFile("../docs/escalation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, manual, ok := strings.Cut(string(page), "## Slack\n")
	_, manual, begins := strings.Cut(manual, "```yaml\n")
	manual, _, ends := strings.Cut(manual, "```")
	if !ok || !begins || !ends {
		t.Fatal("the manual shows no configuration of Slack")
	}
	for name, text := range map[string]string{
		"example": "escalation:\n  destinations:\n  - name: recon\n" + regexp.MustCompile(`(?m)^  # `).ReplaceAllString(block, "  "),
		"manual":  manual,
	} {
		c := mustParse(t, regexp.MustCompile(`/run/secrets/\w+`).ReplaceAllString(text, secret))
		if len(c.Destinations) != 1 {
			t.Fatalf("%s: destinations %+v", name, c.Destinations)
		}
		n, err := c.Destinations[0].Open(time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		if app, ok := n.(*slack.Notifier); !ok || !app.Interactive() {
			t.Errorf("%s: %T has no buttons", name, n)
		}
	}
}
