package recon

import (
	"math"
	"testing"

	iso "github.com/bojanz/currency"
)

func TestExponentsAreThoseOfTheCurrencyLibrary(t *testing.T) {
	t.Parallel()
	want := map[string]int{}
	for _, code := range iso.GetCurrencyCodes() {
		if d, _ := iso.GetDigits(code); d != 2 {
			want[code] = int(d)
		}
	}
	if len(want) < 20 {
		t.Fatalf("the library names only %d currencies without two decimals", len(want))
	}
	for code, d := range want {
		if got, ok := exponents[code]; !ok || got != d {
			t.Errorf("%s: got %d (in the table: %v), want %d", code, got, ok, d)
		}
	}
	for code := range exponents {
		if _, ok := want[code]; !ok {
			t.Errorf("%s is in the table, and the library gives it two decimals or none", code)
		}
	}
}

func TestMoneyIsWrittenWithTheDecimalsOfItsCurrency(t *testing.T) {
	t.Parallel()
	stripe := map[string]int{"ISK": 2, "UGX": 2}
	tests := []struct {
		name      string
		money     Money
		overrides map[string]int
		want      string
	}{
		{"cents", Money{4200, "EUR"}, nil, "42.00 EUR"},
		{"less than one unit", Money{7, "EUR"}, nil, "0.07 EUR"},
		{"thousands are grouped", Money{123456789, "USD"}, nil, "1,234,567.89 USD"},
		{"no decimals", Money{500, "JPY"}, nil, "500 JPY"},
		{"no decimals, grouped", Money{1500000, "VND"}, nil, "1,500,000 VND"},
		{"B104: three decimals", Money{5125, "KWD"}, nil, "5.125 KWD"},
		{"the provider counts in hundredths", Money{150000, "UGX"}, stripe, "1,500.00 UGX"},
		{"ISO without an override", Money{1500, "ISK"}, nil, "1,500 ISK"},
		{"a minus sign is not a digit", Money{-123456, "EUR"}, nil, "-1,234.56 EUR"},
		{"no currency", Money{4200, ""}, nil, "4200 minor units, currency not known"},
		{"no amount", Money{}, nil, "no amount"},
		{"a nonsense override is not used", Money{4200, "EUR"}, map[string]int{"EUR": -3}, "42.00 EUR"},
		{"the smallest number", Money{math.MinInt64, "EUR"}, nil, "-92,233,720,368,547,758.08 EUR"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.money.Text(tt.overrides); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
