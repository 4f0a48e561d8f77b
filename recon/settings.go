package recon

import (
	"fmt"
	"log/slog"
)

// Fault is one thing that is wrong with the settings of a source or a destination:
// where, and what to write instead. Settings report all of theirs at once.
type Fault struct {
	Path    string // the key inside settings, such as accounts[1].mode
	Problem string
}

func (f Fault) Error() string {
	if f.Path == "" {
		return f.Problem
	}
	return f.Path + ": " + f.Problem
}

// redacted is what every way of printing a secret gives. Where there is none it gives
// nothing, so that a reader sees what is missing.
const redacted = "[redacted]"

// Secret is a credential. However it is printed, logged or encoded it reads
// [redacted], or nothing where it is empty; only Reveal gives the text, at the one place that sends it.
type Secret struct {
	text string
}

// NewSecret keeps text as a secret.
func NewSecret(text string) Secret { return Secret{text: text} }

// Reveal gives the text itself.
func (s Secret) Reveal() string { return s.text }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.text == "" }

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// Format implements fmt.Formatter for every verb, %d and %#v included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler, so that no encoder shows the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Secret) UnmarshalText(b []byte) error {
	s.text = string(b)
	return nil
}
