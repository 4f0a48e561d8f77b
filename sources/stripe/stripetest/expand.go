package stripetest

import "strings"

// expand replaces ids by the objects that they name, along paths such as
// "data.charge". What is null stays null; what is no id is the caller's fault.
func (s *Server) expand(p *place, shown map[string]any, paths []string) *apiError {
	for _, path := range paths {
		if !s.expandPath(p, shown, strings.Split(path, ".")) {
			return invalid("expand", "This property cannot be expanded (%s).", path)
		}
	}
	return nil
}

func (s *Server) expandPath(p *place, in map[string]any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	value, there := in[path[0]]
	if !there {
		return false
	}
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return s.expandPath(p, value, path[1:])
	case []map[string]any:
		for _, element := range value {
			if !s.expandPath(p, element, path[1:]) {
				return false
			}
		}
		return true
	case string:
		found := p.find(value)
		if found == nil {
			// An id whose object was never seeded: nothing to show in its place.
			return strings.Contains(value, "_")
		}
		shown := found.show(s.fixtures)
		in[path[0]] = shown
		return s.expandPath(p, shown, path[1:])
	}
	return false
}
