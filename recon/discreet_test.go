package recon_test

import (
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func TestB100_AQuotedValueHoldsNoAddressAndNoCard(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"jane.doe+shop@example.org":       "[e-mail address]",
		"Refund to <jane@example.org>, 2": "Refund to <[e-mail address]>, 2",
		"4000056655665556":                "[card number]",
		"4000 0566 5566 5556":             "[card number]",
		"card 4000-0566-5566-5556.":       "card [card number].",
		"4000056655665557":                "4000056655665557", // its check digit is wrong
		"1234567890123":                   "1234567890123",
		"20260301100009":                  "20260301100009", // a time
		"4":                               "4",
		"2026-03-01 10:00:02":             "2026-03-01 10:00:02",
		"1.234.567,89":                    "1.234.567,89",
		"Partially refunded":              "Partially refunded",
		"":                                "",
	} {
		if got := recon.Discreet(given); got != want {
			t.Errorf("Discreet(%q) = %q, want %q", given, got, want)
		}
	}
}
