package httpapi

import (
	"errors"
	"net/http"
	"slices"
	"strings"
)

var errLink = errors.New("the Link header cannot be read")

// nextLink reads the address with rel="next" of Link headers (RFC 8288), empty where there
// is none. A header that cannot be read is an error: a list would seem to have ended.
func nextLink(h http.Header, asked string) (string, error) {
	for _, rest := range h.Values("Link") {
		for rest = strings.TrimSpace(rest); rest != ""; {
			target, params, after, ok := cutLink(rest)
			if !ok {
				return "", errLink
			}
			if slices.Contains(relations(params), "next") {
				return sameHost(target, asked)
			}
			rest = after
		}
	}
	return "", nil
}

// cutLink cuts the first link off: its address may hold commas, and so may quoted texts.
func cutLink(s string) (target, params, after string, ok bool) {
	if !strings.HasPrefix(s, "<") {
		return "", "", "", false
	}
	if target, params, ok = strings.Cut(s[1:], ">"); !ok {
		return "", "", "", false
	}
	quoted := false
	for i := range len(params) {
		switch c := params[i]; {
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return target, params[:i], strings.TrimLeft(params[i+1:], " \t,"), true
		}
	}
	return target, params, "", !quoted
}

// relations gives what a link's parameter rel says, in lower case.
func relations(params string) []string {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(strings.TrimSpace(name), "rel") {
			return strings.Fields(strings.ToLower(strings.Trim(strings.TrimSpace(value), `"`)))
		}
	}
	return nil
}
