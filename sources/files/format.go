package files

import (
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// The formats that need no column map.
const (
	JSONLines      = "jsonl"
	StripeBalance  = "stripe-balance"
	StripePayments = "stripe-payments"
)

// Format says how a file is written and whose effects it holds.
type Format struct {
	Name string // JSONLines, StripeBalance, StripePayments, or the name of a column map
	// Source and System are what effects of the file are stored under.
	Source recon.SourceName
	System string
	// Siblings are further sources of the same system: a JSON line may name them.
	Siblings []recon.SourceName
	// Accounts are those of the source; a row of another one is set aside. Empty: every
	// account is ours. What a row does not say is that of the only account, if there is
	// just one.
	Accounts []recon.Account
	// Kinds are the kinds of effects that are ours: those that some action makes. A row
	// of another one is set aside. Empty: every kind is.
	Kinds  []string
	Marker string // name under which senders put our reference

	encoding  string // empty: by mark, else UTF-8 unless the header proves another one
	separator byte   // 0: the one under which the header is found
	preamble  int    // lines before the header; -1: the header is looked for
	numbers   numbers
	dates     dates
	// newLayouts make what reads one table; the header shows which. None: JSON Lines only,
	// which every format knows.
	newLayouts []func(*Format) layout
	layout     layout // of the file that is being read
	exponents  map[string]int
	currencies map[string]money // that were read, by cell
}

// Builtin gives a format by name, for files of a source whose settings nobody wrote:
// numbers with a decimal point, Stripe's own exponents. It is false for other names.
func Builtin(name string, source recon.SourceName) (Format, bool) {
	f, err := FormatOf(source, Settings{Format: name})
	return f, err == nil && slices.Contains(builtins, f.Name)
}

// Stripe gives the format of all that Stripe exports: JSON Lines, the itemized balance
// report and the payments list. A file's first line shows which it is.
func Stripe(source recon.SourceName) Format {
	f, _ := Builtin(StripeBalance, source)
	f.Name = "of Stripe's exports"
	f.newLayouts = append(f.newLayouts, newStripePayments)
	return f
}

// Of gives the format for a source that has this sheet.
func (f Format) Of(sheet recon.Sheet) Format {
	f.System, f.Accounts, f.Marker = sheet.System, sheet.Accounts, sheet.Marker
	return f
}

// builtins lists the formats that need no column map.
var builtins = []string{JSONLines, StripeBalance, StripePayments}

// recognise finds the header of one of the format's tables.
func (f *Format) recognise(head []byte) (header, bool) {
	for i := len(f.newLayouts) - 1; i >= 0; i-- { // the first one stays where none fits
		f.layout = f.newLayouts[i](f)
		if h, found := findHeader(head, f); found {
			return h, true
		}
	}
	return header{}, false
}

// own sets aside what is read and not ours, and fills in where the row belongs.
func (f *Format) own(row *Row) {
	e := &row.Effect
	if len(f.Kinds) > 0 && !slices.Contains(f.Kinds, e.Kind) {
		row.setAside("no action makes a %s", recon.Noun(e.Kind))
		return
	}
	if !f.has(e.Account, e.Mode) {
		row.setAside("account %s in %s mode is none of the source's", e.Account, e.Mode)
	}
}

// has reports whether account and mode are among the source's, as [recon.Sheet.Has] does.
func (f *Format) has(account, mode string) bool {
	return len(f.Accounts) == 0 || slices.Contains(f.Accounts, recon.Account{Account: account, Mode: mode})
}

// money is a currency, and how many decimals it has.
type money struct {
	code   string
	digits int
}

// money reads a currency. Files have few.
func (f *Format) money(cell string) (money, error) {
	if known, ok := f.currencies[cell]; ok {
		return known, nil
	}
	code, err := recon.ParseCurrency(strings.Clone(cell))
	if err != nil {
		return money{}, err
	}
	in := money{code, recon.Decimals(code, f.exponents)}
	if f.currencies == nil {
		f.currencies = map[string]money{}
	}
	f.currencies[strings.Clone(cell)] = in // at most the codes there are, in either case
	return in, nil
}

// amount reads a cell as minor units of a currency.
func (f *Format) amount(cell string, in money) (int64, error) {
	if err := f.numbers.prove(cell); err != nil {
		return 0, err
	}
	if f.numbers.ambiguous(cell, in.digits) {
		return 0, &Fault{Problem: "the number " + shown(cell) + " has two readings; " + f.numbers.advice()}
	}
	return f.numbers.amount(cell, in.code, in.digits)
}

// place gives the account and mode of a row that says them, or not. It is false where
// the source has several and the row does not say which.
func (f *Format) place(account, mode string) (string, string, bool) {
	only := f.only()
	if account == "" {
		account = only.Account
	}
	if mode == "" {
		mode = f.modeOf(account)
	}
	return account, mode, account != ""
}

// modeOf gives the only mode of an account, and live where it has several or is not ours.
func (f *Format) modeOf(account string) string {
	mode := ""
	for _, a := range f.Accounts {
		switch {
		case a.Account != account:
		case mode != "":
			return "live"
		default:
			mode = a.Mode
		}
	}
	return orElse(mode, orElse(f.only().Mode, "live"))
}

// only gives the account and the mode of a source that has just one of each, and
// nothing for what it has several of.
func (f *Format) only() recon.Account {
	if len(f.Accounts) == 0 {
		return recon.Account{Account: "default", Mode: "live"}
	}
	is := f.Accounts[0]
	for _, a := range f.Accounts[1:] {
		if a.Account != is.Account {
			is.Account = ""
		}
		if a.Mode != is.Mode {
			is.Mode = ""
		}
	}
	return is
}
