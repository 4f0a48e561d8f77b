package recon

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// str reads a JSON string. One without escapes shares the line's memory.
func (s *lineScanner) str() (string, error) {
	if !s.take('"') {
		return "", errSyntax
	}
	start := s.at
	for ; s.at < len(s.in); s.at++ {
		switch c := s.in[s.at]; {
		case c == '"':
			s.at++
			return s.in[start : s.at-1], nil
		case c == '\\':
			return s.escaped(start)
		case c == 0:
			return "", errNUL
		case c < ' ':
			return "", errSyntax
		}
	}
	return "", errSyntax
}

var errNUL = errors.New("it holds U+0000, which no database text can; remove it")

// escaped reads the rest of a string that has escapes and gives its text.
func (s *lineScanner) escaped(start int) (string, error) {
	out := append(make([]byte, 0, s.at-start+32), s.in[start:s.at]...)
	for s.at < len(s.in) {
		c := s.in[s.at]
		s.at++
		switch {
		case c == '"':
			return string(out), nil
		case c == 0:
			return "", errNUL
		case c < ' ':
			return "", errSyntax
		case c != '\\':
			out = append(out, c)
			continue
		}
		r, err := s.escape()
		if err != nil {
			return "", err
		}
		out = utf8.AppendRune(out, r)
	}
	return "", errSyntax
}

// escape reads what follows a backslash.
func (s *lineScanner) escape() (rune, error) {
	if s.at >= len(s.in) {
		return 0, errSyntax
	}
	c := s.in[s.at]
	s.at++
	if c == 'u' {
		return s.unicode()
	}
	const from, to = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	i := strings.IndexByte(from, c)
	if i < 0 {
		return 0, errSyntax
	}
	return rune(to[i]), nil
}

func (s *lineScanner) unicode() (rune, error) {
	r, err := s.hex4()
	switch {
	case err != nil:
		return 0, err
	case r == 0:
		return 0, errNUL
	case r < 0xd800 || r > 0xdfff:
		return r, nil
	}
	if r < 0xdc00 && strings.HasPrefix(s.in[s.at:], `\u`) {
		s.at += 2
		low, err := s.hex4()
		if err != nil {
			return 0, err
		}
		if low >= 0xdc00 && low <= 0xdfff {
			return 0x10000 + (r-0xd800)<<10 + (low - 0xdc00), nil
		}
	}
	return 0, errors.New("it holds half of a surrogate pair, which is not text; remove it")
}

func (s *lineScanner) hex4() (rune, error) {
	if s.at+4 > len(s.in) {
		return 0, errSyntax
	}
	v, err := strconv.ParseUint(s.in[s.at:s.at+4], 16, 16)
	if err != nil {
		return 0, errSyntax
	}
	s.at += 4
	return rune(v), nil
}
