package sources

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// The units in which a provider may write amounts, and the modes of an account.
const (
	UnitMajor, UnitMinor = "major", "minor"
	ModeLive, ModeTest   = "live", "test"
)

var errAmount = errors.New("an amount is not a number of its unit")

// Fields says how a provider writes what an object holds, and under which of its names:
// amounts, and the words of statuses and modes.
type Fields struct {
	// Amount, CurrencyField, Status and Mode name where an object holds them; empty: nowhere.
	Amount, CurrencyField, Status, Mode string

	Unit      string // minor (1250) or major (12.50)
	Currency  string // of every amount, where no field names one
	Exponents map[string]int
	Absolute  bool // amounts of money that leaves are negative
	Statuses  map[string]string
	Modes     map[string]string
}

// Faults reports what is wrong, at the keys of a source's settings. fields is the key under
// which they name an object's fields.
func (f Fields) Faults(fields string) []recon.Fault {
	var faults []recon.Fault
	fault := func(path, format string, args ...any) {
		faults = append(faults, recon.Fault{Path: path, Problem: fmt.Sprintf(format, args...)})
	}
	switch {
	case f.Amount == "" && (f.Unit != "" || f.Currency != "" || f.CurrencyField != ""):
		fault(fields+".amount", "is missing, and a unit or currency is of no use without it")
	case f.Amount != "" && f.Unit != UnitMajor && f.Unit != UnitMinor:
		fault("unit", "is missing; write minor (1250) or major (12.50)")
	case f.Amount != "" && (f.CurrencyField == "") == (f.Currency == ""):
		fault("currency", "is needed once: as currency, or as %s.currency", fields)
	}
	if f.Currency != "" && !isCurrency(strings.ToUpper(f.Currency)) {
		fault("currency", "is no currency; write three letters, such as EUR")
	}
	for _, currency := range slices.Sorted(maps.Keys(f.Exponents)) {
		if digits := f.Exponents[currency]; !isCurrency(currency) || digits < 0 || digits > 6 {
			fault("exponents."+currency, "must be a currency in capital letters with 0 to 6 decimals")
		}
	}
	for _, word := range slices.Sorted(maps.Keys(f.Statuses)) {
		if !recon.EffectStatus(f.Statuses[word]).Valid() {
			fault("statuses."+word, "%q is no status; write in_flight, completed, failed or reversed", f.Statuses[word])
		}
	}
	if (f.Status == "") != (len(f.Statuses) == 0) {
		fault("statuses", "and %s.status belong together: the field, and what its words mean", fields)
	}
	for _, word := range slices.Sorted(maps.Keys(f.Modes)) {
		if mode := f.Modes[word]; mode != ModeLive && mode != ModeTest {
			fault("modes."+word, "%q is neither live nor test", mode)
		}
	}
	if (f.Mode == "") != (len(f.Modes) == 0) {
		fault("modes", "and %s.mode belong together: the field, and what its words mean", fields)
	}
	return faults
}

// StatusOf gives the meaning of a status word. A word that is not named is not guessed.
func (f Fields) StatusOf(word string) (recon.EffectStatus, error) {
	status, known := f.Statuses[word]
	if !known {
		return "", errors.New("holds a word that statuses does not name; add what it means")
	}
	return recon.EffectStatus(status), nil
}

// Money reads an amount. It works on text, so that no amount passes through a float.
// Decimals beyond those of the currency must be zeros: nothing is rounded. An empty amount
// is not known.
func (f Fields) Money(amount, currency string) (recon.Money, error) {
	if amount == "" {
		return recon.Money{}, nil
	}
	if currency == "" {
		currency = f.Currency
	}
	currency = strings.ToUpper(currency)
	if !isCurrency(currency) {
		return recon.Money{}, errors.New("an amount has no currency of three letters")
	}
	digits := 0
	if f.Unit == UnitMajor {
		digits = recon.Decimals(currency, f.Exponents)
	}
	minor, err := minorUnits(amount, digits)
	if err != nil {
		return recon.Money{}, err
	}
	if minor < 0 && !f.Absolute {
		return recon.Money{}, errors.New("an amount is negative; say `absolute: true` if that is how the provider writes money that leaves")
	}
	return recon.Money{Minor: max(minor, -minor), Currency: currency}, nil
}

// isCurrency reports whether s is a code of three capital letters; a sign such as € is none.
func isCurrency(s string) bool {
	return len(s) == 3 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
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
