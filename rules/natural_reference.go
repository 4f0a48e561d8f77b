package rules

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// foldReference reduces a natural reference to what stays of it when people type it again:
// without case, spaces, signs and leading zeros. "Acme GmbH / RE-0042" and "ACME GMBH RE 42"
// are one. Numbers that a sign keeps apart stay apart, since 1-23 is not 12-3; letters do
// not, and neither do a letter and a digit. Other scripts keep their characters.
//
// Two references with one fold are suspected to be the same, and never taken for it. The
// ledger finds them by a coarser fold (its index operations_reference_folded): of the same
// text in NFKC it keeps letters of ASCII and digits other than 0. A reference that has none of
// these is like nothing but itself: what is left of it is too little to be told by.
func foldReference(reference string) string {
	var out strings.Builder
	digits, zeros, apart := false, false, false // a number is being read, so far of zeros only; a sign came since
	end := func() {
		if digits && zeros {
			out.WriteByte('0')
		}
		zeros = false
	}
	for _, r := range norm.NFKC.String(reference) {
		switch {
		case r >= '0' && r <= '9':
			if !digits || apart {
				end()
				if digits {
					out.WriteByte('-')
				}
				digits, zeros = true, true
			}
			if r != '0' || !zeros {
				zeros = false
				out.WriteRune(r)
			}
			apart = false
		case r <= unicode.MaxASCII && !unicode.IsLetter(r), unicode.IsSpace(r), unicode.Is(unicode.Cf, r), unicode.IsPunct(r):
			apart = true
		default:
			end()
			if r <= unicode.MaxASCII {
				r = unicode.ToLower(r)
			}
			digits, apart = false, false
			out.WriteRune(r)
		}
	}
	end()
	if !strings.ContainsAny(out.String(), "abcdefghijklmnopqrstuvwxyz123456789") {
		return norm.NFC.String(reference)
	}
	return out.String()
}
