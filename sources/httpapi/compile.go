package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// compiler makes a kind of its settings and collects what is wrong with them.
type compiler struct {
	set    EffectSettings
	k      *kind
	fault  faulter
	paging *paging
}

func compile(e EffectSettings, marker string) (*kind, []recon.Fault) {
	var faults []recon.Fault
	c := &compiler{set: e, k: &kind{name: e.Kind, summary: e.Summary, sparse: e.Sparse, words: e.words()}}
	c.fault = func(path, format string, args ...any) {
		faults = append(faults, recon.Fault{Path: path, Problem: fmt.Sprintf(format, args...)})
	}
	if e.Kind == "" {
		c.fault("kind", "is missing; write what your actions name as effect")
	}
	c.fields(marker)
	for _, f := range c.k.words.Faults("fields") {
		c.fault(f.Path, "%s", f.Problem)
	}
	c.log()
	c.dates()
	c.pages()
	c.lookups(marker)
	return c.k, faults
}

// path reads a path that may be absent. {marker} stands for the marker's name.
func (c *compiler) path(at, s, marker string) Path {
	if s == "" {
		return nil
	}
	p, err := ParsePath(strings.ReplaceAll(s, "{marker}", marker))
	if err != nil {
		c.fault(at, "%v", err)
	}
	return p
}

func (c *compiler) fields(marker string) {
	set, f := c.set.Fields, &c.k.fields
	for _, field := range []struct {
		name, path string
		into       *Path
	}{
		{"id", set.ID, &f.id}, {"created_at", set.CreatedAt, &f.createdAt}, {"updated_at", set.UpdatedAt, &f.updatedAt},
		{"status", set.Status, &f.status}, {"amount", set.Amount, &f.amount}, {"currency", set.Currency, &f.currency},
		{"parent", set.Parent, &f.parent}, {"reference", set.Reference, &f.reference}, {"key", set.Key, &f.key},
		{"natural_reference", set.Natural, &f.natural}, {"target", set.Target, &f.target}, {"account", set.Account, &f.account},
		{"mode", set.Mode, &f.mode}, {"failure_reason", set.FailureReason, &f.failureReason}, {"created_by", set.CreatedBy, &f.createdBy},
	} {
		*field.into = c.path("fields."+field.name, field.path, marker)
	}
	for i, p := range set.TargetHash {
		f.targetHash = append(f.targetHash, c.path(fmt.Sprintf("fields.target_hash[%d]", i), p, marker))
	}
	if set.ID == "" {
		c.fault("fields.id", "is missing; write where an object holds its id")
	}
	if set.CreatedAt == "" {
		c.fault("fields.created_at", "is missing; write where an object holds the time of its creation")
	}
	if set.Target != "" && len(set.TargetHash) > 0 {
		c.fault("fields.target_hash", "stands beside target; use one of them")
	}
	c.k.only, c.k.required = map[string]pathAndText{}, map[string]Path{}
	for name, text := range c.set.Only {
		c.k.only[name] = pathAndText{c.path("only."+name, name, marker), text}
	}
	for i, name := range c.set.Required {
		c.k.required[name] = c.path(fmt.Sprintf("required[%d]", i), name, marker)
	}
}

func (c *compiler) log() {
	set := c.set.Log
	if set.Items == "" && set.Type == "" && set.At == "" && len(set.Types) == 0 {
		return
	}
	if set.Items == "" || set.Type == "" || set.At == "" || len(set.Types) == 0 {
		c.fault("log", "needs items, type, at and types")
	}
	l := &eventLog{
		items: c.path("log.items", set.Items, ""), kind: c.path("log.type", set.Type, ""), at: c.path("log.at", set.At, ""),
		types: map[string]recon.EffectStatus{},
	}
	for word, status := range set.Types {
		l.types[word] = recon.EffectStatus(status)
		if l.types[word] != recon.Completed && l.types[word] != recon.EffectFailed {
			c.fault("log.types."+word, "%q is neither completed nor failed; an event that says nothing is left out", status)
		}
	}
	c.k.log = l
}

func (c *compiler) dates() {
	d, err := parseDates(c.set.Dates, c.set.Zone)
	if err != nil {
		c.fault("dates", "%v", err)
	}
	c.k.dates = d
}

func (c *compiler) pages() {
	set := c.set.Paging
	fault := c.fault.under("paging")
	c.paging = &paging{
		style: set.Style, param: set.Param, first: 1, sizeParam: set.SizeParam, size: set.Size, mayMiss: set.MayMiss, reach: set.Reach,
		next: c.path("paging.next", set.Next, ""), last: c.path("paging.last", set.Last, ""),
		more: c.path("paging.more", set.More, ""), total: c.path("paging.total", set.Total, ""),
	}
	if set.First != nil {
		c.paging.first = *set.First
	}
	if set.Size == 0 {
		c.paging.size = defaultSize
	}
	if set.Size < 0 || set.Reach < 0 || set.Reach > 0 && set.Reach < c.paging.size {
		fault("size", "and reach must be above 0, and reach not less than size")
	}
	switch set.Style {
	case "":
		c.paging = nil
		if c.set.List.Items != "" || c.set.ByParent.Items != "" {
			fault("style", "is missing; write how lists go on, or none where one reply always shows all")
		}
	case styleNone:
		c.paging = nil
	case stylePage, styleOffset:
		if set.Param == "" {
			fault("param", "is missing; write the parameter that takes the %s", set.Style)
		}
	case styleCursor:
		if set.Param == "" || (set.Next == "") == (set.Last == "") {
			fault("next", "and param are needed: where the reply holds the next cursor (or last: which field of the last object is it), and the parameter that takes it")
		}
		if set.Last != "" && set.More == "" {
			fault("more", "is missing; a last object is there on the last page too")
		}
	case styleURL:
		if set.Next == "" {
			fault("next", "is missing; write where the reply holds the next page's address")
		}
	case styleLink:
	default:
		fault("style", "%q is no style; write none, page, offset, cursor, url or link", set.Style)
	}
}

func (c *compiler) lookups(marker string) {
	if len(c.set.lookups()) == 0 {
		c.fault("by_reference", "is missing, and so is every other look-up; write at least one of by_id, by_reference, by_key, by_parent and list")
	}
	for _, l := range c.set.lookups() {
		e := c.lookup(l, marker)
		switch l.name {
		case "by_id":
			c.k.byID = e
		case "by_reference":
			c.k.byReference = e
		case "by_key":
			c.k.byKey = e
		case "by_parent":
			c.k.byParent = e
		case "list":
			c.k.list = e
		}
	}
	if c.set.Summary && c.k.byID == nil {
		c.fault("by_id", "is missing, and summary needs it")
	}
}

func (c *compiler) lookup(l namedLookup, marker string) *endpoint {
	fault := c.fault.under(l.name)
	e := &endpoint{
		name: l.name, method: l.method, path: l.Path, query: l.Query, strong: l.Consistency == string(recon.Strong),
		items: c.path(l.name+".items", l.Items, marker), object: c.path(l.name+".object", l.Object, marker), newestFirst: l.Order == "newest",
		notFound: notFound{l.NotFound.Status, c.path(l.name+".not_found.path", l.NotFound.Path, marker), l.NotFound.Equals, l.NotFound.Empty},
	}
	if e.items != nil {
		e.paging = c.paging
	}
	if l.Consistency != string(recon.Strong) && l.Consistency != string(recon.Eventual) {
		fault("consistency", "is missing; write strong (after the lag, not found is not there) or eventual (not found proves nothing)")
	}
	if l.name == "list" {
		c.windowed(e, l, fault)
	} else {
		c.question(e, l, fault)
	}
	c.template(l, fault)
	return e
}

// windowed completes a list of a window.
func (c *compiler) windowed(e *endpoint, l namedLookup, fault faulter) {
	if l.Order != "newest" && l.Order != "oldest" {
		fault("order", "is missing; write which objects come first by their creation: newest or oldest")
	}
	if l.Items == "" {
		fault("items", "is missing; write where the reply holds its list")
	}
	if l.NotFound != (NotFoundSettings{}) {
		fault("not_found", "has no place here: a list that was read to its end is what is there")
	}
	if c.set.Fields.Reference == "" && c.set.Fields.Key == "" {
		fault("path", "is of no use: without fields.reference or fields.key no object of a list can be told to be ours")
	}
	e.since, e.until = c.bound(l.Since, fault.under("since")), c.bound(l.Until, fault.under("until"))
	if c.set.Paging.Reach > 0 && e.until == nil {
		fault("until", "is missing; where paging has a reach, the list is begun anew under a time")
	}
}

func (c *compiler) bound(b BoundSettings, fault faulter) *bound {
	if b.Param == "" {
		if b.Format != "" || b.Zone != "" {
			fault("param", "is missing; write the parameter that takes the time")
		}
		return nil
	}
	d, err := parseDates(orElse(b.Format, c.set.Dates), b.Zone)
	if err != nil {
		fault("format", "%v", err)
	}
	return &bound{b.Param, d}
}

// question completes a look-up of one thing.
func (c *compiler) question(e *endpoint, l namedLookup, fault faulter) {
	n := l.NotFound
	if l.Order != "" || l.Since != (BoundSettings{}) || l.Until != (BoundSettings{}) {
		fault("order", "and bounds of time belong to list")
	}
	switch {
	case n.Status == 0 && !n.Empty:
		fault("not_found", "is missing; declare what \"not there\" looks like: a status, such as 404, or empty: true")
	case n.Empty && l.Items == "":
		fault("not_found.empty", "needs items, the list that is then empty")
	case n.Status == 0 && (n.Path != "" || n.Equals != ""), (n.Path == "") != (n.Equals == ""):
		fault("not_found.path", "belongs together with equals and status")
	case n.Status == http.StatusOK && n.Path == "":
		fault("not_found.path", "is missing; with status 200 only a field of the reply can say that nothing is there")
	case n.Status != 0 && n.Status != http.StatusOK && (n.Status < 400 || n.Status > 499 || slices.Contains([]int{401, 403, 408, 429}, n.Status)):
		fault("not_found.status", "%d cannot mean \"not there\"; it says that the provider could not or would not look", n.Status)
	}
	field, path := "", Path(nil)
	switch l.name {
	case "by_id":
		field, path = "id", c.k.fields.id
	case "by_reference":
		field, path = "reference", c.k.fields.reference
	case "by_key":
		field, path = "key", c.k.fields.key
	case "by_parent":
		field, path = "parent", c.k.fields.parent
	}
	if path == nil {
		c.fault("fields."+field, "is missing, and %s needs it: an answer is held against what was asked for", l.name)
	}
	e.matches = path
}

// template checks a look-up's path and query, and that they hold what is asked for.
func (c *compiler) template(l namedLookup, fault faulter) {
	if !strings.HasPrefix(l.Path, "/") || strings.ContainsAny(l.Path, "?#") {
		fault("path", "must begin with / and hold no query; parameters belong under query")
	}
	var held []string
	check := func(key, text string) {
		names, err := checkTemplate(text)
		if err != nil {
			fault(key, "%v", err)
		}
		held = append(held, names...)
	}
	check("path", l.Path)
	for name, value := range l.Query {
		check("query", name)
		check("query."+name, value)
	}
	asked := strings.TrimPrefix(l.name, "by_")
	for _, name := range []string{"id", "reference", "key", "parent"} {
		if has := slices.Contains(held, name); has != (name == asked) {
			if has {
				fault("path", "holds {%s}, which is not known here", name)
			} else {
				fault("path", "and query do not hold {%s}, so that everything would be asked for", name)
			}
		}
	}
}
