package stripetest

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxMetadataKeys  = 50
	maxMetadataKey   = 40
	maxMetadataValue = 500
)

// params are the parameters of a request. Reading them notes the first fault; what
// was never read is unknown to the endpoint, which done reports.
type params struct {
	values url.Values
	read   map[string]bool
	fault  *apiError
}

func newParams(values url.Values) *params {
	return &params{values: values, read: map[string]bool{}}
}

// canonical writes the parameters in one order, to compare a request with an earlier one.
func (p *params) canonical() string { return p.values.Encode() }

func (p *params) fail(e *apiError) {
	if p.fault == nil {
		p.fault = e
	}
}

// text reads an optional text; given but empty is a fault, as at the provider.
func (p *params) text(name string) string {
	p.read[name] = true
	values, given := p.values[name]
	if !given {
		return ""
	}
	text := values[len(values)-1]
	if text == "" {
		e := invalid(name, "You passed an empty string for '%s'. We assume empty values are an attempt to unset a parameter; however '%s' cannot be unset. You should remove '%s' from your request or supply a non-empty value.", name, name, name)
		e.Code = "parameter_invalid_empty"
		p.fail(e)
	}
	return text
}

// required reads a text that must be there.
func (p *params) required(name string) string {
	text := p.text(name)
	if !p.values.Has(name) {
		e := invalid(name, "Missing required param: %s.", name)
		e.Code = "parameter_missing"
		p.fail(e)
	}
	return text
}

// choice reads an optional text that must be one of some.
func (p *params) choice(name string, choices ...string) string {
	text := p.text(name)
	if text != "" && !slices.Contains(choices, text) {
		p.fail(invalid(name, "Invalid %s: must be one of %s", name, strings.Join(choices, ", ")))
	}
	return text
}

// number reads an optional whole number; nil when it is not given.
func (p *params) number(name string) *int64 {
	text := p.text(name)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		e := invalid(name, "Invalid integer: %s", text)
		e.Code = "parameter_invalid_integer"
		p.fail(e)
		return nil
	}
	return &n
}

// amount reads an optional amount in minor units, at least 1.
func (p *params) amount(name string) *int64 {
	n := p.number(name)
	if n != nil && *n < 1 {
		e := invalid(name, "This value must be greater than or equal to 1.")
		e.Code = "parameter_invalid_integer"
		p.fail(e)
	}
	return n
}

// flag reads an optional boolean.
func (p *params) flag(name string) bool { return p.choice(name, "true", "false") == "true" }

// ignore accepts parameters that change nothing here, nested ones included.
func (p *params) ignore(names ...string) {
	for name := range p.values {
		root, _, _ := strings.Cut(name, "[")
		if slices.Contains(names, root) {
			p.read[name] = true
		}
	}
}

// many reads a list: name[0], name[1]… or name[].
func (p *params) many(name string) []string {
	var keys []string
	for key := range p.values {
		index, inside := strings.CutPrefix(key, name+"[")
		index, closed := strings.CutSuffix(index, "]")
		if _, err := strconv.Atoi(index); inside && closed && (err == nil || index == "") {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	var list []string
	for _, key := range keys {
		p.read[key] = true
		list = append(list, p.values[key]...)
	}
	return list
}

// metadata reads metadata[key]; nil when none is given. An empty value stands for
// removal.
func (p *params) metadata() map[string]string {
	var m map[string]string
	if values, given := p.values["metadata"]; given {
		p.read["metadata"] = true
		if values[0] != "" {
			p.fail(invalid("metadata", "Invalid object"))
		}
		m = map[string]string{}
	}
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		values := p.values[name]
		key, inside := strings.CutPrefix(name, "metadata[")
		if !inside {
			continue
		}
		p.read[name] = true
		key, closed := strings.CutSuffix(key, "]")
		value := values[len(values)-1]
		switch {
		case !closed || key == "" || strings.ContainsAny(key, "[]"):
			p.fail(invalid("metadata", "Metadata keys cannot be empty or hold square brackets."))
		case utf8.RuneCountInString(key) > maxMetadataKey:
			p.fail(invalid("metadata", "Metadata keys can have up to %d characters.", maxMetadataKey))
		case utf8.RuneCountInString(value) > maxMetadataValue:
			p.fail(invalid("metadata["+key+"]", "Metadata values can have up to %d characters.", maxMetadataValue))
		}
		if m == nil {
			m = map[string]string{}
		}
		m[key] = value
	}
	if len(m) > maxMetadataKeys {
		p.fail(invalid("metadata", "You can specify up to %d metadata keys.", maxMetadataKeys))
	}
	return m
}

// done gives the first fault, or blames a parameter that the endpoint does not know.
func (p *params) done() *apiError {
	if p.fault != nil {
		return p.fault
	}
	var unknown []string
	for name := range p.values {
		if !p.read[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	e := invalid(unknown[0], "Received unknown parameter: %s", unknown[0])
	e.Code = "parameter_unknown"
	return e
}
