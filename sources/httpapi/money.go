package httpapi

import (
	"errors"
	"strconv"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const unitMajor, unitMinor = "major", "minor"

var errAmount = errors.New("an amount is not a number of its unit")

// money reads an amount. It works on text, so that no amount passes through a float.
// Decimals beyond those of the currency must be zeros: nothing is rounded.
func (k *kind) money(amount, currency string) (recon.Money, error) {
	if amount == "" {
		return recon.Money{}, nil
	}
	currency = strings.ToUpper(orElse(currency, k.currency))
	if len(currency) != 3 {
		return recon.Money{}, errors.New("an amount has no currency of three letters")
	}
	digits := 0
	if k.major {
		digits = recon.Decimals(currency, k.exponents)
	}
	minor, err := minorUnits(amount, digits)
	if err != nil {
		return recon.Money{}, err
	}
	if minor < 0 && !k.absolute {
		return recon.Money{}, errors.New("an amount is negative; say `absolute: true` if that is how the provider writes money that leaves")
	}
	return recon.Money{Minor: max(minor, -minor), Currency: currency}, nil
}

// minorUnits reads a plain decimal number as minor units with that many decimals.
func minorUnits(s string, digits int) (int64, error) {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	whole, fraction, dot := strings.Cut(s, ".")
	if dot && fraction == "" || strings.Trim(whole+fraction, "0123456789") != "" || whole == "" {
		return 0, errAmount
	}
	fraction += strings.Repeat("0", max(0, digits-len(fraction)))
	if strings.Trim(fraction[digits:], "0") != "" {
		return 0, errAmount
	}
	minor, err := strconv.ParseInt(sign+whole+fraction[:digits], 10, 64)
	if err != nil || minor == -1<<63 {
		return 0, errAmount
	}
	return minor, nil
}
