package files

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Settings are the settings of a source of kind files.
type Settings struct {
	// System is the name under which effects are stored; an API source of the same
	// provider names the same one. Default: the source's name.
	System  string `yaml:"system" json:"system"`
	Account string `yaml:"account" json:"account"` // default "default"
	Mode    string `yaml:"mode" json:"mode"`       // live or test; default live
	// Accounts lists several accounts, where a column says which one a row is of. Rows of
	// others are set aside.
	Accounts []AccountSettings `yaml:"accounts" json:"accounts"`
	// Format is jsonl, stripe-balance, stripe-payments, or a name of your own for the
	// column map below.
	Format string `yaml:"format" json:"format"`
	// Marker is the metadata key under which senders put our operation id.
	Marker string `yaml:"marker" json:"marker"`
	// Encoding is utf-8, utf-16le, utf-16be or windows-1252. Empty: what a byte order mark
	// says, else UTF-8, unless the header proves Windows-1252.
	Encoding string `yaml:"encoding" json:"encoding"`
	// Separator is one character, or tab. Empty: the one under which the header is found.
	Separator string `yaml:"separator" json:"separator"`
	// Preamble is how many lines stand before the header. Empty: it is looked for.
	Preamble *int64 `yaml:"preamble" json:"preamble"`
	// Decimal is the sign before the decimals, "." or ","; Thousands is what separates
	// thousands: ".", ",", "'", "space" or none. Default: what the first number with decimals
	// shows, for the whole file; none.
	Decimal   string `yaml:"decimal" json:"decimal"`
	Thousands string `yaml:"thousands" json:"thousands"`
	// Unit is major (12.50) or minor (1250); default major.
	Unit string `yaml:"unit" json:"unit"`
	// Sign says which amounts are effects: any (default), negative or positive. Rows of the
	// other sign are set aside.
	Sign string `yaml:"sign" json:"sign"`
	// Currency is that of every row, where no column names one.
	Currency string `yaml:"currency" json:"currency"`
	// Dates is how times are written, such as "DD.MM.YYYY hh:mm", or rfc3339. Default
	// "YYYY-MM-DD hh:mm:ss".
	Dates string `yaml:"dates" json:"dates"`
	// Zone is that of times that say none: Europe/Berlin, UTC, +05:30.
	Zone string `yaml:"zone" json:"zone"`
	// Zones says what abbreviations in a zone column mean, such as IST: Asia/Kolkata.
	Zones map[string]string `yaml:"zones" json:"zones"`
	// Kind is the kind of effect that every row is, where no column says it.
	Kind string `yaml:"kind" json:"kind"`
	// Columns names the columns of the file, by what they are to us.
	Columns Columns `yaml:"columns" json:"columns"`
	// Kinds, Statuses and Modes say what the words of those columns mean. A status is
	// in_flight, completed, failed or reversed. A kind that is not named is set aside; a
	// status that is not named is refused.
	Kinds    map[string]string `yaml:"kinds" json:"kinds"`
	Statuses map[string]string `yaml:"statuses" json:"statuses"`
	Modes    map[string]string `yaml:"modes" json:"modes"`
	// Totals are rows that hold a sum of the rows above; they are held against it.
	Totals TotalsSettings `yaml:"totals" json:"totals"`
	// Lag is the longest time until what exists stands in an export. Without it an
	// export's silence proves nothing.
	Lag recon.Duration `yaml:"lag" json:"lag"`
}

// AccountSettings is one of several accounts of a source.
type AccountSettings struct {
	Account string `yaml:"account" json:"account"`
	Mode    string `yaml:"mode" json:"mode"` // default live
}

// Columns are the names of a file's columns. Only these are read; none of the others,
// whatever they hold, leaves the file.
type Columns struct {
	ID        string `yaml:"id" json:"id"` // without one, rows are told apart by all that they say
	CreatedAt string `yaml:"created_at" json:"created_at"`
	Time      string `yaml:"time" json:"time"` // of created_at, where it has a column of its own
	Zone      string `yaml:"zone" json:"zone"`
	UpdatedAt string `yaml:"updated_at" json:"updated_at"`
	Amount    string `yaml:"amount" json:"amount"`
	Currency  string `yaml:"currency" json:"currency"`
	Status    string `yaml:"status" json:"status"` // without one, every row is completed
	Kind      string `yaml:"kind" json:"kind"`
	Account   string `yaml:"account" json:"account"`
	Mode      string `yaml:"mode" json:"mode"`
	Parent    string `yaml:"parent" json:"parent"`
	Target    string `yaml:"target" json:"target"`
	Reference string `yaml:"reference" json:"reference"` // our operation id, as the provider holds it
	// NaturalReference is a reference of the business, such as an invoice number.
	NaturalReference string `yaml:"natural_reference" json:"natural_reference"`
	Key              string `yaml:"key" json:"key"`
	Fee              string `yaml:"fee" json:"fee"`
	Net              string `yaml:"net" json:"net"`
}

// TotalsSettings tell rows with sums from the others.
type TotalsSettings struct {
	Column string `yaml:"column" json:"column"` // default: the first column that is mapped
	Begins string `yaml:"begins" json:"begins"` // what the column begins with in such a row
}

// ReadSecrets has nothing to read: files need no credentials.
func (s *Settings) ReadSecrets(func(string) ([]byte, error)) []recon.Fault { return nil }

// faulter tells a fault of the settings at its key.
type faulter func(path, format string, args ...any)

// Validate reports all that is wrong.
func (s Settings) Validate() []recon.Fault {
	var faults []recon.Fault
	fault := func(path, format string, args ...any) {
		faults = append(faults, recon.Fault{Path: path, Problem: fmt.Sprintf(format, args...)})
	}
	if s.Format == "" {
		fault("format", "is missing; write %s, or a name for the column map below", strings.Join(builtins, ", "))
	}
	s.validateAccounts(fault)
	s.validateText(fault)
	s.validateNumbers(fault)
	s.validateDates(fault)
	s.validateColumns(fault)
	if s.Lag < 0 {
		fault("lag", "must not be negative")
	}
	return faults
}

func (s Settings) validateAccounts(fault faulter) {
	if len(s.Accounts) > 0 && (s.Account != "" || s.Mode != "") {
		fault("accounts", "stands beside account or mode; use one of the two forms")
	}
	seen := map[recon.Account]bool{}
	for i, a := range s.places() {
		at := func(name string) string {
			if len(s.Accounts) == 0 {
				return name
			}
			return fmt.Sprintf("accounts[%d].%s", i, name)
		}
		switch {
		case a.Account == "":
			fault(at("account"), "is missing; write the account's id")
		case seen[a]:
			fault(at("account"), "%s in mode %s is listed twice", a.Account, a.Mode)
		}
		seen[a] = true
		if a.Mode != "live" && a.Mode != "test" {
			fault(at("mode"), "is neither live nor test")
		}
	}
}

func (s Settings) validateText(fault faulter) {
	if s.Encoding != "" && !slices.Contains(encodings, s.Encoding) {
		fault("encoding", "%q is not one of %s", s.Encoding, strings.Join(encodings, ", "))
	}
	if s.Encoding != "" && s.Encoding != utf8Name && s.Format == JSONLines {
		fault("encoding", "JSON Lines are UTF-8, or say otherwise by a byte order mark; leave it out")
	}
	if _, ok := s.separator(); !ok {
		fault("separator", "%q is not one character; write one such as \";\", or tab", s.Separator)
	}
	if s.Preamble != nil && (*s.Preamble < 0 || *s.Preamble > maxPreamble) {
		fault("preamble", "is a number of lines from 0 to %d", maxPreamble)
	}
	if strings.ContainsAny(s.Marker, `[]"\`) || len(s.Marker) > 40 {
		fault("marker", "is not a metadata key; at most 40 characters without brackets, quotes and backslashes")
	}
}

// separator gives the byte between fields; 0: the header shows it.
func (s Settings) separator() (byte, bool) {
	switch {
	case s.Separator == "":
		return 0, true
	case s.Separator == "tab":
		return '\t', true
	case len(s.Separator) == 1 && s.Separator[0] < utf8.RuneSelf && !strings.ContainsAny(s.Separator, "\"\r\n\x00"):
		return s.Separator[0], true
	}
	return 0, false
}

func (s Settings) validateNumbers(fault faulter) {
	oneOf := func(path, got string, words ...string) {
		if got != "" && !slices.Contains(words, got) {
			fault(path, "%q is not one of %s", got, strings.Join(words, ", "))
		}
	}
	oneOf("decimal", s.Decimal, ".", ",")
	oneOf("thousands", s.Thousands, ".", ",", "'", "space")
	oneOf("unit", s.Unit, "major", "minor")
	oneOf("sign", s.Sign, "any", "negative", "positive")
	if s.Thousands != "" && s.Thousands == orElse(s.Decimal, ".") {
		fault("thousands", "is the same sign as decimal; then no number can be read")
	}
	if s.Unit == "minor" && (s.Decimal != "" || s.Thousands != "") {
		fault("unit", "minor amounts are whole numbers; leave out decimal and thousands")
	}
	if _, err := recon.ParseCurrency(s.Currency); s.Currency != "" && err != nil {
		fault("currency", "%v", err)
	}
}

func (s Settings) validateDates(fault faulter) {
	d, err := newDates(orElse(s.Dates, isoDates))
	if err != nil {
		fault("dates", "%v", err)
	}
	if s.Zone != "" {
		if _, err := namedZone(s.Zone); err != nil {
			fault("zone", "%v", err)
		}
	}
	for name, meant := range s.Zones {
		if _, err := namedZone(meant); err != nil {
			fault("zones."+name, "%v", err)
		}
	}
	own := s.Format != "" && !slices.Contains(builtins, s.Format)
	if own && err == nil && s.Zone == "" && s.Columns.Zone == "" && d.layout != "" && !strings.Contains(d.layout, "Z07") {
		fault("zone", "is missing: times written as %s mean nothing without it; write one like Europe/Berlin or UTC", d.pattern)
	}
}

func (s Settings) validateColumns(fault faulter) {
	mapped := s.Columns != Columns{}
	if slices.Contains(builtins, s.Format) || s.Format == "" {
		if mapped && s.Format != "" {
			fault("columns", "stands beside format %s, which knows its columns; give the format a name of its own", s.Format)
		}
		return
	}
	if !mapped {
		fault("columns", "is missing: format %q is none of %s, so it is the name of a column map", s.Format, strings.Join(builtins, ", "))
		return
	}
	if s.Columns.CreatedAt == "" {
		fault("columns.created_at", "is missing; name the column with the time at which the effect was made")
	}
	if s.Columns.Kind == "" && s.Kind == "" {
		fault("kind", "is missing; write the kind of effect that a row is, such as transfer, or name a column for it")
	}
	if s.Columns.Kind != "" && len(s.Kinds) == 0 {
		fault("kinds", "is missing; say what the words of the kind column mean, such as Refund: refund")
	}
	if s.Columns.Amount != "" && s.Columns.Currency == "" && s.Currency == "" {
		fault("currency", "is missing; write the currency of the amounts, or name a column for it")
	}
	if s.Columns.Status != "" && len(s.Statuses) == 0 {
		fault("statuses", "is missing; say what the words of the status column mean, such as Paid: completed")
	}
	for word, meant := range s.Statuses {
		if !recon.EffectStatus(meant).Valid() && meant != ignored {
			fault("statuses."+word, "%q is not one of in_flight, completed, failed, reversed, ignored", meant)
		}
	}
	for word, meant := range s.Modes {
		if meant != "live" && meant != "test" {
			fault("modes."+word, "%q is neither live nor test", meant)
		}
	}
	s.validateTwice(fault)
}

// validateTwice refuses a column that would be read as two things.
func (s Settings) validateTwice(fault faulter) {
	seen := map[string]string{}
	for _, c := range s.Columns.list() {
		if c.name == "" {
			continue
		}
		if first, ok := seen[strings.ToLower(c.name)]; ok {
			fault("columns."+c.key, "is column %q, which is %s already", c.name, first)
		}
		seen[strings.ToLower(c.name)] = c.key
	}
}

// places gives the accounts of both forms, with defaults filled in.
func (s Settings) places() []recon.Account {
	if len(s.Accounts) == 0 {
		return []recon.Account{{Account: orElse(s.Account, "default"), Mode: orElse(s.Mode, "live")}}
	}
	list := make([]recon.Account, len(s.Accounts))
	for i, a := range s.Accounts {
		list[i] = recon.Account{Account: a.Account, Mode: orElse(a.Mode, "live")}
	}
	return list
}

// Filled gives the settings of the source of that name as they are used.
func (s Settings) Filled(name string) any {
	s.System, s.Marker = orElse(s.System, name), orElse(s.Marker, defaultMarker)
	if len(s.Accounts) == 0 {
		one := s.places()[0]
		s.Account, s.Mode = one.Account, one.Mode
	}
	s.Accounts = append([]AccountSettings{}, s.Accounts...)
	s.Unit, s.Sign, s.Dates = orElse(s.Unit, "major"), orElse(s.Sign, "any"), orElse(s.Dates, isoDates)
	return s
}

const defaultMarker = "operation_id"

// FormatOf gives the format of the files of a source with these settings. The error
// names every fault of the settings.
func FormatOf(source recon.SourceName, s Settings) (Format, error) {
	if faults := s.Validate(); len(faults) > 0 {
		return Format{}, faultsError(source, faults)
	}
	f := Format{
		Name: s.Format, Source: source, System: orElse(s.System, string(source)), Accounts: s.places(),
		Marker: orElse(s.Marker, defaultMarker), encoding: s.Encoding, preamble: -1, exponents: s.exponents(),
		numbers: numbers{decimal: orElse(s.Decimal, ".")[0], declared: s.Decimal+s.Thousands != "", minor: s.Unit == "minor"},
	}
	if s.Account == "" && len(s.Accounts) == 0 {
		f.Accounts = nil // nobody said which: every one is meant
		if s.Mode != "" {
			f.Accounts = s.places()
		}
	}
	f.separator, _ = s.separator()
	if s.Preamble != nil {
		f.preamble = int(*s.Preamble)
	}
	for _, r := range strings.Replace(s.Thousands, "space", " ", 1) {
		f.numbers.thousands = r
	}
	f.dates, _ = newDates(orElse(s.Dates, isoDates))
	f.dates.zones = s.Zones
	if s.Zone != "" {
		f.dates.zone, _ = namedZone(s.Zone)
	}
	switch s.Format {
	case JSONLines:
	case StripeBalance:
		f.newLayouts = []func(*Format) layout{newStripeBalance}
	case StripePayments:
		f.newLayouts = []func(*Format) layout{newStripePayments}
	default:
		f.numbers.strict = true
		f.newLayouts = []func(*Format) layout{func(f *Format) layout { return newColumnMap(f, s) }}
	}
	return f, nil
}

func faultsError(source recon.SourceName, faults []recon.Fault) error {
	texts := make([]string, len(faults))
	for i, f := range faults {
		texts[i] = f.Error()
	}
	return fmt.Errorf("source %s: %s", source, strings.Join(texts, "; "))
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// kinds gives the kinds of effects that files of these settings can hold; nil: any.
func (s Settings) kinds() []string {
	switch s.Format {
	case JSONLines:
		return nil
	case StripeBalance:
		return balanceKinds
	case StripePayments:
		return []string{"charge", "payment_intent"}
	}
	if s.Columns.Kind == "" {
		return []string{s.Kind}
	}
	list := make([]string, 0, len(s.Kinds))
	for _, k := range s.Kinds {
		if !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	slices.Sort(list)
	return list
}
