package httpapi

import (
	"fmt"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	defaultAccount   = "default"
	defaultMarker    = "operation_id"
	defaultPerSecond = 2
	defaultInFlight  = recon.Duration(inFlightOf)
)

// Settings are the settings of a source of kind httpapi. Either account and mode stand
// for one account, or accounts lists several.
type Settings struct {
	// System is the name under which effects are stored. Default: the source's name.
	System   string            `yaml:"system" json:"system"`
	Account  string            `yaml:"account" json:"account"` // default "default"
	Mode     string            `yaml:"mode" json:"mode"`       // live or test; default live
	Accounts []AccountSettings `yaml:"accounts" json:"accounts"`
	// APIURL is what every path below is added to, such as https://api.example.com/v2.
	APIURL string `yaml:"api_url" json:"api_url"`
	// Marker is the name under which senders put our operation id; {marker} below.
	Marker string       `yaml:"marker" json:"marker"`
	Auth   AuthSettings `yaml:"auth" json:"auth"`
	// Headers are sent with every request, beside Accept: application/json.
	Headers map[string]string `yaml:"headers" json:"headers"`
	// PerSecond or PerMinute bounds our own requests. Default 2 a second.
	PerSecond int `yaml:"per_second" json:"per_second"`
	PerMinute int `yaml:"per_minute" json:"per_minute"`
	// RequestID is the reply's header that names the request, for the provider's support.
	RequestID string `yaml:"request_id" json:"request_id"`
	// Success is what every reply says of itself that is an answer, where the provider tells
	// its errors with status 200: {path: ok, equals: "true"}. A reply that says otherwise, and
	// that no not_found declares, is a fault, whatever list it holds beside it.
	Success SuccessSettings `yaml:"success" json:"success"`
	// InFlight is the longest time that a request can still be working after its sender
	// gave it up. Default 2m.
	InFlight recon.Duration `yaml:"in_flight" json:"in_flight"`
	// Keys says what the provider does with idempotency keys. Without it: it keeps none.
	Keys sources.KeySettings `yaml:"keys" json:"keys"`
	// Effects are the kinds of effects that are observed, each with its look-ups.
	Effects []EffectSettings `yaml:"effects" json:"effects"`
}

// AccountSettings is one of several accounts of a source.
type AccountSettings struct {
	Account string       `yaml:"account" json:"account"`
	Mode    string       `yaml:"mode" json:"mode"` // default live
	Auth    AuthSettings `yaml:"auth" json:"auth"` // default: the source's
}

// EffectSettings say how effects of one kind are read and found.
type EffectSettings struct {
	Kind   string        `yaml:"kind" json:"kind"`
	Fields FieldSettings `yaml:"fields" json:"fields"`
	// Only are fields and their values, without which an object is none of this kind: it
	// is passed over.
	Only map[string]string `yaml:"only" json:"only"`
	// Required are fields that every object has, also as null. One that is not there means
	// that the provider's format has changed, and the reply is not understood.
	Required []string `yaml:"required" json:"required"`
	// Sparse says that the provider leaves out what is empty. Else an object without the
	// field that holds fields.reference or fields.key, also as null, means a changed format.
	Sparse bool `yaml:"sparse" json:"sparse"`
	// Statuses says what the words of fields.status mean: in_flight, completed, failed or
	// reversed. A word that is not named is not guessed.
	Statuses map[string]string `yaml:"statuses" json:"statuses"`
	// Modes says what the words of fields.mode mean: live or test.
	Modes map[string]string `yaml:"modes" json:"modes"`
	// Unit is minor (1250) or major (12.50). It is written wherever there is an amount.
	Unit string `yaml:"unit" json:"unit"`
	// Exponents are the decimals of currencies that the provider counts unlike ISO 4217.
	Exponents map[string]int `yaml:"exponents" json:"exponents"`
	// Absolute takes amounts without their sign, where money that leaves is negative.
	Absolute bool `yaml:"absolute" json:"absolute"`
	// Currency is that of every amount, where no field names one.
	Currency string `yaml:"currency" json:"currency"`
	// Dates is rfc3339 (default), unix, unix_ms, or a layout such as "YYYY-MM-DD hh:mm:ss".
	Dates string `yaml:"dates" json:"dates"`
	// Zone is that of times that name none. Default UTC.
	Zone string      `yaml:"zone" json:"zone"`
	Log  LogSettings `yaml:"log" json:"log"`
	// Summary says that look-ups with items show objects without all that by_id shows: each
	// completed one is then read by its id, at the cost of a request.
	Summary bool `yaml:"summary" json:"summary"`

	ByID        LookupSettings `yaml:"by_id" json:"by_id"`
	ByReference LookupSettings `yaml:"by_reference" json:"by_reference"`
	ByKey       LookupSettings `yaml:"by_key" json:"by_key"`
	ByParent    LookupSettings `yaml:"by_parent" json:"by_parent"`
	List        LookupSettings `yaml:"list" json:"list"`
	Paging      PagingSettings `yaml:"paging" json:"paging"`
}

// words says how the objects write what they hold.
func (e EffectSettings) words() sources.Fields {
	return sources.Fields{
		Amount: e.Fields.Amount, CurrencyField: e.Fields.Currency, Status: e.Fields.Status, Mode: e.Fields.Mode,
		Unit: e.Unit, Currency: e.Currency, Exponents: e.Exponents, Absolute: e.Absolute, Statuses: e.Statuses, Modes: e.Modes,
	}
}

// FieldSettings are the paths of an object's fields: see [Path]. Only these are read;
// nothing else of a reply leaves this package.
type FieldSettings struct {
	ID            string `yaml:"id" json:"id"`
	CreatedAt     string `yaml:"created_at" json:"created_at"`
	UpdatedAt     string `yaml:"updated_at" json:"updated_at"`
	Status        string `yaml:"status" json:"status"` // without one, every object is completed
	Amount        string `yaml:"amount" json:"amount"`
	Currency      string `yaml:"currency" json:"currency"`
	Parent        string `yaml:"parent" json:"parent"`
	Reference     string `yaml:"reference" json:"reference"` // our operation id, as the provider holds it
	Key           string `yaml:"key" json:"key"`
	Natural       string `yaml:"natural_reference" json:"natural_reference"`
	Target        string `yaml:"target" json:"target"`
	Account       string `yaml:"account" json:"account"`
	Mode          string `yaml:"mode" json:"mode"`
	FailureReason string `yaml:"failure_reason" json:"failure_reason"`
	CreatedBy     string `yaml:"created_by" json:"created_by"`
	// TargetHash are fields whose texts make the target as [HashTarget] does, so that what
	// is personal is compared and never kept.
	TargetHash []string `yaml:"target_hash" json:"target_hash"`
}

// LogSettings read an object's log of events, where it has one. The events decide over the
// status: a failed one after a completed one is reversed.
type LogSettings struct {
	Items string `yaml:"items" json:"items"`
	Type  string `yaml:"type" json:"type"`
	At    string `yaml:"at" json:"at"`
	// Types says what events mean: completed or failed. All others say nothing.
	Types map[string]string `yaml:"types" json:"types"`
}

// LookupSettings are one way to ask: a GET and what its reply is worth.
type LookupSettings struct {
	// Path is added to api_url. It and Query may hold {id}, {reference}, {key}, {parent},
	// {account}, {mode} and {marker}.
	Path  string            `yaml:"path" json:"path"`
	Query map[string]string `yaml:"query" json:"query"`
	// Items is where the reply holds its list; "." is the reply itself. Without it the reply
	// is, or Object holds, one object.
	Items  string `yaml:"items" json:"items"`
	Object string `yaml:"object" json:"object"`
	// NotFound declares the replies that mean "not there". What is not declared is a fault.
	NotFound NotFoundSettings `yaml:"not_found" json:"not_found"`
	// Consistency is strong (after the lag, not found is not there) or eventual (not found
	// proves nothing). It must be written.
	Consistency string `yaml:"consistency" json:"consistency"`
	// Lag is the longest time until what exists is seen here. Default 1m.
	Lag recon.Duration `yaml:"lag" json:"lag"`
	// History is how far back it sees; absent: for ever.
	History recon.Duration `yaml:"history" json:"history"`

	// Of list alone. Order is newest or oldest first, by created_at; Since and Until are
	// the parameters that bound the time of creation.
	Order string        `yaml:"order" json:"order"`
	Since BoundSettings `yaml:"since" json:"since"`
	Until BoundSettings `yaml:"until" json:"until"`
}

// isZero reports that the look-up is not there.
func (l LookupSettings) isZero() bool {
	return l.Path == "" && len(l.Query) == 0 && l.Consistency == ""
}

// NotFoundSettings declare what "not there" looks like.
type NotFoundSettings struct {
	// Status of a JSON reply, such as 404. 200 needs Path and Equals beside it.
	Status int `yaml:"status" json:"status"`
	// Path and Equals are a field of that reply and its value, such as error.code.
	Path   string `yaml:"path" json:"path"`
	Equals string `yaml:"equals" json:"equals"`
	// Empty: an empty list of items.
	Empty bool `yaml:"empty" json:"empty"`
}

// SuccessSettings are a field of a reply and its value.
type SuccessSettings struct {
	Path   string `yaml:"path" json:"path"`
	Equals string `yaml:"equals" json:"equals"`
}

// BoundSettings are one bound of a list in time.
type BoundSettings struct {
	Param string `yaml:"param" json:"param"`
	// Format is as that of dates. One without a time of day asks for a day more than the
	// window; what lies outside of it is dropped here.
	Format string `yaml:"format" json:"format"`
	Zone   string `yaml:"zone" json:"zone"`
}

// PagingSettings say how lists go on.
type PagingSettings struct {
	// Style is none, page, offset, cursor, url (the reply holds the next page's address) or
	// link (its Link header does).
	Style string `yaml:"style" json:"style"`
	// Param takes the page, the offset or the cursor.
	Param string `yaml:"param" json:"param"`
	// First is the number of the first page. Default 1.
	First *int64 `yaml:"first" json:"first"`
	// Size is what SizeParam asks for. Default 100.
	SizeParam string `yaml:"size_param" json:"size_param"`
	Size      int    `yaml:"size" json:"size"`
	// Next is where the reply holds the next cursor or address. Null or empty is the end;
	// one that is missing is the end only where MayMiss says so.
	Next    string `yaml:"next" json:"next"`
	MayMiss bool   `yaml:"may_miss" json:"may_miss"`
	// Last is the field of a page's last object that is the next cursor.
	Last string `yaml:"last" json:"last"`
	// More and Total are where the reply says whether there is more, and how many objects
	// there are in all. Without them pages and offsets end at an empty page.
	More  string `yaml:"more" json:"more"`
	Total string `yaml:"total" json:"total"`
	// Reach is how many objects one list shows at most. A list of newest first begins
	// anew there, under the time that it has reached.
	Reach int `yaml:"reach" json:"reach"`
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// all gives the accounts of both forms, with defaults filled in.
func (s Settings) all() []AccountSettings {
	if len(s.Accounts) == 0 {
		return []AccountSettings{{Account: orElse(s.Account, defaultAccount), Mode: orElse(s.Mode, sources.ModeLive), Auth: s.Auth}}
	}
	list := make([]AccountSettings, len(s.Accounts))
	for i, a := range s.Accounts {
		a.Mode = orElse(a.Mode, sources.ModeLive)
		if a.Auth.isZero() {
			a.Auth = s.Auth
		}
		list[i] = a
	}
	return list
}

// lookups names the look-ups that are there.
func (e EffectSettings) lookups() []namedLookup {
	var list []namedLookup
	for _, l := range []namedLookup{
		{"by_id", recon.ByID, e.ByID}, {"by_reference", recon.ByReference, e.ByReference}, {"by_key", recon.ByKey, e.ByKey},
		{"by_parent", recon.ByList, e.ByParent}, {"list", recon.ByList, e.List},
	} {
		if !l.isZero() {
			list = append(list, l)
		}
	}
	return list
}

type namedLookup struct {
	name   string
	method recon.Method
	LookupSettings
}

// ReadSecrets fills what files hold, without the white space around it. It reports every
// file that cannot be read.
func (s *Settings) ReadSecrets(read func(name string) ([]byte, error)) []recon.Fault {
	faults := s.Auth.readSecrets("auth", read)
	for i := range s.Accounts {
		faults = append(faults, s.Accounts[i].Auth.readSecrets(fmt.Sprintf("accounts[%d].auth", i), read)...)
	}
	return faults
}

// Filled gives the settings of the source of that name as they are used.
func (s Settings) Filled(name string) any {
	s.System, s.Marker = orElse(s.System, name), orElse(s.Marker, defaultMarker)
	if s.PerSecond == 0 && s.PerMinute == 0 {
		s.PerSecond = defaultPerSecond
	}
	if s.InFlight == 0 {
		s.InFlight = defaultInFlight
	}
	if len(s.Accounts) == 0 {
		one := s.all()[0]
		s.Account, s.Mode = one.Account, one.Mode
	} else {
		s.Accounts = s.all()
	}
	s.Accounts = append([]AccountSettings{}, s.Accounts...)
	s.APIURL = strings.TrimRight(s.APIURL, "/")
	return s
}
