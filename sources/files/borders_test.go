package files_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

// TestWhatFallsOnABorderIsReadAsElsewhere puts everything that a reader has to notice across
// the borders of what it looks at together: of a block, of the head, of the buffer, and of the
// buffer when it has moved. The rows are those that were written, on the lines on which they
// were.
func TestWhatFallsOnABorderIsReadAsElsewhere(t *testing.T) {
	t.Parallel()
	settings := german
	settings.Columns.Reference = "Text"
	format, err := files.FormatOf("giro", settings)
	if err != nil {
		t.Fatal(err)
	}
	const row = "edge;01.03.2026;1,00;"
	for name, edge := range map[string]struct {
		text, reference string
		blank, lines    int // before the row; in all
	}{
		"LF":                   {row + "op\n", "op", 0, 1},
		"CRLF":                 {row + "op\r\n", "op", 0, 1},
		"CR":                   {row + "op\r", "op", 0, 1},
		"a character of four":  {row + "\U0001F600é\n", "\U0001F600é", 0, 1},
		"quotes":               {row + "\"op\"\r\n", "op", 0, 1},
		"a quote within":       {row + "\"a\"\"b\"\"\"\n", `a"b"`, 0, 1},
		"line breaks within":   {row + "\"a\r\nb\nc\rd\"\r\n", "a\r\nb\nc\rd", 0, 4},
		"a separator within":   {row + "\"a;b\"\n", "a;b", 0, 1},
		"a blank line":         {"\n" + row + "op\n", "op", 1, 2},
		"a blank line of CRLF": {"\r\n" + row + "op\r\n", "op", 1, 2},
		"a line of nothing":    {";;;\n" + row + "\"\"\n", "", 1, 2},
		"spaces around":        {row + " op \n", "op", 0, 1},
	} {
		for _, border := range []int{16 << 10, 64 << 10, 256 << 10} {
			for over := range min(len(edge.text), 35) + 1 {
				head := filled("id;Tag;Amount;Text\n", border-over)
				before := strings.Count(head, "\n")
				text := head + edge.text + "last;01.03.2026;2,00;op_last\n"
				want := []string{fmt.Sprintf("%d edge 100 %q", before+edge.blank+1, edge.reference), fmt.Sprintf("%d last 200 %q", before+edge.lines+1, "op_last")}
				for _, wanted := range []files.Wanted{nil, func(line int) int { return max(line, before+1) }} {
					r := files.Open(format, strings.NewReader(text), "x")
					r.Only(wanted)
					var got []string
					rows := 0
					for row := (files.Row{}); r.Next(&row); rows++ {
						if row.Line > before {
							got = append(got, fmt.Sprintf("%d %s %d %q", row.Line, row.Effect.ID, row.Effect.Money.Minor, row.Effect.Reference))
						}
					}
					if r.Err() != nil || !slices.Equal(got, want) || wanted == nil && rows != before+1 {
						t.Fatalf("%s, %d bytes before %d: %v, %d rows, error %v; want %v", name, over, border, got, rows, r.Err(), want)
					}
				}
			}
		}
	}
}

// filled gives a table of rows of which the last ends at a place.
func filled(header string, size int) string {
	var b strings.Builder
	b.WriteString(header)
	for i := 0; b.Len() < size; i++ {
		row := fmt.Sprintf("f%d;01.03.2026;3,00;", i)
		long := i % 70
		if rest := size - b.Len(); rest < 400 {
			long = rest - len(row) - 1
		}
		b.WriteString(row + strings.Repeat("x", long) + "\n")
	}
	return b.String()
}
