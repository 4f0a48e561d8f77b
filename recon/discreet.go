package recon

import (
	"regexp"
	"strings"
)

var (
	mailAddress = regexp.MustCompile(`[^\s<>"',;:()]+@[^\s<>"',;:()]+`)
	// Cards begin so, and times written without separators do not.
	cardDigits = regexp.MustCompile(`\b(?:[3-6]|2[2-7])(?:[ -]?[0-9]){11,18}\b`)
)

// Discreet takes e-mail addresses and card numbers out of a value that a message quotes.
// A wrong column of somebody's file puts them where a date or a status belongs.
func Discreet(s string) string {
	s = mailAddress.ReplaceAllString(s, "[e-mail address]")
	return cardDigits.ReplaceAllStringFunc(s, func(digits string) string {
		if len(digits) < 13 || !isCard(digits) {
			return digits
		}
		return "[card number]"
	})
}

// isCard reports whether the check digit of ISO/IEC 7812 is right, as it is for one in ten
// of other numbers.
func isCard(digits string) bool {
	digits = strings.NewReplacer(" ", "", "-", "").Replace(digits)
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			d *= 2
		}
		sum += d/10 + d%10
	}
	return sum%10 == 0
}
