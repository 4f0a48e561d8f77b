package recon

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxDepth bounds the nesting of metadata: deeper input is an attack on the stack.
const maxDepth = 128

var errSyntax = errors.New("this is not valid JSON")

// lineReader is what reading one line needs. It is kept for the next line: fields are
// read through a table, for which both parts must lie on the heap, and a million lines
// would leave a million of each behind.
type lineReader[T any] struct {
	scanner lineScanner
	value   T
}

var operationReaders, effectReaders sync.Pool

// parseLine reads one JSON object by a table of fields.
//
// It is written by hand rather than with encoding/json for what that package does
// in silence: it takes field names in any case, keeps the last of two equal fields,
// and turns broken text into U+FFFD. It also copies the line only once: texts
// without escapes share its memory.
func parseLine[T any](line []byte, fields []lineField[T], readers *sync.Pool) (T, error) {
	var zero T
	if !utf8.Valid(line) {
		return zero, errors.New("the line is not UTF-8; convert the file before reading it")
	}
	r, ok := readers.Get().(*lineReader[T])
	if !ok {
		r = new(lineReader[T])
	}
	r.scanner = lineScanner{in: string(line)}
	err := readObject(&r.scanner, fields, &r.value)
	t := r.value
	*r = lineReader[T]{}
	readers.Put(r)
	if err != nil {
		return zero, err
	}
	return t, nil
}

// readObject reads the one object that a line is.
func readObject[T any](s *lineScanner, fields []lineField[T], t *T) error {
	var seen uint64 // one bit a field; no line has more than 64
	if !s.take('{') {
		return errors.New("the line is not a JSON object; write one {…} a line")
	}
	next := 0
	for first := true; ; first = false {
		if s.take('}') {
			break
		}
		if !first && !s.take(',') {
			return s.fault()
		}
		name, err := s.str()
		if err != nil || !s.take(':') {
			return s.fault()
		}
		i := fieldIndex(fields, name, next)
		switch {
		case i < 0:
			return fmt.Errorf("unknown field %q; remove it or put it into metadata", cut(name))
		case seen&(1<<i) != 0:
			return fmt.Errorf("field %s: it stands twice; keep one", name)
		case s.null():
			continue
		}
		if err := fields[i].read(s, t); err != nil {
			if errors.Is(err, errSyntax) {
				return fmt.Errorf("field %s: %w (byte %d)", name, err, s.at+1)
			}
			return fmt.Errorf("field %s: %w", name, err)
		}
		seen |= 1 << i
		next = i + 1
	}
	if s.space(); s.at != len(s.in) {
		return errors.New("there is more after the object; write one object a line")
	}
	for i, f := range fields {
		if f.required && seen&(1<<i) == 0 {
			return fmt.Errorf("field %s: it is missing; every line needs it", f.name)
		}
	}
	return nil
}

// fieldIndex finds a field by name, starting where the last one was found: writers
// keep their order, so the search is nearly always one or two steps.
func fieldIndex[T any](fields []lineField[T], name string, from int) int {
	for n := range fields {
		if i := (from + n) % len(fields); fields[i].name == name {
			return i
		}
	}
	return -1
}

// lineScanner reads JSON values from one line. Its readers leave at behind what
// they read.
type lineScanner struct {
	in string
	at int
}

func (s *lineScanner) fault() error {
	return fmt.Errorf("%w (byte %d)", errSyntax, s.at+1)
}

func (s *lineScanner) space() {
	for s.at < len(s.in) {
		switch s.in[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

func (s *lineScanner) take(c byte) bool {
	s.space()
	if s.at < len(s.in) && s.in[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *lineScanner) null() bool { return s.literal("null") }

func (s *lineScanner) literal(word string) bool {
	s.space()
	if strings.HasPrefix(s.in[s.at:], word) {
		s.at += len(word)
		return true
	}
	return false
}

// text reads a text of a field: not empty and at most MaxText characters.
func (s *lineScanner) text() (string, error) {
	s.space()
	if s.at < len(s.in) && s.in[s.at] != '"' {
		return "", errors.New("a text in quotes belongs here")
	}
	v, err := s.str()
	if err != nil {
		return "", err
	}
	return checkText(v)
}

func checkText(v string) (string, error) {
	switch {
	case v == "":
		return "", errors.New("it is empty; leave the field out or give it a value")
	case len(v) > MaxText && utf8.RuneCountInString(v) > MaxText:
		return "", fmt.Errorf("it has over %d characters; shorten it", MaxText)
	}
	return v, nil
}

func (s *lineScanner) texts() ([]string, error) {
	if !s.take('[') {
		return nil, errors.New("a list of texts, such as [\"a\", \"b\"], belongs here")
	}
	var all []string
	for {
		if s.take(']') {
			return all, nil
		}
		if len(all) > 0 && !s.take(',') {
			return nil, errSyntax
		}
		v, err := s.text()
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
}

// integer reads a whole number. Fractions and exponents are refused even where
// their value is whole: 42.00 is how major units look.
func (s *lineScanner) integer() (int64, error) {
	s.space()
	start := s.at
	if !s.number() {
		return 0, errors.New("a whole number without quotes belongs here (amounts in minor units, such as cents)")
	}
	token := s.in[start:s.at]
	if strings.ContainsAny(token, ".eE") {
		return 0, fmt.Errorf("%s is not a whole number; give minor units, such as cents, without fraction or exponent", cut(token))
	}
	v, err := strconv.ParseInt(token, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is too large", cut(token))
	}
	return v, nil
}

// number steps over a JSON number and reports whether there was one.
func (s *lineScanner) number() bool {
	start := s.at
	if s.at < len(s.in) && s.in[s.at] == '-' {
		s.at++
	}
	whole := s.digits()
	first := strings.TrimPrefix(s.in[start:s.at], "-")
	if whole == 0 || whole > 1 && first[0] == '0' {
		return false
	}
	if s.at < len(s.in) && s.in[s.at] == '.' {
		s.at++
		if s.digits() == 0 {
			return false
		}
	}
	if s.at < len(s.in) && s.in[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.in) && (s.in[s.at] == '+' || s.in[s.at] == '-') {
			s.at++
		}
		return s.digits() > 0
	}
	return true
}

func (s *lineScanner) digits() int {
	start := s.at
	for s.at < len(s.in) && s.in[s.at] >= '0' && s.in[s.at] <= '9' {
		s.at++
	}
	return s.at - start
}

// raw reads any JSON value and gives a copy of its bytes, at most max of them.
func (s *lineScanner) raw(max int) (json.RawMessage, error) {
	s.space()
	start := s.at
	if err := s.value(0); err != nil {
		return nil, err
	}
	if s.at-start > max {
		return nil, fmt.Errorf("it has over %d bytes; shorten it", max)
	}
	return json.RawMessage(s.in[start:s.at]), nil
}

// value steps over one JSON value and refuses what PostgreSQL's jsonb would refuse
// too: U+0000 and unpaired surrogates.
func (s *lineScanner) value(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("it is nested deeper than %d", maxDepth)
	}
	s.space()
	if s.at >= len(s.in) {
		return errSyntax
	}
	switch s.in[s.at] {
	case '"':
		_, err := s.str()
		return err
	case '{':
		return s.members('}', depth)
	case '[':
		return s.members(']', depth)
	case 't', 'f', 'n':
		if s.literal("true") || s.literal("false") || s.literal("null") {
			return nil
		}
		return errSyntax
	}
	if !s.number() {
		return errSyntax
	}
	return nil
}

// members steps over what stands between the brackets of an object or a list.
func (s *lineScanner) members(end byte, depth int) error {
	s.at++
	for first := true; !s.take(end); first = false {
		if !first && !s.take(',') {
			return errSyntax
		}
		if end == '}' {
			s.space()
			if _, err := s.str(); err != nil {
				return err
			}
			if !s.take(':') {
				return errSyntax
			}
		}
		if err := s.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}
