package reports

import (
	"encoding/csv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What others wrote into a reference must not run on the machine of who opens the file.
func TestCellsAreNoFormulas(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	c, err := NewCSV(&out, "text", "number")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{`=HYPERLINK("x")`, "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "", "a=1", `he said "x", twice`, "'", "order:1"} {
		if err := c.Row(s, int64(-1250)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(out.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, row := range rows[1:] {
		if row[1] != "-1250" {
			t.Errorf("the number became %q", row[1])
		}
		texts = append(texts, row[0])
	}
	want := []string{`'=HYPERLINK("x")`, "'+1", "'-1", "'@SUM(A1)", "' =1", "' =1", "' =1", "", "a=1", `he said "x", twice`, "'", "order:1"}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
}
