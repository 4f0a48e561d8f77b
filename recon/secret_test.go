package recon_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestB100_NoWayOfPrintingShowsASecret(t *testing.T) {
	t.Parallel()
	type settings struct {
		Key recon.Secret
	}
	const text = "sk_live_TESTONLY"
	s := settings{Key: recon.NewSecret(text)}

	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T %v"} {
		fmt.Fprintf(&out, verb+"\n", s.Key)
		fmt.Fprintf(&out, verb+"\n", s)
		fmt.Fprintf(&out, verb+"\n", &s)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("settings", "key", s.Key, "all", s)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("settings", "key", s.Key, "all", s)
	if err := json.NewEncoder(&out).Encode(s); err != nil {
		t.Fatal(err)
	}

	hex := fmt.Sprintf("%x", text)
	if got := out.String(); strings.Contains(got, text) || strings.Contains(strings.ToLower(got), hex) {
		t.Errorf("the secret shows in:\n%s", got)
	}
	if got := s.Key.Reveal(); got != text {
		t.Errorf("Reveal() = %q, want the text itself", got)
	}
}
