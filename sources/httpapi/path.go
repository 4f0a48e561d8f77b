package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Path names a field of a JSON value: names joined by dots, [n] for the n-th entry of a
// list (from 0), [name=value] for the first entry whose field name is value, and ["a.b"]
// for a name with dots or brackets. "." is the value itself.
//
//	order.lines[0].id    custom_fields[name=operation_id].value    meta["x.y"]
type Path []step

type step struct {
	name  string
	index int
	equal string // of [name=equal]
	kind  stepKind
}

type stepKind int

const (
	byName stepKind = iota
	byIndex
	byValue
)

var errPath = errors.New(`is not a path; write it like order.lines[0].id, fields[name=ref].value or ["a.b"]`)

// ParsePath reads a path.
func ParsePath(s string) (Path, error) {
	if s == "." {
		return Path{}, nil
	}
	var p Path
	for rest, first := s, true; rest != "" || first; first = false {
		var (
			st  step
			err error
		)
		switch {
		case strings.HasPrefix(rest, "["):
			st, rest, err = bracket(rest)
		case !first && !strings.HasPrefix(rest, "."):
			err = errPath
		default:
			if !first {
				rest = rest[1:]
			}
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			st, rest = step{name: rest[:end]}, rest[end:]
			if st.name == "" || strings.ContainsAny(st.name, "]\"") {
				err = errPath
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%q %w", s, err)
		}
		p = append(p, st)
	}
	return p, nil
}

// bracket reads what stands in brackets at the beginning of s.
func bracket(s string) (step, string, error) {
	if strings.HasPrefix(s, `["`) {
		name, rest, ok := strings.Cut(s[2:], `"]`)
		if !ok || name == "" {
			return step{}, "", errPath
		}
		return step{name: name}, rest, nil
	}
	inner, rest, ok := strings.Cut(s[1:], "]")
	if !ok {
		return step{}, "", errPath
	}
	if name, value, pair := strings.Cut(inner, "="); pair {
		if name == "" || value == "" {
			return step{}, "", errPath
		}
		return step{name: name, equal: value, kind: byValue}, rest, nil
	}
	n, err := strconv.ParseUint(inner, 10, 16)
	if err != nil {
		return step{}, "", errPath
	}
	return step{index: int(n), kind: byIndex}, rest, nil
}

// find follows the path. there is false where the field, or what encloses it, is not in
// the value: null on the way counts as null at the end. A wrong type on the way is an
// error: the format is not the one that is configured.
func (p Path) find(v any) (value any, there bool, err error) {
	for _, s := range p {
		if v == nil {
			return nil, true, nil
		}
		switch s.kind {
		case byName:
			m, ok := v.(map[string]any)
			if !ok {
				return nil, false, fmt.Errorf("%s is asked of what is not an object", s.name)
			}
			if v, ok = m[s.name]; !ok {
				return nil, false, nil
			}
		case byIndex, byValue:
			list, ok := v.([]any)
			if !ok {
				return nil, false, errors.New("an entry is asked of what is not a list")
			}
			if v, ok = s.entry(list); !ok {
				return nil, false, nil
			}
		}
	}
	return v, true, nil
}

func (s step) entry(list []any) (any, bool) {
	if s.kind == byIndex {
		if s.index < len(list) {
			return list[s.index], true
		}
		return nil, false
	}
	for _, entry := range list {
		m, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		if text, err := textOf(m[s.name]); err == nil && text == s.equal {
			return entry, true
		}
	}
	return nil, false
}

// text gives the text of a field: empty where it is null or not there.
func (p Path) text(v any) (string, error) {
	if p == nil {
		return "", nil
	}
	value, there, err := p.find(v)
	if err != nil || !there {
		return "", err
	}
	return textOf(value)
}

// textOf gives a scalar as it is written in JSON, texts without their quotes.
func textOf(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", errors.New("a text, a number or true or false is expected")
}
