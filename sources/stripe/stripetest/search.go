package stripetest

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	maxSearchQuery   = 5000
	maxSearchClauses = 10
)

// clause is one condition of a search query.
type clause struct {
	negated bool
	field   string // status, currency, customer; or metadata
	key     string // of metadata
	null    bool   // is not set, as in -metadata["k"]:null for "is set"
	want    string
}

var clausePattern = regexp.MustCompile(`^\s*(-?)(?:metadata\[(?:"([^"]+)"|'([^']+)')\]|(status|currency|customer)):(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(null))`)

var joinPattern = regexp.MustCompile(`(?i)^\s+(and|or)\s+|^\s+`)

// search serves a search: metadata, status, currency and customer by exact match that
// ignores case. It has its own lag; the objects it returns are current.
func (s *Server) search(l listing) reader {
	return func(x *exchange) work {
		limit := x.params.limit()
		expand := x.params.expand(true)
		after := x.params.text("page")
		clauses, either := x.params.searchQuery()
		return func(m moment) answer {
			q := query{limit: limit, at: m.at, lag: s.lag.Search, after: after}
			hits := &shelf{byID: x.place.shelf(l.kind).byID, all: &ordered{}}
			for _, r := range x.place.shelf(l.kind).all.sorted() {
				if found(r.object, clauses, either) {
					hits.all.add(r)
				}
			}
			rows, more, e := s.pageOf(hits, l.kind, q)
			if e != nil {
				return invalid("page", "Invalid page: %s", after).answer()
			}
			whole := map[string]any{"object": "search_result", "url": l.url, "has_more": more, "data": s.views(x.place, rows, expand), "next_page": nil}
			if more {
				s.number(x.call, rows)
				whole["next_page"] = rows[len(rows)-1].object.id()
			}
			return ok(whole)
		}
	}
}

// searchQuery reads clauses joined by AND (or blanks) or by OR, never both.
func (p *params) searchQuery() (clauses []clause, either bool) {
	text := p.required("query")
	if len(text) > maxSearchQuery {
		p.fail(invalid("query", "The query can have up to %d characters.", maxSearchQuery))
		return nil, false
	}
	joins := map[string]bool{}
	for rest := text; rest != ""; {
		m := clausePattern.FindStringSubmatch(rest)
		if m == nil {
			p.fail(invalid("query", "We were unable to parse your search query at %s.", strconv.Quote(rest)))
			return nil, false
		}
		clauses = append(clauses, newClause(m))
		rest = strings.TrimRight(rest[len(m[0]):], " ")
		if rest == "" {
			break
		}
		join := joinPattern.FindStringSubmatch(rest)
		if join == nil {
			p.fail(invalid("query", "We were unable to parse your search query at %s.", strconv.Quote(rest)))
			return nil, false
		}
		joins[strings.ToLower(cmp.Or(join[1], "and"))] = true
		rest = rest[len(join[0]):]
	}
	if len(joins) > 1 || len(clauses) > maxSearchClauses {
		p.fail(invalid("query", "A query has up to %d clauses, joined by either AND or OR (found %s).", maxSearchClauses,
			strings.Join(slices.Sorted(maps.Keys(joins)), " and ")))
	}
	return clauses, joins["or"]
}

func newClause(m []string) clause {
	c := clause{negated: m[1] == "-", field: m[4], key: m[2] + m[3], want: unescape(m[5] + m[6]), null: m[7] != ""}
	if c.field == "" {
		c.field = "metadata"
	}
	return c
}

func unescape(text string) string {
	return strings.NewReplacer(`\"`, `"`, `\'`, `'`, `\\`, `\`).Replace(text)
}

func found(o object, clauses []clause, either bool) bool {
	for _, c := range clauses {
		if c.holds(o) == either {
			return either
		}
	}
	return !either
}

func (c clause) holds(o object) bool {
	value, there := o.ref(c.field), true
	if c.field == "metadata" {
		value, there = o.tags()[c.key]
	}
	hit := there && strings.EqualFold(value, c.want)
	if c.null {
		hit = !there || value == ""
	}
	return hit != c.negated
}
