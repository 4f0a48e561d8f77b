package recon

import (
	"strconv"
	"strings"
)

// exponents holds the currencies of ISO 4217 whose minor unit is not a hundredth.
// All other ones have two digits; a test holds the table against
// github.com/bojanz/currency.
var exponents = map[string]int{
	"BHD": 3, "BIF": 0, "CLF": 4, "CLP": 0, "DJF": 0, "GNF": 0, "IQD": 3, "ISK": 0, "JOD": 3,
	"JPY": 0, "KMF": 0, "KRW": 0, "KWD": 3, "LYD": 3, "OMR": 3, "PYG": 0, "RWF": 0, "TND": 3,
	"UGX": 0, "UYI": 0, "UYW": 4, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
}

// Text writes the amount for people, such as "1,042.00 EUR" or "500 JPY". Overrides
// are the provider's own exponents where they differ from ISO 4217: Stripe, for
// instance, counts ISK and UGX in hundredths.
func (m Money) Text(overrides map[string]int) string {
	if m.IsZero() {
		return "no amount"
	}
	return m.SumText(overrides)
}

// SumText writes a sum, which may come to 0 and is known then: "0.00 EUR".
func (m Money) SumText(overrides map[string]int) string {
	if m.Currency == "" {
		return strconv.FormatInt(m.Minor, 10) + " minor units, currency not known"
	}
	return decimal(m.Minor, Decimals(m.Currency, overrides)) + " " + m.Currency
}

// Decimals is how many decimals a currency has: those of ISO 4217, unless the
// provider's own exponents say otherwise.
func Decimals(currency string, overrides map[string]int) int {
	if d, ok := overrides[currency]; ok && d >= 0 && d <= 6 {
		return d
	}
	if d, ok := exponents[currency]; ok {
		return d
	}
	return 2
}

// decimal writes a number of minor units with its decimals and with commas between
// thousands. It works on text, so that no value overflows or is rounded.
func decimal(minor int64, digits int) string {
	s := strconv.FormatInt(minor, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	if n := digits + 1 - len(s); n > 0 {
		s = strings.Repeat("0", n) + s
	}
	whole, rest := s[:len(s)-digits], s[len(s)-digits:]
	var b strings.Builder
	b.WriteString(sign)
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	if rest != "" {
		b.WriteByte('.')
		b.WriteString(rest)
	}
	return b.String()
}
