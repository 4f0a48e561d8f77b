package sources

import (
	"fmt"
	"log/slog"
)

// redacted is what every way of printing a secret gives.
const redacted = "[redacted]"

// Secret is a credential. However it is printed, logged or encoded it reads
// [redacted]; only Reveal gives the text, at the one place that sends it.
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
func (s Secret) String() string { return redacted }

// Format implements fmt.Formatter for every verb, %d and %#v included.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler, so that no encoder shows the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Secret) UnmarshalText(b []byte) error {
	s.text = string(b)
	return nil
}
