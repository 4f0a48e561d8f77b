package config

import (
	"reflect"
	"slices"
)

// Fixed names what next changes and a process cannot change while it runs, as keys of the
// file; nil: next can take the place of c.
func (c *Config) Fixed(next *Config) []string {
	var fixed []string
	for _, one := range []struct {
		key    string
		before any
		after  any
	}{
		{"tenant", c.Tenant, next.Tenant},
		{"database", c.Database, next.Database},
		{"listen", c.Listen, next.Listen},
	} {
		if one.before != one.after {
			fixed = append(fixed, one.key)
		}
	}
	for _, s := range c.Sources {
		if other, ok := next.Source(s.Name); !ok || s.Kind != other.Kind || !reflect.DeepEqual(s.settings, other.settings) {
			fixed = append(fixed, "sources."+string(s.Name))
		}
	}
	for _, s := range next.Sources {
		if !slices.ContainsFunc(c.Sources, func(old Source) bool { return old.Name == s.Name }) {
			fixed = append(fixed, "sources."+string(s.Name))
		}
	}
	return fixed
}
