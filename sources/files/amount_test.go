package files

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

var point = numbers{decimal: '.', declared: true, thousands: ','}

// Every exporter writes negatives in its own way.
func TestB81_SignsCurrenciesAndEmptyCells(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		cell, currency string
		want           int64
	}{
		{"$18.75", "USD", 1875}, {"-$2.40", "USD", -240}, {"$-6", "USD", -600}, {"- $6.00", "USD", -600}, {"(14.10)", "USD", -1410},
		{"($14.10)", "USD", -1410}, {"6-", "USD", -600}, {"RM 3,417.20", "MYR", 341720}, {"12.50 EUR", "EUR", 1250}, {"eur 12.5", "EUR", 1250},
		{"−1.00", "EUR", -100}, {"+1", "EUR", 100}, {" 7.00\u00a0€", "EUR", 700}, {".50", "EUR", 50}, {"-.50", "EUR", -50}, {"0.00", "EUR", 0},
		{"1,234,567.89", "EUR", 123456789}, {"500", "JPY", 500}, {"1.430", "KWD", 1430}, {"1.43", "KWD", 1430}, {"1.5000", "EUR", 150},
		{"100.00", "JPY", 100}, {"kr.50", "DKK", 5000}, {"Fr.50", "CHF", 5000}, {"Rs.50", "INR", 5000}, {"Rs.1,250.50", "INR", 125050}, {"$.50", "USD", 50},
	} {
		got, err := point.amount(tt.cell, tt.currency, recon.Decimals(tt.currency, nil))
		if err != nil || got != tt.want {
			t.Errorf("%q %s: got %d, %v; want %d", tt.cell, tt.currency, got, err, tt.want)
		}
	}
	for _, cell := range []string{"", "  ", "--", "-", "€5", "$5$", "-(5)", "5 USD EUR", "five", "1.2.3", "USD.50", "x.50", "12.345", "9999999999999999999"} {
		if v, err := point.amount(cell, "USD", 2); err == nil {
			t.Errorf("%q was read as %d; it must be refused", cell, v)
		}
	}
	if _, err := point.amount("--", "USD", 2); !errors.Is(err, errNoValue) {
		t.Errorf("-- is no value, got %v", err)
	}
}

// A number that can be read in two ways says that the whole file is misread.
func TestANumberWithTwoReadingsRefusesTheFile(t *testing.T) {
	t.Parallel()
	undeclared := numbers{decimal: '.'}
	for _, tt := range []struct {
		name string
		n    numbers
		cell string
	}{
		{"a decimal comma under a point", undeclared, "12,50"},
		{"thousands nobody declared", undeclared, "1,234.50"},
		{"one thousand or one", undeclared, "1.000"},
		{"one thousand two hundred or one and a bit", undeclared, "1.234"},
		{"a point for thousands, declared the other way", point, "1.234,50"},
		{"groups of two", point, "12,34,567.00"},
		{"more decimals than the currency, declared", point, "1.234"},
	} {
		var f *Fault
		if v, err := tt.n.amount(tt.cell, "EUR", 2); !errors.As(err, &f) {
			t.Errorf("%s: %q gave %d, %v; want a fault of the file", tt.name, tt.cell, v, err)
		}
	}
	comma := numbers{decimal: ',', declared: true, thousands: '.'}
	for cell, want := range map[string]int64{"1.234,50": 123450, "-0,05": -5, "1.000": 100000, "12": 1200} {
		if got, err := comma.amount(cell, "EUR", 2); err != nil || got != want {
			t.Errorf("%q: got %d, %v; want %d", cell, got, err, want)
		}
	}
	minor := numbers{decimal: '.', minor: true}
	if got, err := minor.amount("-1250", "EUR", 2); err != nil || got != -1250 {
		t.Errorf("minor units: got %d, %v", got, err)
	}
	if _, err := minor.amount("12.50", "EUR", 2); err == nil {
		t.Error("12.50 minor units were read")
	}
}

// What is read is what the digits say, or nothing.
func FuzzAmount(f *testing.F) {
	f.Fuzz(func(t *testing.T, cell string, decimal, digits byte) {
		n := numbers{decimal: '.', thousands: ',', declared: digits%2 == 0}
		if decimal%2 == 1 {
			n.decimal, n.thousands = ',', '.'
		}
		d := int(digits % 5)
		v, err := n.amount(cell, "EUR", d)
		if err != nil {
			return
		}
		again, err := n.amount(written(v, d, n), "EUR", d)
		if err != nil || again != v {
			t.Errorf("%q is %d, and %q is %d, %v", cell, v, written(v, d, n), again, err)
		}
	})
}

// written is the plain way to write an amount.
func written(v int64, digits int, n numbers) string {
	text := strconv.FormatInt(max(v, -v), 10)
	text = strings.Repeat("0", max(0, digits+1-len(text))) + text
	if digits > 0 {
		text = text[:len(text)-digits] + string(n.decimal) + text[len(text)-digits:]
	}
	if v < 0 {
		text = "-" + text
	}
	return text
}
