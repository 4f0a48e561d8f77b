package recon

import "strconv"

// Money is an amount in minor units (cents, yen, fils) with its ISO 4217 code in
// upper case. The zero value means that no amount is known; it is never compared
// with a known one. Floats never come near it.
type Money struct {
	Minor    int64
	Currency string
}

// IsZero reports whether no amount is known.
func (m Money) IsZero() bool { return m.Minor == 0 }

// String gives minor units and currency, such as "4200 EUR minor". Screens for
// people use Text, which knows the currency's decimals.
func (m Money) String() string {
	if m.IsZero() {
		return "no amount"
	}
	return strconv.FormatInt(m.Minor, 10) + " " + m.Currency + " minor"
}
