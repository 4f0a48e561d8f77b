package pgtest

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Rows is how the content of a ledger is compared: every row of every table, whole, but
// for what Except names.
type Rows struct {
	DB *pgxpool.Pool
	// Began is when the work that breaks off began. Times before it are compared as they
	// are; of later ones it counts only whether they have come, since work that is done again
	// is done later, and what is planned is planned with chance.
	Began  time.Time
	Now    time.Time
	Except []Exception
}

// Exception is a difference between whole work and work done again that is none.
type Exception struct {
	Table   string
	Columns []string       // which are not compared
	Text    *regexp.Regexp // what is not compared of each row's JSON; nil: nothing
	Rows    string         // a condition in SQL: these rows are not compared
	Once    bool           // rows that are alike count once
	Why     string
}

// always are what no two runs have in common.
var always = []Exception{
	{Table: "journal", Columns: []string{"tx"}, Why: "numbers of the server's transactions"},
	{Table: "operations", Columns: []string{"opened_tx"}, Why: "numbers of the server's transactions"},
	{Table: "blobs", Columns: []string{"salt"}, Why: "chance alone"},
	{Table: "operations", Columns: []string{"retry_at"}, Why: "planned with chance when the world was made"},
	{Table: "simulated_time", Rows: "true", Why: "the test's clock"},
	{Table: "schema_lock", Rows: "true", Why: "of whoever made the database"},
	{Table: "schema_version", Rows: "true", Why: "of whoever made the database"},
}

// homes are the columns that generated ids are made for.
var homes = map[string][]string{
	"blobs": {"id"}, "effect_changes": {"change_id"}, "findings": {"finding_id"}, "incidents": {"incident_id"}, "looks": {"look_id"},
	"notices": {"notice_id"}, "operations": {"operation_id", "key"}, "runs": {"run_id", "token"},
}

// Read gives the rows as text, sorted, and after each table how many rows it has. A generated
// id is shown as the table that has a row of it, so that a reference to a row that is not
// there is seen.
func (r Rows) Read(t *testing.T) []string {
	t.Helper()
	names := map[string]string{}
	for table, columns := range homes {
		for _, c := range columns {
			for _, id := range r.texts(t, fmt.Sprintf("SELECT %s FROM reconciler.%s WHERE %[1]s IS NOT NULL", c, table)) {
				names[id] = "<" + table + ">"
			}
		}
	}
	var all []string
	for _, table := range r.texts(t, `SELECT tablename::text FROM pg_tables WHERE schemaname = 'reconciler' ORDER BY 1`) {
		sql, once := r.query(table)
		var rows []string
		for _, row := range r.texts(t, sql) {
			rows = append(rows, table+" "+r.without(table, r.plain(row, names)))
		}
		slices.Sort(rows)
		if once {
			rows = slices.Compact(rows)
		} else {
			rows = append(rows, fmt.Sprintf("%s has %d rows", table, len(rows)))
		}
		all = append(all, rows...)
	}
	return all
}

// query reads a table's rows but for the exceptions.
func (r Rows) query(table string) (sql string, once bool) {
	columns, without := []string{}, []string{"true"}
	for _, e := range slices.Concat(always, r.Except) {
		if e.Table != table {
			continue
		}
		for _, c := range e.Columns {
			columns = append(columns, "'"+c+"'")
		}
		if e.Rows != "" {
			without = append(without, "("+e.Rows+") IS NOT TRUE")
		}
		once = once || e.Once
	}
	return fmt.Sprintf(`SELECT (to_jsonb(x) - ARRAY[%s]::text[])::text FROM reconciler.%s x WHERE %s`,
		strings.Join(columns, ","), table, strings.Join(without, " AND ")), once
}

// without cuts out of a row what the exceptions name.
func (r Rows) without(table, row string) string {
	for _, e := range r.Except {
		if e.Table == table && e.Text != nil {
			row = e.Text.ReplaceAllString(row, "")
		}
	}
	return row
}

func (r Rows) texts(t *testing.T, sql string) []string {
	t.Helper()
	rows, err := r.DB.Query(t.Context(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return list
}

var (
	anID    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	aHash   = regexp.MustCompile(`(\\\\x|\b)[0-9a-f]{64}\b`) // of what holds ids and times
	bytesOf = regexp.MustCompile(`\\\\x([0-9a-f]{2})+`)
	aSpan   = regexp.MustCompile(`"duration_ms\\?": ?\d+`)
	aToken  = regexp.MustCompile(`"[0-9a-f]{32}"`)
	aMoment = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
)

// plain replaces what chance and time decide.
func (r Rows) plain(row string, names map[string]string) string {
	row = aHash.ReplaceAllString(row, "<hash>")
	row = bytesOf.ReplaceAllStringFunc(row, func(text string) string {
		plain, _ := hex.DecodeString(text[3:]) // the pattern takes pairs of digits only
		return string(plain)
	})
	row = anID.ReplaceAllStringFunc(row, func(id string) string {
		if name, ok := names[id]; ok {
			return name
		}
		return "<id of no row>"
	})
	row = aSpan.ReplaceAllString(row, `"duration_ms"`)
	row = aToken.ReplaceAllString(row, `"<token>"`)
	return aMoment.ReplaceAllStringFunc(row, func(text string) string {
		at, err := time.Parse(time.RFC3339Nano, text)
		switch {
		case err != nil || at.Before(r.Began):
			return text
		case at.After(r.Now):
			return "<ahead>"
		}
		return "<done>"
	})
}
