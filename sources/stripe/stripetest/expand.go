package stripetest

import "strings"

const maxExpandDepth = 4

// expandable are the fields that hold an id and may be asked for as an object.
var expandable = map[string]bool{
	"balance_transaction":         true,
	"charge":                      true,
	"customer":                    true,
	"failure_balance_transaction": true,
	"latest_charge":               true,
	"payment_intent":              true,
	"payment_method":              true,
	"source":                      true,
	"source_transfer_reversal":    true,
	"transfer_reversal":           true,
}

// expand reads which ids shall be shown as whole objects; on a list the paths begin
// with "data.", which is cut off.
func (p *params) expand(list bool) []string {
	var paths []string
	for _, path := range p.many("expand") {
		if strings.Count(path, ".")+1 > maxExpandDepth {
			p.fail(invalid("expand", "You cannot expand more than %d levels of a property. Property: %s", maxExpandDepth, path))
		}
		inner, data := strings.CutPrefix(path, "data.")
		if list && !data {
			p.fail(invalid("expand", "This property cannot be expanded (%s). You may want to try expanding 'data.%s' instead.", path, path))
		}
		if list {
			path = inner
		}
		for field := range strings.SplitSeq(path, ".") {
			if !expandable[field] {
				p.fail(invalid("expand", "This property cannot be expanded (%s).", field))
			}
		}
		paths = append(paths, path)
	}
	return paths
}

// view renders an object with ids replaced by the objects that they name. What is
// null, or not known here, stays as it is.
func (s *Server) view(p *place, o object, paths []string) map[string]any {
	shown := o.show(s.fixtures)
	for _, path := range paths {
		in := shown
		for field := range strings.SplitSeq(path, ".") {
			if id, isText := in[field].(string); isText {
				if found := p.find(id); found != nil {
					in[field] = found.show(s.fixtures)
				}
			}
			next, whole := in[field].(map[string]any)
			if !whole {
				break
			}
			in = next
		}
	}
	return shown
}

// views renders the objects of a page.
func (s *Server) views(p *place, rows []*row, paths []string) []map[string]any {
	shown := make([]map[string]any, len(rows))
	for i, r := range rows {
		shown[i] = s.view(p, r.object, paths)
	}
	return shown
}
