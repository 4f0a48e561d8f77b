package sqldb

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// Ask answers a batch: see the package comment for its plan. A server without a free
// connection ends the batch at once, and so do three requests in a row that bring no answer.
// What is then left is told by one blind look a group.
func (s *Source) Ask(ctx context.Context, batch []sources.Question, now func() time.Time) (sources.Answer, error) {
	a := s.asking(now)
	defer a.close(ctx)
	groups, foreign := sources.Partition(batch, s.sheet)
	for _, g := range foreign {
		a.Refuse(g, s.sheet, now())
	}
	for _, g := range groups {
		if err := a.group(ctx, g); err != nil {
			return sources.Answer{}, fmt.Errorf("%s: ask: %w", s.name, err)
		}
	}
	return a.Answer()
}

// lookup is one way to ask for many questions at once: a column, and what of a question
// stands in it.
type lookup struct {
	name   string
	method recon.Method
	column string
	wants  func(q sources.Question) []string
	// about names in a look what was asked.
	about func(l *recon.Look, q sources.Question)
}

// lookups gives the ways, the surest first. A mark that was not sent is not asked for.
func (k *kind) lookups() []lookup {
	sent := func(q sources.Question, m recon.Mark, values ...string) []string {
		if slices.Contains(q.Marks, m) {
			return values
		}
		return nil
	}
	all := []lookup{
		{"by_id", recon.ByID, k.Columns.ID, func(q sources.Question) []string { return []string{q.EffectID} },
			func(l *recon.Look, q sources.Question) { l.EffectID = q.EffectID }},
		{"by_reference", recon.ByReference, k.Columns.Reference, func(q sources.Question) []string { return sent(q, recon.MarkReference, string(q.Operation), q.Group) },
			func(l *recon.Look, q sources.Question) { l.Reference = string(q.Operation) }},
		{"by_key", recon.ByKey, k.Columns.Key, func(q sources.Question) []string { return sent(q, recon.MarkKey, q.Key) },
			func(l *recon.Look, q sources.Question) { l.Key = q.Key }},
		{"by_parent", recon.ByList, k.Columns.Parent, func(q sources.Question) []string { return []string{q.Parent} },
			func(l *recon.Look, q sources.Question) { l.Parent = q.Parent }},
	}
	return slices.DeleteFunc(all, func(l lookup) bool { return l.column == "" })
}

// group asks all that one account, mode and kind is asked: each way for those that the ways
// before it did not answer, then the list of the window for those that nothing could be asked
// for.
func (a *asking) group(ctx context.Context, g sources.Group) error {
	k := a.kinds[g.Kind]
	open, bare := g.Questions, g.Questions
	for _, l := range k.lookups() {
		asked, answered, err := a.each(ctx, g.Only(open), l)
		if err != nil {
			return err
		}
		open = slices.DeleteFunc(slices.Clone(open), func(q sources.Question) bool { return answered[q.Operation] })
		bare = slices.DeleteFunc(slices.Clone(bare), func(q sources.Question) bool { return asked[q.Operation] })
	}
	if len(bare) == 0 {
		return nil
	}
	return a.window(ctx, g.Only(bare))
}

// each asks one way for all questions of a group that it can be asked for. asked are those
// that have a look by it; answered are those for which nothing else need be asked: found,
// blind, or silent by a way whose silence counts.
func (a *asking) each(ctx context.Context, g sources.Group, l lookup) (asked, answered map[recon.OperationID]bool, err error) {
	asked, answered = map[recon.OperationID]bool{}, map[recon.OperationID]bool{}
	var with []sources.Question
	for _, q := range g.Questions {
		if len(given(l.wants(q))) > 0 {
			with = append(with, q)
		}
	}
	for part := range slices.Chunk(with, maxValues) {
		if err := a.part(ctx, g.Only(part), l, func(q sources.Question, done bool) {
			asked[q.Operation], answered[q.Operation] = true, done
		}); err != nil {
			return nil, nil, err
		}
	}
	return asked, answered, nil
}

// given leaves out what is empty.
func given(values []string) []string {
	return slices.DeleteFunc(values, func(s string) bool { return s == "" })
}

// part makes one request for many questions, and a look for each.
func (a *asking) part(ctx context.Context, g sources.Group, l lookup, told func(q sources.Question, done bool)) error {
	k, at := a.kinds[g.Kind], a.now().UTC()
	f := finding{list: g.List, lookup: l}
	made, fault, err := a.do(ctx, request{name: "SELECT " + g.Kind + " " + l.name, behind: k.lagOf(), run: func(ctx context.Context, t tx) error {
		return a.find(ctx, t, &f, g.Questions)
	}})
	if err != nil {
		return err
	}
	if made {
		a.Spare++ // of the first look that follows
	}
	if fault != nil {
		a.Blind(g, at, fault)
		for _, q := range g.Questions {
			told(q, true)
		}
		return nil
	}
	for _, s := range f.seen {
		a.Seen[s.Effect.Identity()] = s
	}
	once := map[string]bool{}
	for _, q := range g.Questions {
		wants, holds := f.wanted(l.wants(q))
		if !holds {
			continue // no sender can have written it there: another way must answer
		}
		look, found, trail := a.Look(g.List, l.method, at), []recon.EffectIdentity(nil), sources.Trail{}
		l.about(&look, q)
		for _, s := range f.seen {
			if slices.Contains(wants, f.fold(*f.field(s))) {
				found = append(found, s.Effect.Identity())
				trail.Add("", s.Raw)
			}
		}
		trail.Calls = 0 // the request is one for all looks
		if key := strings.Join(wants, "\x00"); !once[key] {
			once[key] = true
			a.Conclude(look, trail, found, nil)
		}
		told(q, len(found) > 0 || l.method != recon.ByID && k.Consistency == string(recon.Strong))
	}
	return nil
}

// finding is one request that looks for values of a column.
type finding struct {
	list     sources.List
	lookup   lookup
	relation *relation
	seen     []*sources.Sighting
}

// field is where an effect shows what was looked for.
func (f *finding) field(s *sources.Sighting) *string {
	switch f.lookup.name {
	case "by_id":
		return &s.Effect.ID
	case "by_reference":
		return &s.Effect.Reference
	case "by_key":
		return &s.Effect.Key
	}
	return &s.Effect.Parent
}

// fold makes equal what differs in a reference by outer space and case alone: such a one is
// found, and matchers say what it is worth. All else must be what was asked for.
func (f *finding) fold(s string) string {
	if f.lookup.name == "by_reference" {
		return strings.ToLower(strings.TrimSpace(s))
	}
	return s
}

// wanted gives values as they are compared with what was found; false when the column can
// hold none of them.
func (f *finding) wanted(values []string) (list []string, holds bool) {
	for _, v := range given(values) {
		if c, ok := f.relation.canonical(f.lookup.column, v); ok {
			list = append(list, f.fold(c))
		}
	}
	return list, len(list) > 0
}

// spellings gives the forms of a value that are looked for. A sender, or a person, may have
// written a reference with a space around it or in another case; a look that missed those
// would take them for not there.
func (f *finding) spellings(value string) []string {
	c, ok := f.relation.canonical(f.lookup.column, value)
	if !ok {
		return nil
	}
	if cast := f.relation.cast(f.lookup.column); f.lookup.name != "by_reference" || cast != "text" && cast != "bpchar" {
		return []string{c}
	}
	var list []string
	trimmed := strings.TrimSpace(c)
	for _, word := range []string{trimmed, strings.ToLower(trimmed), strings.ToUpper(trimmed)} {
		list = append(list, word, " "+word, word+" ", " "+word+" ", word+"\n", word+"\r\n", "\t"+word, word+"\t")
	}
	list = append(list, c)
	slices.Sort(list)
	return slices.Compact(list)
}

// find reads the rows that hold what the questions look for. A filter that brings anything
// else is not obeyed, as under a collation that takes different texts for equal.
func (a *asking) find(ctx context.Context, t tx, f *finding, questions []sources.Question) (err error) {
	k := a.kinds[f.list.Kind]
	if f.relation, err = a.table(ctx, t, k); err != nil {
		return err
	}
	var values, wants []string
	for _, q := range questions {
		for _, v := range given(f.lookup.wants(q)) {
			values = append(values, f.spellings(v)...)
		}
		wanted, _ := f.wanted(f.lookup.wants(q))
		wants = append(wants, wanted...)
	}
	if len(values) == 0 {
		return nil
	}
	var q query
	where := append(k.among(&q, f.relation, f.list), q.anyOf(f.relation, f.lookup.column, values))
	rows, err := a.rows(ctx, t, statement{k: k, relation: f.relation, where: where, args: q.args})
	if err != nil {
		return err
	}
	if f.seen, err = a.sightings(rows, f.list); err != nil {
		return err
	}
	for _, s := range f.seen {
		if !slices.Contains(wants, f.fold(*f.field(s))) {
			return schemaFault("columns.%s: rows come that hold something else than what was looked for; does the column's collation ignore differences?", f.lookup.name)
		}
	}
	return nil
}

// table gives the kind's table as the catalogue shows it, once for an Ask.
func (a *asking) table(ctx context.Context, t tx, k *kind) (*relation, error) {
	if r := a.tables[k.Kind]; r != nil {
		return r, nil
	}
	want := tableOf(k.Schema, k.Table, k.roles)
	for name := range k.Only {
		want.only = append(want.only, name)
	}
	slices.Sort(want.only)
	r, err := describe(ctx, t, want)
	if err == nil {
		a.tables[k.Kind] = r
		err = a.note(ctx, t, r, k.roles)
	}
	return r, err
}

// statement is a question in SQL whose names are the catalogue's and whose values are
// parameters.
type statement struct {
	k        *kind
	relation *relation
	where    []string
	args     []any
	order    string // what follows the conditions
}

// rows reads the rows of a statement, at most as many as one request may bring.
func (a *asking) rows(ctx context.Context, t tx, s statement) ([]*record, error) {
	order := s.order
	if order == "" {
		order = fmt.Sprintf(" LIMIT %d", maxRows+1)
	}
	text := s.relation.reads(s.k.roles)
	if len(s.where) > 0 {
		text += " WHERE " + conditions(s.where)
	}
	rows, err := t.Query(ctx, text+order, s.args...)
	if err != nil {
		return nil, err
	}
	return records(rows, s.relation, s.k.roles)
}

func conditions(where []string) string { return strings.Join(where, " AND ") }

// among gives the conditions under which rows are of a kind, account and mode. One that does
// not say whose it is comes too, and makes the look blind: it could be ours.
func (k *kind) among(q *query, r *relation, l sources.List) []string {
	var where []string
	if k.Columns.Account != "" {
		c := r.col(k.Columns.Account)
		where = append(where, fmt.Sprintf("(%s::text = %s::text OR %s IS NULL)", c, q.arg(l.Account), c))
	}
	if k.Columns.Mode != "" {
		others := []string{} // never nil, which would be NULL
		for word, mode := range k.Modes {
			if mode != l.Mode {
				others = append(others, word)
			}
		}
		// A word that nobody has explained is not taken for another mode's.
		c := r.col(k.Columns.Mode)
		where = append(where, fmt.Sprintf("(%s IS NULL OR %s::text <> ALL (%s::text[]))", c, c, q.arg(others)))
	}
	only := make([]string, 0, len(k.Only))
	for name := range k.Only {
		only = append(only, name)
	}
	slices.Sort(only)
	for _, name := range only {
		where = append(where, fmt.Sprintf("%s::text = %s::text", r.col(name), q.arg(k.Only[name])))
	}
	return where
}
