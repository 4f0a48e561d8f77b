package reports

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// CSV writes rows of a CSV file that may be opened in a spreadsheet.
type CSV struct{ w *csv.Writer }

// NewCSV begins a file with its header.
func NewCSV(w io.Writer, header ...string) (*CSV, error) {
	c := &CSV{w: csv.NewWriter(w)}
	cells := make([]any, len(header))
	for i, h := range header {
		cells[i] = h
	}
	return c, c.Row(cells...)
}

// Row writes one row. Numbers are written as they are. Texts come from outside: one that
// a spreadsheet would take for a formula gets an apostrophe in front, which shows it as
// text. What cannot be seen is marked, as on screens; the JSON beside it has texts as they are.
func (c *CSV) Row(cells ...any) error {
	row := make([]string, len(cells))
	for i, cell := range cells {
		switch v := cell.(type) {
		case string:
			row[i] = recon.Printable(plainCell(v))
		case int, int64, decimalText:
			row[i] = fmt.Sprint(v)
		default:
			row[i] = recon.Printable(plainCell(fmt.Sprint(v)))
		}
	}
	return c.w.Write(row)
}

// decimalText is a number with decimals that we wrote ourselves; it may begin with a minus.
type decimalText string

// Close writes what is left and tells whether all could be written.
func (c *CSV) Close() error {
	c.w.Flush()
	return c.w.Error()
}

// plainCell keeps a text from being carried out. Spreadsheets take a cell for a formula
// by its first character, and skip a tab or a line break before it.
func plainCell(s string) string {
	if s != "" && strings.ContainsRune("=+-@\t\r\n", rune(s[0])) {
		return "'" + s
	}
	return s
}
