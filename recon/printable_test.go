package recon

import (
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestTextFromOutsideCannotSteerAScreen(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"plain", "order:4417 – größer 日本", "order:4417 – größer 日本"},
		{"a terminal's colours", "\x1b[31mred\x1b[0m", "�[31mred�[0m"},
		{"line breaks", "a\r\nb\tc", "a  b c"},
		{"direction of writing", "re_\u202e1_er", "re_�1_er"},
		{"invisible characters", "re_\u200b1\u2060", "re_�1�"},
		{"NUL", "a\x00b", "a�b"},
		{"not UTF-8", "a\xff\xfeb", "a�b"},
	}
	for _, tt := range tests {
		if got := Printable(tt.in); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestShortenMarksTheCutAndKeepsTheLimit(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		max  int
		want string
	}{{"größe", 5, "größe"}, {"größer", 5, "größ…"}, {"ab", 1, "…"}, {"", 0, ""}, {"ab", 0, ""}}
	for _, tt := range tests {
		if got := Shorten(tt.in, tt.max); got != tt.want {
			t.Errorf("%q to %d: got %q, want %q", tt.in, tt.max, got, tt.want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("a\x00\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := Printable(s)
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q holds %U", got, r)
			}
		}
		if again := Printable(got); again != got {
			t.Fatalf("%q becomes %q when cleaned twice", got, again)
		}
	})
}
