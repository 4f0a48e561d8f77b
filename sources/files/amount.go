package files

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// numbers says how a file writes amounts. It holds for every row.
type numbers struct {
	decimal   byte // '.' or ','
	declared  bool // by the settings, or proven by a number of the file
	thousands rune // 0: thousands are not separated
	minor     bool // amounts are whole minor units already
	strict    bool // nothing is known of who wrote the file
	assumed   bool // a number was read by the decimal sign before any proved it
}

// errNoValue is a cell that says that there is no value, such as "--". It is not 0.
const errNoValue = refusal("it holds no value")

// maxDigits keeps every amount within int64.
const maxDigits = 18

// amount reads a cell as minor units of a currency with so many digits, with its sign.
// Negatives are written -2.40, 2.40-, (2.40), $-6, - $6.00 or with U+2212. What stands
// beside the number must name the currency. An error is a refusal of the row, or a
// *Fault where the number shows that the whole file is written in another way.
func (n numbers) amount(cell, currency string, digits int) (int64, error) {
	if v, ok := n.plain(cell, digits); ok {
		return v, nil
	}
	body, negative, err := unsigned(cell, currency)
	if err != nil {
		return 0, err
	}
	v, err := n.magnitude(body, digits)
	if negative {
		v = -v
	}
	return v, err
}

// prove takes the sign before the decimals from the first number that shows it: thousands go
// by three, so a number's only separator stands before decimals where any other number of
// digits follows. It holds for the whole file from then on. An error is a *Fault: a number above
// was read by another sign.
func (n *numbers) prove(cell string) error {
	if n.declared || n.minor {
		return nil
	}
	first, last := numberIn(cell)
	if first < 0 {
		return nil
	}
	cell = strings.TrimRight(cell[first:last], ".,")
	i := strings.LastIndexAny(cell, ".,")
	if i < 0 || len(cell)-i-1 == 3 || !isDigits(cell[i+1:]) || strings.ContainsAny(cell[:i], ".,") {
		n.assumed = n.assumed || i >= 0
		return nil
	}
	if n.assumed && cell[i] != n.decimal {
		return &Fault{Problem: fmt.Sprintf("the number %s is not written as those above it; %s", shown(cell), n.advice())}
	}
	n.decimal, n.declared = cell[i], true
	if n.thousands == rune(n.decimal) {
		n.thousands = 0
	}
	return nil
}

// ambiguous reports whether a separator may stand before three decimals or between
// thousands, and nobody has said which.
func (n *numbers) ambiguous(cell string, digits int) bool {
	return n.strict && !n.declared && !n.minor && digits == 3 && strings.ContainsAny(cell, ".,")
}

// plain reads the commonest form without detours: digits, at most one decimal
// separator with all the digits of the currency behind it, a minus in front.
func (n numbers) plain(cell string, digits int) (int64, bool) {
	if n.minor {
		digits = 0
	}
	negative := strings.HasPrefix(cell, "-")
	if negative {
		cell = cell[1:]
	}
	if len(cell) == 0 || len(cell) > maxDigits {
		return 0, false
	}
	var v int64
	point := len(cell) - digits - 1
	for i := 0; i < len(cell); i++ {
		c := cell[i]
		switch {
		case c >= '0' && c <= '9':
			v = v*10 + int64(c-'0')
		case digits > 0 && i == point && i > 0 && c == n.decimal:
		default:
			return 0, false
		}
	}
	if digits > 0 && (point < 1 || cell[point] != n.decimal) {
		return 0, false
	}
	if negative {
		v = -v
	}
	return v, true
}

// unsigned takes sign and currency off a cell.
func unsigned(cell, currency string) (body string, negative bool, err error) {
	s := strings.TrimFunc(cell, isSpace)
	switch s {
	case "":
		return "", false, refuse("it is empty")
	case "-", "--", "---", "–", "—":
		return "", false, errNoValue
	}
	signs := 0
	if strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")") {
		s = strings.TrimFunc(s[1:len(s)-1], isSpace)
		negative, signs = true, 1
	}
	first, last := numberIn(s)
	if first < 0 {
		return "", false, refuse("%q is no number", shown(cell))
	}
	around := []string{s[:first], s[last:]}
	for _, side := range around {
		for _, r := range side {
			switch r {
			case '-', '−':
				negative = true
				signs++
			case '+':
				signs++
			}
		}
	}
	if signs > 1 {
		return "", false, refuse("%q has more than one sign", shown(cell))
	}
	named := 0
	for _, side := range around {
		token := strings.Map(func(r rune) rune {
			if isSpace(r) || r == '-' || r == '−' || r == '+' {
				return -1
			}
			return r
		}, side)
		if token == "" {
			continue
		}
		if named++; named > 1 || !names(token, currency) {
			return "", false, refuse("%q is not an amount of %s", shown(cell), currency)
		}
	}
	return s[first:last], negative, nil
}

// numberIn gives where in a cell the number stands, with a separator at its beginning or end;
// -1 where there is no digit. A dot behind a letter is that of an abbreviation: kr.50 is no .50.
func numberIn(s string) (first, last int) {
	first = strings.IndexFunc(s, unicode.IsDigit)
	if first < 0 {
		return -1, -1
	}
	last = strings.LastIndexFunc(s, unicode.IsDigit)
	_, size := utf8.DecodeRuneInString(s[last:])
	last += size
	if first > 0 && (s[first-1] == '.' || s[first-1] == ',') {
		if before, _ := utf8.DecodeLastRuneInString(s[:first-1]); !unicode.IsLetter(before) {
			first--
		}
	}
	if last < len(s) && (s[last] == '.' || s[last] == ',') {
		last++
	}
	return first, last
}

func isSpace(r rune) bool { return unicode.IsSpace(r) || r == '\u00a0' || r == '\u202f' }

// magnitude reads digits and separators. Where they can be read in another way than the
// file is said to write, the file is doubtful, not the row.
func (n numbers) magnitude(s string, digits int) (int64, error) {
	if n.minor {
		digits = 0
	}
	whole, fraction, found := s, "", false
	if !n.minor {
		whole, fraction, found = strings.Cut(s, string(n.decimal))
	}
	groups, ok := n.groups(whole)
	if !ok || !isDigits(fraction) {
		if strings.ContainsFunc(s, func(r rune) bool { return !isDigit(r) && !strings.ContainsRune(".,'’", r) && !isSpace(r) }) {
			return 0, refuse("%q is no number", shown(s))
		}
		if at := strings.IndexAny(s, ".,"); at > 0 && !n.declared && len(s)-at == 4 && isDigits(s[:at]) && isDigits(s[at+1:]) {
			return 0, &Fault{Problem: "the number " + shown(s) + " has two readings; " + n.advice()}
		}
		return 0, &Fault{Problem: "the number " + shown(s) + " is not written as the file is said to write numbers; " + n.advice()}
	}
	kept := strings.TrimRight(fraction, "0")
	if found && !n.declared && len(fraction) == 3 && digits != 3 && n.thousands == 0 {
		return 0, &Fault{Problem: "the number " + shown(s) + " has two readings; " + n.advice()}
	}
	if len(kept) > digits {
		if len(fraction) == 3 && len(groups) <= 3 {
			return 0, &Fault{Problem: "the number " + shown(s) + " has more decimals than its currency, or thousands; " + n.advice()}
		}
		return 0, refuse("%q has more decimals than its currency, which has %d", shown(s), digits)
	}
	all := groups + kept + strings.Repeat("0", digits-len(kept))
	all = strings.TrimLeft(all, "0")
	if len(all) > maxDigits {
		return 0, refuse("%q is too large", shown(s))
	}
	var v int64
	for i := range len(all) {
		v = v*10 + int64(all[i]-'0')
	}
	return v, nil
}

func (n numbers) advice() string {
	if n.minor {
		return "its source says `unit: minor`, which are whole numbers such as cents: leave that out where amounts are written like 12.50"
	}
	return "write in the source's settings which sign is `decimal` and which separates `thousands`"
}

// groups gives the digits before the decimal separator, where thousands are separated
// rightly: all of them, three by three, or none.
func (n numbers) groups(s string) (string, bool) {
	if isDigits(s) && s != "" {
		return s, true
	}
	if s == "" {
		return "0", true // .50
	}
	if n.thousands == 0 {
		return "", false
	}
	parts := strings.FieldsFunc(s, func(r rune) bool { return r == n.thousands || n.thousands == ' ' && isSpace(r) })
	size := 0
	for i, p := range parts {
		if !isDigits(p) || len(p) > 3 || i > 0 && len(p) != 3 {
			return "", false
		}
		size += len(p)
	}
	separators := utf8.RuneCountInString(s) - size
	return strings.Join(parts, ""), separators == len(parts)-1 && len(parts) > 1
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// symbols gives the currencies that are written with a sign. A sign says which ones an
// amount can be of, not which one it is.
var symbols = map[string][]string{
	"$": {"USD", "CAD", "AUD", "NZD", "SGD", "HKD", "TWD", "MXN", "ARS", "CLP", "COP", "UYU"}, "US$": {"USD"}, "C$": {"CAD"}, "CA$": {"CAD"},
	"A$": {"AUD"}, "NZ$": {"NZD"}, "S$": {"SGD"}, "HK$": {"HKD"}, "MX$": {"MXN"}, "R$": {"BRL"}, "NT$": {"TWD"},
	"€": {"EUR"}, "£": {"GBP", "EGP"}, "¥": {"JPY", "CNY"}, "円": {"JPY"}, "元": {"CNY"}, "₩": {"KRW"}, "₹": {"INR"}, "Rs": {"INR", "PKR", "LKR"}, "Rs.": {"INR", "PKR", "LKR"},
	"RM": {"MYR"}, "Rp": {"IDR"}, "฿": {"THB"}, "₫": {"VND"}, "đ": {"VND"}, "₱": {"PHP"}, "₪": {"ILS"}, "₺": {"TRY"}, "₴": {"UAH"}, "₽": {"RUB"},
	"₦": {"NGN"}, "₵": {"GHS"}, "KSh": {"KES"}, "R": {"ZAR"}, "zł": {"PLN"}, "Kč": {"CZK"}, "Ft": {"HUF"}, "lei": {"RON"}, "лв": {"BGN"},
	"kr": {"SEK", "NOK", "DKK", "ISK"}, "kr.": {"DKK"}, "Fr.": {"CHF"}, "SFr.": {"CHF"},
}

// names reports whether what stands beside a number can mean the currency.
func names(token, currency string) bool {
	return strings.EqualFold(token, currency) || slices.Contains(symbols[token], currency)
}
