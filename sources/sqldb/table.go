package sqldb

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// table is what the settings name.
type table struct {
	schema, name string
	roles        []role
	only         []string // columns that rows are chosen by
}

func tableOf(schema, name string, roles []role) table {
	return table{schema: schema, name: name, roles: roles}
}

// relation is a table as the catalogue shows it. Its names alone may stand in a statement.
type relation struct {
	schema, name string
	view         bool // or anything else that has no indexes of its own
	writable     bool // by our role
	columns      map[string]column
}

// column is one column of it.
type column struct {
	name    string
	kind    string // of its type, as format_type writes it; a domain's base type
	notNull bool
	indexed bool // it is the first of an index over all rows
}

// describeSQL gives a table's columns, by names that are parameters.
const describeSQL = `
SELECT n.nspname::text, c.relname::text, c.relkind NOT IN ('r', 'p', 'm'),
	pg_catalog.has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE'), a.attname::text,
	pg_catalog.format_type(CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END, NULL), a.attnotnull,
	EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL AND i.indkey[0] = a.attnum)
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE n.nspname = $1::text AND c.relname = $2::text AND c.relkind IN ('r', 'p', 'v', 'm', 'f')`

// describe looks a table up, and holds its columns against what they must be able to hold.
func describe(ctx context.Context, t tx, want table) (*relation, error) {
	rows, err := t.Query(ctx, describeSQL, want.schema, want.name)
	if err != nil {
		return nil, err
	}
	r := &relation{columns: map[string]column{}}
	var c column
	_, err = pgx.ForEachRow(rows, []any{&r.schema, &r.name, &r.view, &r.writable, &c.name, &c.kind, &c.notNull, &c.indexed}, func() error {
		r.columns[c.name] = c
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(r.columns) == 0 {
		return nil, schemaFault("there is no table or view %q in schema %q; write it as the catalogue spells it", want.name, want.schema)
	}
	for _, role := range want.roles {
		if err := r.holds(role); err != nil {
			return nil, err
		}
	}
	for _, name := range want.only {
		if _, there := r.columns[name]; !there {
			return nil, schemaFault("only: %s has no column %q", r.spelt(), name)
		}
	}
	return r, nil
}

// holds says why a column cannot hold what it is said to, nil where it can.
func (r *relation) holds(role role) error {
	c, there := r.columns[role.column]
	if !there {
		return schemaFault("columns.%s: %s has no column %q", role.name, r.spelt(), role.column)
	}
	wants := map[hold][]string{
		instant: {"timestamp with time zone", "timestamp without time zone"},
		amount:  {"numeric", "smallint", "integer", "bigint", "text", "character varying"},
		flag:    {"boolean", "timestamp with time zone", "timestamp without time zone", "date"},
		sought:  {"text", "character varying", "character", "uuid", "smallint", "integer", "bigint", "numeric"},
	}[role.type_]
	if len(wants) > 0 && !slices.Contains(wants, c.kind) {
		return schemaFault("columns.%s: column %q of %s has type %s, and needs %s; a view may show it so", role.name, c.name, r.spelt(), c.kind, strings.Join(wants, ", "))
	}
	return nil
}

// spelt is the relation's name for people.
func (r *relation) spelt() string { return r.schema + "." + r.name }

// from is the relation in a statement.
func (r *relation) from() string { return pgx.Identifier{r.schema, r.name}.Sanitize() + " t" }

// col is a column in a statement. The name is the catalogue's: it came back from there.
func (r *relation) col(name string) string {
	return "t." + pgx.Identifier{r.columns[name].name}.Sanitize()
}

// shown is a column as it is read: times as instants, all else as text.
func (r *relation) shown(name string) string {
	switch r.columns[name].kind {
	case "timestamp with time zone":
		return r.col(name)
	case "timestamp without time zone":
		return r.col(name) + " AT TIME ZONE 'UTC'"
	}
	return r.col(name) + "::text"
}

// reads begins the statement that reads what some roles show.
func (r *relation) reads(roles []role) string {
	shown := make([]string, len(roles))
	for i, role := range roles {
		shown[i] = r.shown(role.column)
	}
	return "SELECT " + strings.Join(shown, ", ") + " FROM " + r.from()
}

// readable reads no row, which needs the same rights as to read all of them: the catalogue
// shows also what our role may not read.
func (r *relation) readable(ctx context.Context, t tx, roles []role) error {
	rows, err := t.Query(ctx, r.reads(roles)+" LIMIT 0")
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// isTime reports whether a column is read as an instant.
func (r *relation) isTime(name string) bool {
	return strings.HasPrefix(r.columns[name].kind, "timestamp ")
}

// bound is a parameter that a creation time is compared with: the column stands alone, so
// that its index serves.
func (r *relation) bound(name, parameter string) string {
	if r.columns[name].kind == "timestamp without time zone" {
		return "(" + parameter + "::timestamptz AT TIME ZONE 'UTC')"
	}
	return parameter + "::timestamptz"
}

// cast is the type by which values of a column are compared.
func (r *relation) cast(name string) string {
	switch kind := r.columns[name].kind; kind {
	case "uuid", "numeric":
		return kind
	case "character":
		return "bpchar"
	case "smallint", "integer", "bigint":
		return "bigint"
	}
	return "text"
}

// canonical gives a value as the column would show it, false where it cannot hold it: then
// no sender can have written it there.
func (r *relation) canonical(name, value string) (string, bool) {
	if value == "" || strings.ContainsRune(value, 0) {
		return "", false
	}
	switch r.cast(name) {
	case "uuid":
		id, err := uuid.Parse(value)
		return id.String(), err == nil && len(value) == 36
	case "bigint", "numeric":
		n, err := strconv.ParseInt(value, 10, 64)
		return strconv.FormatInt(n, 10), err == nil
	case "bpchar":
		return strings.TrimRight(value, " "), true
	}
	return value, true
}

// query is a statement that is being written. Values become parameters.
type query struct {
	args []any
}

// arg takes a value and gives its place in the statement.
func (q *query) arg(v any) string {
	q.args = append(q.args, v)
	return "$" + strconv.Itoa(len(q.args))
}

// anyOf is the condition that a column holds one of some values.
func (q *query) anyOf(r *relation, name string, values []string) string {
	return fmt.Sprintf("%s = ANY (%s::text[]::%s[])", r.col(name), q.arg(values), r.cast(name))
}
