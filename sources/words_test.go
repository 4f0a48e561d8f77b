package sources_test

import (
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// B104: three decimals, whatever zeros the provider writes; nothing is rounded.
func TestB104_AmountsAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	dinars := sources.Fields{Unit: sources.UnitMajor, Currency: "kwd", Absolute: true}
	for text, want := range map[string]int64{"5.12": 5120, "5.120": 5120, "5.1200": 5120, "5": 5000, "0.001": 1, "-5.12": 5120} {
		if got, err := dinars.Money(text, ""); err != nil || got.Minor != want || got.Currency != "KWD" {
			t.Errorf("%q is %v, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"5.1205", "1e3", "1,000", ".", "5.", ".5", "--1", "0x1", "９", "9223372036854775808", "-9223372036854775.808", "NaN", "Infinity"} {
		if got, err := dinars.Money(text, ""); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
	signed := sources.Fields{Unit: sources.UnitMinor}
	for name, c := range map[string]struct{ amount, currency string }{
		"a negative amount": {"-1250", "EUR"}, "a fraction of a cent": {"12.5", "EUR"}, "no currency": {"1250", ""}, "a sign": {"1250", "€"},
	} {
		if got, err := signed.Money(c.amount, c.currency); err == nil {
			t.Errorf("%s: %v, want an error", name, got)
		}
	}
	if got, err := signed.Money("", "EUR"); err != nil || !got.IsZero() {
		t.Errorf("no amount is %v, %v; want an amount that is not known", got, err)
	}
}
