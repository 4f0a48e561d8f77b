package config

import (
	"regexp"
	"strings"
)

// Env reads a variable of the environment; false when it is not set.
type Env func(name string) (string, bool)

// The braces of ${NAME} cannot stand unquoted in a YAML flow mapping, yet that is
// where people write them: {url: ${DATABASE_URL}}. So they are replaced by two
// characters of the private use area before the file is parsed, one for one, which
// keeps every column, and the references are resolved in the parsed values. The
// content of a variable therefore never takes part in the syntax and never stands in
// an excerpt.
const (
	openBrace  = "\ue000"
	closeBrace = "\ue001"
)

var (
	reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	hidden    = regexp.MustCompile(`\$` + openBrace + `([A-Za-z_][A-Za-z0-9_]*)` + closeBrace)
	braces    = strings.NewReplacer(openBrace, "{", closeBrace, "}")
)

func hide(text string) string {
	return reference.ReplaceAllString(text, "$$"+openBrace+"$1"+closeBrace)
}

func restore(text string) string { return braces.Replace(text) }

// resolve fills the references of one value. Those that are not set, or set to
// nothing, are returned by name: an empty secret is a lost secret.
func resolve(value string, env Env) (filled string, missing []string) {
	filled = hidden.ReplaceAllStringFunc(value, func(m string) string {
		name := hidden.FindStringSubmatch(m)[1]
		v, ok := env(name)
		if !ok || v == "" {
			missing = append(missing, name)
			return ""
		}
		return v
	})
	return filled, missing
}
