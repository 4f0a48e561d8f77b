package recon

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// MaxText is the longest text of one field, in characters. Longer ones are refused
// at every entrance, so that an index entry always fits.
const MaxText = 1024

// MaxMetadata is the largest metadata of a line, in bytes.
const MaxMetadata = 64 << 10

// Instants outside these years are typing errors or milliseconds taken for seconds.
const firstYear, lastYear = 2000, 2100

// ParseOperation reads one operation line (contracts: JSON). It is strict, because
// a ledger that half understands its input closes the wrong thing: unknown and
// repeated fields, empty texts, fractions, U+0000 and unpaired surrogates are
// refused. The error names the field and what to do; the caller adds file and line.
//
// An absent mode is "live". An absent account stays empty: only the caller knows
// whether the source has just one. The line may be reused after the call.
func ParseOperation(line []byte) (Operation, error) { return ParseOperationIn(line, nil) }

// ParseOperationIn is ParseOperation for a caller that knows the sources: only gives
// the account and mode of one that has just one, which stand where the line has none,
// and zero for the others.
func ParseOperationIn(line []byte, only func(SourceName) Account) (Operation, error) {
	o, err := parseLine(line, operationFields, &operationReaders)
	if err != nil {
		return Operation{}, err
	}
	if err := complete(&o, only); err != nil {
		return Operation{}, err
	}
	return o, nil
}

// complete checks what no single field shows and fills in what was left out.
func complete(o *Operation, only func(SourceName) Account) error {
	o.Account, o.Mode = placed(o.Source, o.Account, o.Mode, only)
	return checkMoney("", o.Money)
}

// ParseEffect reads one effect line (contracts: JSON), as strictly as
// [ParseOperation]. System becomes the source's name, which is its default; a caller
// whose source names another system sets it.
func ParseEffect(line []byte) (Effect, error) { return ParseEffectIn(line, nil) }

// ParseEffectIn is to [ParseEffect] what [ParseOperationIn] is to [ParseOperation].
func ParseEffectIn(line []byte, only func(SourceName) Account) (Effect, error) {
	e, err := parseLine(line, effectFields, &effectReaders)
	if err != nil {
		return Effect{}, err
	}
	if err := errors.Join(checkMoney("", e.Money), checkMoney("settlement_", e.Settlement)); err != nil {
		return Effect{}, err
	}
	if e.Money.Minor == 0 {
		e.Money.Currency = "" // absent, which is not an amount of nothing
	}
	e.Account, e.Mode = placed(e.Source, e.Account, e.Mode, only)
	e.System = string(e.Source)
	return e, nil
}

// placed fills in the account and mode that a line leaves out.
func placed(s SourceName, account, mode string, only func(SourceName) Account) (string, string) {
	if account != "" && mode != "" {
		return account, mode
	}
	var is Account
	if only != nil {
		is = only(s)
	}
	if mode == "" && (account == "" || account == is.Account) {
		mode = is.Mode
	}
	if mode == "" {
		mode = "live"
	}
	if account == "" {
		account = is.Account
	}
	return account, mode
}

// checkMoney refuses an amount without its currency. A currency without amount says that
// the amount is not known; it is not compared.
func checkMoney(prefix string, m Money) error {
	if m.Minor != 0 && m.Currency == "" {
		return fmt.Errorf("field %samount: there is no %scurrency beside it; add its ISO 4217 code", prefix, prefix)
	}
	return nil
}

var operationFields = []lineField[Operation]{
	required(text("id", func(o *Operation) *OperationID { return &o.ID })),
	required(text("source", func(o *Operation) *SourceName { return &o.Source })),
	required(text("action", func(o *Operation) *string { return &o.Action })),
	required(text("target", func(o *Operation) *string { return &o.Target })),
	text("parent", func(o *Operation) *string { return &o.Parent }),
	text("key", func(o *Operation) *string { return &o.Key }),
	amount("amount", func(o *Operation) *int64 { return &o.Money.Minor }),
	currency("currency", func(o *Operation) *string { return &o.Money.Currency }),
	required(word("state", func(o *Operation) *State { return &o.State }, States)),
	required(instant("created_at", func(o *Operation) *time.Time { return &o.CreatedAt })),
	instant("sent_at", func(o *Operation) *time.Time { return &o.SentAt }),
	instant("closed_at", func(o *Operation) *time.Time { return &o.ClosedAt }),
	text("effect_id", func(o *Operation) *string { return &o.EffectID }),
	text("account", func(o *Operation) *string { return &o.Account }),
	text("mode", func(o *Operation) *string { return &o.Mode }),
	text("reference", func(o *Operation) *string { return &o.Reference }),
	text("group", func(o *Operation) *string { return &o.Group }),
	text("run", func(o *Operation) *string { return &o.Run }),
	text("tool_call", func(o *Operation) *string { return &o.ToolCall }),
	text("case", func(o *Operation) *string { return &o.Case }),
	integer("step", func(o *Operation) **int64 { return &o.Step }),
	text("error_code", func(o *Operation) *string { return &o.ErrorCode }),
	field("marks", (*lineScanner).texts, cellWords, func(o *Operation, words []string) (err error) {
		o.Marks, err = readMarks(words)
		return err
	}),
	{name: "metadata", read: func(s *lineScanner, o *Operation) (err error) {
		o.Metadata, err = s.raw(MaxMetadata)
		return err
	}},
}

var effectFields = []lineField[Effect]{
	required(text("id", func(e *Effect) *string { return &e.ID })),
	required(text("source", func(e *Effect) *SourceName { return &e.Source })),
	required(text("kind", func(e *Effect) *string { return &e.Kind })),
	required(word("status", func(e *Effect) *EffectStatus { return &e.Status }, effectStatuses)),
	amount("amount", func(e *Effect) *int64 { return &e.Money.Minor }),
	currency("currency", func(e *Effect) *string { return &e.Money.Currency }),
	text("parent", func(e *Effect) *string { return &e.Parent }),
	text("target", func(e *Effect) *string { return &e.Target }),
	text("reference", func(e *Effect) *string { return &e.Reference }),
	text("natural_reference", func(e *Effect) *string { return &e.NaturalReference }),
	text("key", func(e *Effect) *string { return &e.Key }),
	required(instant("created_at", func(e *Effect) *time.Time { return &e.CreatedAt })),
	instant("updated_at", func(e *Effect) *time.Time { return &e.UpdatedAt }),
	field("other_parents", (*lineScanner).texts, cellWords, func(e *Effect, words []string) error {
		e.OtherParents = words
		return nil
	}),
	text("account", func(e *Effect) *string { return &e.Account }),
	text("mode", func(e *Effect) *string { return &e.Mode }),
	integer("fee", func(e *Effect) **int64 { return &e.Fee }),
	integer("net", func(e *Effect) **int64 { return &e.Net }),
	amount("settlement_amount", func(e *Effect) *int64 { return &e.Settlement.Minor }),
	currency("settlement_currency", func(e *Effect) *string { return &e.Settlement.Currency }),
	text("created_by", func(e *Effect) *string { return &e.CreatedBy }),
	text("failure_reason", func(e *Effect) *string { return &e.FailureReason }),
	text("caused_by", func(e *Effect) *string { return &e.CausedBy }),
	integer("parent_total", func(e *Effect) **int64 { return &e.ParentTotal }),
	{name: "metadata", read: func(s *lineScanner, e *Effect) (err error) {
		e.Metadata, err = s.raw(MaxMetadata)
		return err
	}},
}

var effectStatuses = []EffectStatus{InFlight, Completed, EffectFailed, Reversed}

// lineField reads one field of a line into T.
type lineField[T any] struct {
	name     string
	required bool
	read     func(*lineScanner, *T) error
	// cell reads the field from a cell of a table, which is not empty; nil: no cell can
	// hold it.
	cell func(string, *T) error
}

func required[T any](f lineField[T]) lineField[T] {
	f.required = true
	return f
}

// field is read by one function, whether a line or a cell gives the value.
func field[T, V any](name string, read func(*lineScanner) (V, error), cell func(string) (V, error), set func(*T, V) error) lineField[T] {
	return lineField[T]{
		name: name,
		read: func(s *lineScanner, t *T) error {
			v, err := read(s)
			if err != nil {
				return err
			}
			return set(t, v)
		},
		cell: func(c string, t *T) error {
			v, err := cell(c)
			if err != nil {
				return err
			}
			return set(t, v)
		},
	}
}

func text[T any, S ~string](name string, at func(*T) *S) lineField[T] {
	return field(name, (*lineScanner).text, checkText, func(t *T, v string) error {
		*at(t) = S(v)
		return nil
	})
}

func word[T any, S ~string](name string, at func(*T) *S, words []S) lineField[T] {
	return field(name, (*lineScanner).text, checkText, func(t *T, v string) error {
		for _, w := range words {
			if string(w) == v {
				*at(t) = w
				return nil
			}
		}
		return fmt.Errorf("%q is none of %s", cut(v), list(words))
	})
}

func amount[T any](name string, at func(*T) *int64) lineField[T] {
	return field(name, (*lineScanner).integer, cellInteger, func(t *T, v int64) error {
		if v <= 0 {
			return fmt.Errorf("%d is not above 0; leave the field out when there is no amount", v)
		}
		*at(t) = v
		return nil
	})
}

func integer[T any](name string, at func(*T) **int64) lineField[T] {
	return field(name, (*lineScanner).integer, cellInteger, func(t *T, v int64) error {
		*at(t) = &v
		return nil
	})
}

func currency[T any](name string, at func(*T) *string) lineField[T] {
	return field(name, (*lineScanner).text, checkText, func(t *T, v string) (err error) {
		*at(t), err = ParseCurrency(v)
		return err
	})
}

func instant[T any](name string, at func(*T) *time.Time) lineField[T] {
	return field(name, (*lineScanner).text, checkText, func(t *T, v string) (err error) {
		*at(t), err = ParseInstant(v)
		return err
	})
}

// ParseCurrency reads an ISO 4217 code in either case and gives it in upper case.
func ParseCurrency(s string) (string, error) {
	ok := len(s) == 3
	upper := true
	for i := 0; ok && i < 3; i++ {
		c := s[i] &^ 0x20 // the upper-case form of an ASCII letter
		ok = c >= 'A' && c <= 'Z'
		upper = upper && c == s[i]
	}
	switch {
	case !ok:
		return "", fmt.Errorf("%q is not a currency; write its three-letter ISO 4217 code, such as EUR", cut(s))
	case upper:
		return s, nil
	}
	return upperCode(s), nil
}

// codes holds all words of three capital letters, one behind the other, so that a million
// lines with a currency in lower case do not make a million texts.
var codes = sync.OnceValue(func() string {
	all := make([]byte, 0, 26*26*26*3)
	for i := range 26 * 26 * 26 {
		all = append(all, 'A'+byte(i/26/26), 'A'+byte(i/26%26), 'A'+byte(i%26))
	}
	return string(all)
})

// upperCode gives three letters in upper case.
func upperCode(s string) string {
	at := 0
	for i := range 3 {
		at = at*26 + int(s[i]&^0x20-'A')
	}
	return codes()[at*3 : at*3+3]
}

// ParseInstant reads an RFC 3339 instant with any offset and fraction and gives it
// in UTC. Instants before 2000 or from 2100 on are refused.
func ParseInstant(s string) (time.Time, error) {
	if n := len(s) - 1; n >= 0 && s[n] == 'Z' {
		if t, ok := ParseWallTime(s[:n], 'T'); ok {
			return t, nil // as nearly every instant of a file
		}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		t, err = time.Parse(time.RFC3339Nano, strings.ToUpper(s)) // the RFC allows t and z
	}
	// Parse also takes one-digit hours and a comma before the fraction.
	if err != nil || s[len("2026-03-01T09")] != ':' || strings.Contains(s, ",") {
		return time.Time{}, fmt.Errorf("%q is not an RFC 3339 instant; write it like 2026-03-01T09:30:00Z or with an offset", cut(s))
	}
	t = t.UTC()
	if t.Year() < firstYear || t.Year() >= lastYear {
		return time.Time{}, fmt.Errorf("%q is outside the years %d to %d", cut(s), firstYear, lastYear)
	}
	return t, nil
}

// ParseWallTime reads YYYY-MM-DD hh:mm:ss as a time of UTC, with another sign between day and
// hour. It is false for all that is not written so and for years that no instant has.
func ParseWallTime(s string, between byte) (time.Time, bool) {
	if len(s) != 19 || s[4] != '-' || s[7] != '-' || s[10] != between || s[13] != ':' || s[16] != ':' {
		return time.Time{}, false
	}
	bad := false
	two := func(i int) int {
		a, b := s[i]-'0', s[i+1]-'0'
		bad = bad || a > 9 || b > 9
		return int(a)*10 + int(b)
	}
	year, month, day := two(0)*100+two(2), two(5), two(8)
	hour, minute, second := two(11), two(14), two(17)
	if bad || year < firstYear || year >= lastYear || month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, 0, time.UTC)
	return t, day <= 28 || t.Day() == day
}

func readMarks(words []string) ([]Mark, error) {
	marks := make([]Mark, 0, len(words))
	for _, w := range words {
		m := Mark(w)
		if m != MarkKey && m != MarkReference {
			return nil, fmt.Errorf("%q is none of key, reference", cut(w))
		}
		marks = append(marks, m)
	}
	return marks, nil
}

// cut shortens a text for an error message, so that a wrong column does not spill
// its content into logs.
func cut(s string) string {
	const most = 40
	s = Discreet(s)
	for i := range s {
		if i >= most {
			return s[:i] + "…"
		}
	}
	return s
}

func list[S ~string](words []S) string {
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i] = string(w)
	}
	return strings.Join(texts, ", ")
}
