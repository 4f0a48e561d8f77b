package pgtest

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRowsShowWhatDiffersAndHideWhatMay(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	read := func(look string, found bool, at time.Time, calls int, except ...Exception) []string {
		db := Pool(t)
		kept := look
		if !found {
			kept = "01961234-0000-7000-8000-00000000ffff"
		}
		if _, err := db.Exec(t.Context(), `INSERT INTO reconciler.looks (tenant, look_id, source, method, outcome, at, complete, calls)
			VALUES ('default', $1, 's', 'list', 'found', $2, true, $3)`, look, at, calls); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(t.Context(), `INSERT INTO reconciler.coverage (tenant, look_id, source, kind, account, mode, window_from, window_to, at)
			VALUES ('default', $1, 's', 'refund', 'a', 'live', $2::timestamptz, $2::timestamptz + interval '1 minute', $3)`, kept, began.Add(-time.Hour), at); err != nil {
			t.Fatal(err)
		}
		return Rows{DB: db, Began: began, Now: began.Add(time.Hour), Except: except}.Read(t)
	}
	const one, other = "01961234-0000-7000-8000-000000000001", "01961234-0000-7000-8000-000000000002"
	calls := Exception{Table: "looks", Columns: []string{"calls"}, Why: "counts"}
	kind := Exception{Table: "coverage", Text: regexp.MustCompile(`"kind": "refund", `), Why: "a text"}
	whole := read(one, true, began, 1)
	for name, tt := range map[string]struct {
		rows []string
		want string // what is strange; empty: nothing
	}{
		"another id and another time":   {read(other, true, began.Add(time.Minute), 1), ""},
		"another number":                {read(one, true, began, 2), "looks {"},
		"a time that is ahead":          {read(one, true, began.Add(2*time.Hour), 1), "<ahead>"},
		"a time before":                 {read(one, true, began.Add(-time.Minute), 1), "08:59:00"},
		"a reference to no row":         {read(one, false, began, 1), "<id of no row>"},
		"a text that is not compared":   {read(one, true, began, 1, kind), "coverage {"},
		"a number that is not compared": {read(one, true, began, 2, calls), "looks {"},
	} {
		got := strange(whole, tt.rows)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q is no word of\n%s", name, tt.want, got)
		}
	}
	if diff := strange(read(one, true, began, 1, calls, kind), read(other, true, began, 2, calls, kind)); diff != "" {
		t.Errorf("with exceptions on both sides:\n%s", diff)
	}
}

// strange are the lines of one that are not of the other.
func strange(whole, rows []string) string {
	return strings.Join(slices.DeleteFunc(rows, func(line string) bool { return slices.Contains(whole, line) }), "\n")
}
