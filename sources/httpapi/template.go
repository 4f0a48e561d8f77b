package httpapi

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// names are what a path or a query may hold in braces.
var names = []string{"id", "reference", "key", "parent", "account", "mode", "marker"}

var (
	braces   = regexp.MustCompile(`\{([^{}]*)\}`)
	errValue = errors.New("what is asked for cannot stand in an address")
)

// vars are the values for the names in braces.
type vars map[string]string

// checkTemplate says what is wrong with a text with braces, and which names it holds.
func checkTemplate(s string) (held []string, err error) {
	for _, m := range braces.FindAllStringSubmatch(s, -1) {
		if !slices.Contains(names, m[1]) {
			return nil, fmt.Errorf("{%s} means nothing; known are {%s}", m[1], strings.Join(names, "}, {"))
		}
		held = append(held, m[1])
	}
	if strings.ContainsAny(braces.ReplaceAllString(s, ""), "{}") {
		return nil, errors.New("a brace is not closed")
	}
	return held, nil
}

// fill puts the values in, each as write writes it.
func fill(template string, v vars, write func(string) string) string {
	return braces.ReplaceAllStringFunc(template, func(name string) string { return write(v[name[1:len(name)-1]]) })
}

// fillPath puts values into a path. One that would name another place than one segment
// is refused: an id of ".." must not lead elsewhere.
func fillPath(template string, v vars) (string, error) {
	for _, m := range braces.FindAllStringSubmatch(template, -1) {
		if value := v[m[1]]; value == "" || value == "." || value == ".." || strings.ContainsAny(value, "\r\n\x00") {
			return "", errValue
		}
	}
	return fill(template, v, url.PathEscape), nil
}

// address is where a look-up asks.
func (e *endpoint) address(base string, v vars) (string, url.Values, error) {
	path, err := fillPath(e.path, v)
	if err != nil {
		return "", nil, err
	}
	query := url.Values{}
	plain := func(s string) string { return s }
	for name, value := range e.query {
		query.Set(fill(name, v, plain), fill(value, v, plain))
	}
	return strings.TrimRight(base, "/") + path, query, nil
}
