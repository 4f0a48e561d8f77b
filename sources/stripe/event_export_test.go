package stripe

import (
	"maps"
	"slices"
	"strings"
)

// Needed are the fields without which an event's object of a kind is read, but for those
// that another one may stand for.
func Needed(kind string) []string {
	var list []string
	for _, name := range kinds[kind].needed {
		if !strings.Contains(name, "|") {
			list = append(list, name)
		}
	}
	return list
}

// KindNames are all kinds.
func KindNames() []string { return slices.Sorted(maps.Keys(kinds)) }
