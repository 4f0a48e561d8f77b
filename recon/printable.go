package recon

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable makes text from outside safe to show on one line of a terminal or a
// message: characters that steer a terminal, turn the direction of writing or cannot
// be seen become a visible mark, so that nobody reads one id as another. White space
// becomes a plain space.
func Printable(s string) string {
	clean := func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return '\uFFFD'
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}
	return strings.Map(clean, strings.ToValidUTF8(s, "\uFFFD"))
}

// Shorten cuts s to at most max characters and marks the cut.
func Shorten(s string, max int) string {
	if utf8.RuneCountInString(s) <= max {
		return s
	}
	n := 0
	for i := range s {
		if n++; n == max {
			return s[:i] + "…"
		}
	}
	return ""
}
