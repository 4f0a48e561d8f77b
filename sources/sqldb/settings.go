package sqldb

import (
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	defaultAccount   = "default"
	defaultMarker    = "operation_id"
	defaultSchema    = "public"
	defaultPerSecond = 10
	defaultPageSize  = 500

	defaultStatementTimeout = recon.Duration(10 * time.Second)
	defaultLockTimeout      = recon.Duration(2 * time.Second)
	defaultConnectTimeout   = recon.Duration(5 * time.Second)
	defaultInFlight         = recon.Duration(2 * time.Minute)
	defaultWitnessLag       = recon.Duration(time.Hour)
)

// Settings are the settings of a source of kind sqldb. Either account and mode stand for all
// rows, or accounts lists several, which columns tell apart.
type Settings struct {
	// System is the name under which effects are stored. Default: the source's name.
	System   string            `yaml:"system" json:"system"`
	Account  string            `yaml:"account" json:"account"` // default "default"
	Mode     string            `yaml:"mode" json:"mode"`       // live or test; default live
	Accounts []AccountSettings `yaml:"accounts" json:"accounts"`
	// URL is a connection string for a role that can only read, as libpq writes it. URLFile
	// names a file that holds it.
	URL     recon.Secret `yaml:"url" json:"url"`
	URLFile string       `yaml:"url_file" json:"url_file"`
	// Marker names to senders where our operation id goes. Default operation_id.
	Marker string `yaml:"marker" json:"marker"`
	// The longest that a statement, the wait for a lock and a connection may take. Default
	// 10s, 2s and 5s.
	StatementTimeout recon.Duration `yaml:"statement_timeout" json:"statement_timeout"`
	LockTimeout      recon.Duration `yaml:"lock_timeout" json:"lock_timeout"`
	ConnectTimeout   recon.Duration `yaml:"connect_timeout" json:"connect_timeout"`
	// PerSecond bounds our own statements. Default 10.
	PerSecond int `yaml:"per_second" json:"per_second"`
	// PageSize is how many rows a page of a list holds. Default 500.
	PageSize int `yaml:"page_size" json:"page_size"`
	// InFlight is the longest time that a request to the other system can still be working
	// after its sender gave it up. Default 2m.
	InFlight recon.Duration `yaml:"in_flight" json:"in_flight"`
	// OwnWrite says that the tables stand in the ledger's own database, and that senders change
	// them in the transaction that records the operation (docs/sql.md): no answer can be lost.
	OwnWrite bool `yaml:"own_write" json:"own_write"`
	// Keys says what the other system does with idempotency keys. Without it: it keeps none.
	Keys sources.KeySettings `yaml:"keys" json:"keys"`
	// Effects are the kinds of effects and the tables in which they stand.
	Effects []EffectSettings `yaml:"effects" json:"effects"`
	// Witnesses are business objects that an action names as its witness.
	Witnesses []WitnessSettings `yaml:"witnesses" json:"witnesses"`
}

// AccountSettings is one of several accounts whose rows stand in the same tables.
type AccountSettings struct {
	Account string `yaml:"account" json:"account"`
	Mode    string `yaml:"mode" json:"mode"` // default live
}

// EffectSettings say where effects of one kind stand: a row is an effect.
type EffectSettings struct {
	Kind    string         `yaml:"kind" json:"kind"`
	Schema  string         `yaml:"schema" json:"schema"` // default public
	Table   string         `yaml:"table" json:"table"`   // or a view
	Columns ColumnSettings `yaml:"columns" json:"columns"`
	// Only are columns and their values, without which a row is none of this kind.
	Only map[string]string `yaml:"only" json:"only"`
	// Statuses says what the words of columns.status mean: in_flight, completed, failed or
	// reversed. A word that is not named is not guessed. Booleans are the words true and false.
	Statuses map[string]string `yaml:"statuses" json:"statuses"`
	// Modes says what the words of columns.mode mean: live or test.
	Modes map[string]string `yaml:"modes" json:"modes"`
	// Unit is minor (1250) or major (12.50). It is written wherever there is an amount.
	Unit string `yaml:"unit" json:"unit"`
	// Currency is that of every amount, where no column names one.
	Currency string `yaml:"currency" json:"currency"`
	// Exponents are the decimals of currencies that the table counts unlike ISO 4217.
	Exponents map[string]int `yaml:"exponents" json:"exponents"`
	// Absolute takes amounts without their sign, where money that leaves is negative.
	Absolute bool `yaml:"absolute" json:"absolute"`
	// Consistency is strong (every effect stands here when the lag is over, so what is not
	// found is not there) or eventual (not found proves nothing). It must be written.
	Consistency string `yaml:"consistency" json:"consistency"`
	// Lag is the longest time until an effect's row can be read, replication included. Default
	// 1m.
	Lag recon.Duration `yaml:"lag" json:"lag"`
	// History is how far back rows are kept; absent: for ever.
	History recon.Duration `yaml:"history" json:"history"`
}

// ColumnSettings are the names of the columns that hold what an effect is. Only these are
// read.
type ColumnSettings struct {
	ID        string `yaml:"id" json:"id"`
	CreatedAt string `yaml:"created_at" json:"created_at"` // timestamptz, or timestamp in UTC
	UpdatedAt string `yaml:"updated_at" json:"updated_at"`
	Status    string `yaml:"status" json:"status"` // without one, every row is completed
	// Deleted is a flag, or the time of a deletion: such a row was done and taken back.
	Deleted       string `yaml:"deleted" json:"deleted"`
	Amount        string `yaml:"amount" json:"amount"`
	Currency      string `yaml:"currency" json:"currency"`
	Parent        string `yaml:"parent" json:"parent"`
	Target        string `yaml:"target" json:"target"`
	Reference     string `yaml:"reference" json:"reference"` // our operation id, as the sender wrote it
	Key           string `yaml:"key" json:"key"`
	Natural       string `yaml:"natural_reference" json:"natural_reference"`
	Account       string `yaml:"account" json:"account"`
	Mode          string `yaml:"mode" json:"mode"`
	FailureReason string `yaml:"failure_reason" json:"failure_reason"`
	CreatedBy     string `yaml:"created_by" json:"created_by"`
}

// WitnessSettings say where business objects of our own stand, and what they say of an
// operation. An action names the witness; it never closes anything.
type WitnessSettings struct {
	Name    string                `yaml:"name" json:"name"`
	Schema  string                `yaml:"schema" json:"schema"` // default public
	Table   string                `yaml:"table" json:"table"`   // or a view
	Columns WitnessColumnSettings `yaml:"columns" json:"columns"`
	// Prefix stands in an operation's target before the object's id: "order:" of order:4417.
	// A target without it is of something else, and the witness is not asked.
	Prefix string `yaml:"prefix" json:"prefix"`
	// Says gives what the words of columns.status mean: done, not_done or nothing.
	Says map[string]string `yaml:"says" json:"says"`
	// Unit, Currency and Exponents are as those of effects.
	Unit      string         `yaml:"unit" json:"unit"`
	Currency  string         `yaml:"currency" json:"currency"`
	Exponents map[string]int `yaml:"exponents" json:"exponents"`
	// Sums says that the amount adds up all that was done for the object, so that one
	// operation may be a part of it.
	Sums bool `yaml:"sums" json:"sums"`
	// Lag is how long after an operation closed the object may still say otherwise. Default
	// 1h.
	Lag recon.Duration `yaml:"lag" json:"lag"`
}

// WitnessColumnSettings are the columns of a business object. One of target, reference, key
// and parent says by what an operation's object is found.
type WitnessColumnSettings struct {
	Target    string `yaml:"target" json:"target"`       // the operation's target, less the prefix
	Reference string `yaml:"reference" json:"reference"` // the operation's id
	Key       string `yaml:"key" json:"key"`
	Parent    string `yaml:"parent" json:"parent"` // the operation's parent
	Status    string `yaml:"status" json:"status"`
	Amount    string `yaml:"amount" json:"amount"`
	Currency  string `yaml:"currency" json:"currency"`
}

// words says how the rows write what they hold.
func (e EffectSettings) words() sources.Fields {
	return sources.Fields{
		Amount: e.Columns.Amount, CurrencyField: e.Columns.Currency, Status: e.Columns.Status, Mode: e.Columns.Mode,
		Unit: e.Unit, Currency: e.Currency, Exponents: e.Exponents, Absolute: e.Absolute, Statuses: e.Statuses, Modes: e.Modes,
	}
}

// words says how the objects write amounts. Their words mean something else than statuses.
func (w WitnessSettings) words() sources.Fields {
	return sources.Fields{Amount: w.Columns.Amount, CurrencyField: w.Columns.Currency, Unit: w.Unit, Currency: w.Currency, Exponents: w.Exponents}
}

// all gives the accounts of both forms, with defaults filled in.
func (s Settings) all() []recon.Account {
	if len(s.Accounts) == 0 {
		return []recon.Account{{Account: orElse(s.Account, defaultAccount), Mode: orElse(s.Mode, sources.ModeLive)}}
	}
	list := make([]recon.Account, len(s.Accounts))
	for i, a := range s.Accounts {
		list[i] = recon.Account{Account: a.Account, Mode: orElse(a.Mode, sources.ModeLive)}
	}
	return list
}

// ReadSecrets fills what a file holds, without the white space around it.
func (s *Settings) ReadSecrets(read func(name string) ([]byte, error)) []recon.Fault {
	return s.URL.ReadFile("url_file", s.URLFile, "the address of the database", read)
}

// Filled gives the settings of the source of that name as they are used.
func (s Settings) Filled(name string) any {
	s.System, s.Marker = orElse(s.System, name), orElse(s.Marker, defaultMarker)
	for _, d := range []struct {
		at    *recon.Duration
		value recon.Duration
	}{
		{&s.StatementTimeout, defaultStatementTimeout}, {&s.LockTimeout, defaultLockTimeout},
		{&s.ConnectTimeout, defaultConnectTimeout}, {&s.InFlight, defaultInFlight},
	} {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	if s.PerSecond == 0 {
		s.PerSecond = defaultPerSecond
	}
	if s.PageSize == 0 {
		s.PageSize = defaultPageSize
	}
	all := s.all()
	if len(s.Accounts) == 0 {
		s.Account, s.Mode = all[0].Account, all[0].Mode
	}
	accounts := make([]AccountSettings, len(s.Accounts))
	for i := range accounts {
		accounts[i] = AccountSettings(all[i])
	}
	s.Accounts = accounts
	s.Effects = append([]EffectSettings{}, s.Effects...)
	for i := range s.Effects {
		s.Effects[i].Schema = orElse(s.Effects[i].Schema, defaultSchema)
	}
	s.Witnesses = append([]WitnessSettings{}, s.Witnesses...)
	for i := range s.Witnesses {
		w := &s.Witnesses[i]
		w.Schema = orElse(w.Schema, defaultSchema)
		if w.Lag == 0 {
			w.Lag = defaultWitnessLag
		}
	}
	return s
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
