package recon

import (
	"slices"
	"time"
)

// Outcome is the answer to a look. Absent and Blind are never the same value: the
// first says "not there", the second "could not look".
type Outcome string

const (
	Found  Outcome = "found"
	Absent Outcome = "absent"
	Blind  Outcome = "blind"
)

// Method is the way a source was asked.
type Method string

const (
	ByStored    Method = "stored"       // our own store of effects
	ByEvent     Method = "event"        // an event that the provider delivered
	ByID        Method = "by_id"        // the effect's own id
	ByReference Method = "by_reference" // a filter on our reference
	ByKey       Method = "by_key"       // the idempotency key
	ByList      Method = "list"         // a complete list of a window or of a parent
	BySearch    Method = "search"       // an index that may lag: finds faster, proves nothing by silence
	ByChanges   Method = "changes"      // the provider's feed of changes
	ByFile      Method = "file"         // an imported export
	ByPerson    Method = "person"       // a person said so
)

// Window is a half-open range of time [From, To) in which effects were created.
type Window struct {
	From, To time.Time
}

// Contains reports whether t lies in [From, To).
func (w Window) Contains(t time.Time) bool { return !t.Before(w.From) && t.Before(w.To) }

// IsZero reports whether the window is not set.
func (w Window) IsZero() bool { return w.From.IsZero() && w.To.IsZero() }

// Look is one question to a source and its answer. It belongs to no operation: it
// says by itself what it covers, and rules ask whether that covers an operation.
//
// The subject is exactly what was asked: EffectID for by_id; Key for by_key;
// Reference for by_reference and search; Parent for a list of one parent's children
// (every effect under it, whenever created); Window for a list or a feed of a range.
// A by_key look through a feed of changes has both Key and Window.
type Look struct {
	ID        string // UUIDv7
	Source    SourceName
	Method    Method
	Outcome   Outcome
	Kind      string // kind of effect that was asked for
	Account   string
	Mode      string
	EffectID  string
	Key       string
	Reference string
	Parent    string
	Window    Window
	At        time.Time // when the question was put; absence counts from here
	Complete  bool      // every page of what was asked for was read
	Calls     int       // requests that were made for it
	RequestID string    // the provider's id of the last request
	ReplyHash []byte    // sha256 over the raw replies, in order
	Fault     string    // why it was blind: a source error kind, such as "rate_limited"
	Detail    string    // for people, without secrets or personal data
	Found     []EffectIdentity
}

// Covers reports whether the look asked about the place where the effect of an
// operation would be: the kind, account and mode, and a subject that holds it. An
// operation whose account is not known is covered by nothing. It says nothing of
// whether the look's silence counts; rules judge that with the sheet.
func (l Look) Covers(o Operation, kind string) bool {
	if o.Account == "" || l.Kind != kind || l.Account != o.Account || l.Mode != o.Mode {
		return false
	}
	switch {
	case l.EffectID != "":
		return l.EffectID == o.EffectID
	case l.Key != "":
		return l.Key == o.Key
	case l.Reference != "":
		return l.Reference == string(o.ID) || o.Group != "" && l.Reference == o.Group
	case l.Parent != "":
		return l.Parent == o.Parent
	}
	return !l.Window.From.After(o.FirstPossible()) && l.Window.To.After(o.FirstPossible())
}

// Coverage says that a range was listed completely at a time, by which look.
type Coverage struct {
	Source  SourceName
	Kind    string
	Account string
	Mode    string
	Window  Window
	At      time.Time
	LookID  string
}

// Consistency is how much a method's silence is worth.
type Consistency string

const (
	Strong   Consistency = "strong"   // after the lag, not found is not there
	Eventual Consistency = "eventual" // not found proves nothing
)

// Ability is what a source's sheet says of one method.
type Ability struct {
	Method      Method      `json:"method"`
	Consistency Consistency `json:"consistency"`
	Lag         Duration    `json:"lag"`             // longest time until what exists is seen by this method
	NeedsMark   []Mark      `json:"marks"`           // any one of these must really have been sent to be found
	History     Duration    `json:"history"`         // how far back it sees; 0 = for ever
	Kinds       []string    `json:"kinds,omitempty"` // of effects that it finds; none named = all of the source's
}

// Finds reports whether effects of a kind are found by the ability's method.
func (a Ability) Finds(kind string) bool { return len(a.Kinds) == 0 || slices.Contains(a.Kinds, kind) }

// Sheet is a source's capability sheet: what it can do, and what its "not found" is
// worth. Rules read it; nobody guesses.
type Sheet struct {
	System       string    `json:"system"`
	Kinds        []string  `json:"kinds"` // kinds of effects it can observe
	Abilities    []Ability `json:"abilities"`
	Accounts     []Account `json:"accounts"`
	Marker       string    `json:"marker"`        // name under which senders put our reference
	KeyLifetime  Duration  `json:"key_lifetime"`  // 0: the provider keeps no keys
	RepeatAnswer bool      `json:"repeat_answer"` // a repeat under the same key gives the first one's answer
	KeyHoldsOne  bool      `json:"key_holds_one"` // one key holds the provider to one effect
	InFlightMax  Duration  `json:"in_flight_max"` // longest time that a request can still be working after its lease
	Webhooks     bool      `json:"webhooks"`      // it delivers signed events
	OwnWrite     bool      `json:"own_write"`     // effects are changes in the ledger's own database, committed with their record
	PageSize     int       `json:"page_size"`
	PerSecond    float64   `json:"per_second"` // requests a second that we allow ourselves
	// Exponents are the currencies whose minor unit at this provider is not that of
	// ISO 4217, with their number of decimals. Only screens for people use it.
	Exponents map[string]int `json:"exponents,omitempty"`
}

// Account is one account and mode of a source.
type Account struct {
	Account string `json:"account"`
	Mode    string `json:"mode"`
}

// Ability gives what the sheet says of a method, and false when it has none.
func (s Sheet) Ability(m Method) (Ability, bool) {
	for _, a := range s.Abilities {
		if a.Method == m {
			return a, true
		}
	}
	return Ability{}, false
}

// Finds reports whether the source can be asked for an effect of a policy's action when its
// answer was lost. Then its id is not known, and only what was sent with it can be looked
// for.
func (s Sheet) Finds(p Policy) bool {
	return slices.ContainsFunc(s.Abilities, func(a Ability) bool {
		sent := slices.ContainsFunc(a.NeedsMark, func(m Mark) bool { return slices.Contains(p.Marks, m) })
		return a.Method != ByID && a.Finds(p.Effect) && (sent || len(a.NeedsMark) == 0)
	})
}

// Has reports whether account and mode are among the source's. A source without
// accounts has every account.
func (s Sheet) Has(account, mode string) bool {
	for _, a := range s.Accounts {
		if a.Account == account && a.Mode == mode {
			return true
		}
	}
	return len(s.Accounts) == 0
}
