package files_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

// TestPlainRowsAreReadAsRowsThatNeedCare holds the quick way through lines without quotes
// against the careful one: a file of which nearly all is plain says the same as the same file
// with every cell in quotes, with the same line numbers, whichever rows are wanted.
func TestPlainRowsAreReadAsRowsThatNeedCare(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	var plain, quoted strings.Builder
	for i := range 3000 {
		cells := []string{fmt.Sprintf("re_%d", i), fmt.Sprintf("%02d.03.2026", 1+i%28), fmt.Sprintf("%d,%02d", i, i%100)}
		if i == 0 {
			cells = []string{"id", "Tag", "Amount"}
		}
		end := "\n"
		switch random.IntN(400) {
		case 0:
			end = "\r\n"
		case 1:
			end = "\n\n"
		case 2:
			cells[0] += "é"
		case 3:
			cells[0] = " " + cells[0] + " "
		}
		plain.WriteString(strings.Join(cells, ";") + end)
		quoted.WriteString(`"` + strings.Join(cells, `";"`) + `"` + end)
	}
	format, err := files.FormatOf("giro", german)
	if err != nil {
		t.Fatal(err)
	}
	read := func(text string, wanted files.Wanted) []string {
		r := files.Open(format, iotest.HalfReader(strings.NewReader(text)), "giro.csv")
		r.Only(wanted)
		var rows []files.Row
		for row := (files.Row{}); r.Next(&row); {
			if wanted == nil || wanted(row.Line) == row.Line {
				rows = append(rows, row)
			}
		}
		if err := r.Err(); err != nil {
			t.Fatal(err)
		}
		return brief(rows)
	}
	all := read(plain.String(), nil)
	if len(all) != 2999 {
		t.Fatal(len(all), "rows")
	}
	same(t, "all rows", read(quoted.String(), nil), all)
	for _, every := range []int{1, 2, 97, 1000, 1 << 30} {
		wanted := func(line int) int { return (line + every - 1) / every * every }
		same(t, fmt.Sprint("each row in ", every), read(quoted.String(), wanted), read(plain.String(), wanted))
	}
}

func TestATableOfOperations(t *testing.T) {
	t.Parallel()
	read := func(text string) (ids []string, o *files.Operations) {
		o = files.OpenOperations(strings.NewReader(text), "ops.csv", nil)
		for op := (recon.Operation{}); o.Next(&op); {
			ids = append(ids, fmt.Sprintf("%d %s %d %s", o.Line(), op.ID, op.Money.Minor, op.State))
		}
		return ids, o
	}
	ids, o := read("\xef\xbb\xbfState;ID;source;action;target;created_at;amount;currency;our note;metadata\r\n" +
		"unknown;op_1;s;refund.create;order:1;2026-03-01T09:00:00Z;4200;eur;\"a\r\nb\";{}\r\n" +
		"failed;\"op;2\";s;refund.create;order:2;2026-03-01T09:00:00Z;;;;\r\n")
	if o.Err() != nil {
		t.Fatal(o.Err())
	}
	same(t, "any order, case and separator", []string{"2 op_1 4200 unknown", "4 op;2 0 failed"}, ids)
	same(t, "notes", []files.Note{{Line: 1, Text: `columns that are no field of an operation are not read: "our note"`}}, o.Notes())
	for text, want := range map[string]string{
		"":                     "ops.csv line 1: the file is empty",
		"id,source\nop_1,s\n":  `ops.csv line 1: the header does not name "action", "target", "state", "created_at", which the format of operations needs; it names "id", "source"`,
		`{"id":"op_1"}` + "\n": "ops.csv line 1: it is JSON Lines, not a table",
		table("op_1,s,a,t,done,2026-03-01T09:00:00Z\n"):                            `ops.csv line 2: field state: "done" is none of pending`,
		table("op_1,s,a,t"):                                                        "ops.csv line 2: the file ends inside it",
		table("op_1,s,,t,failed,2026-03-01T09:00:00Z\n"):                           "ops.csv line 2: field action: it is missing; every row needs it",
		table("op_1,s,a,t,failed,2026-03-01T09:00:00Z,9\n"):                        "ops.csv line 2: it has 7 columns and the header has 6",
		"id,ID,source,action,target,state,created_at\n1,2,s,a,t,failed,2026-03-01": `ops.csv line 1: the header names "id" twice`,
	} {
		_, o := read(text)
		if o.Err() == nil || !strings.Contains(o.Err().Error(), want) {
			t.Errorf("%q: error is %v, want it to say %q", text, o.Err(), want)
		}
	}
}

func table(rows string) string { return "id,source,action,target,state,created_at\n" + rows }
