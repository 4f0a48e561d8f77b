package files

import (
	"errors"
	"slices"
	"strings"
)

// table reads the rows of a CSV file by their header.
type table struct {
	scanner *scanner
	header  header
	format  *Format
	names   []string // the header's fields
	rec     record
	note    noter
	done    bool
}

// record is one row of a table, by the layout's columns.
type record struct {
	fields []string
	at     []int
	line   int
	plain  bool // it stands in a plain block
}

// get gives a column's text without outer white space, empty where the file has no
// such column.
func (r *record) get(column int) string {
	i := r.at[column]
	if i < 0 {
		return ""
	}
	cell := r.fields[i]
	if n := len(cell); n > 0 && isInk(cell[0]) && isInk(cell[n-1]) {
		return cell // as nearly every cell
	}
	return strings.TrimSpace(cell)
}

// isInk reports whether a byte is a character of ASCII that is seen.
func isInk(c byte) bool { return c > ' ' && c < 0x7f }

func newTable(t *text, f *Format, note noter) (*table, error) {
	head, err := t.head()
	if err != nil {
		return nil, err
	}
	h, found := f.recognise(head)
	if !found {
		return nil, noHeader(head, f)
	}
	tb := &table{format: f, header: h, scanner: newScanner(t, h.separator), note: note}
	if err := tb.skipTo(h.line); err != nil {
		return nil, err
	}
	if ok, err := tb.scanner.next(); !ok || err != nil {
		return nil, err
	}
	if err := twice(h, tb.scanner.fields); err != nil {
		return nil, err
	}
	tb.names = slices.Clone(tb.scanner.fields)
	tb.rec.at = h.at
	return tb, f.layout.begin(h, note)
}

// skipTo steps over the lines before the header, which are no CSV.
func (tb *table) skipTo(line int) error {
	for t := tb.scanner.text; t.number < line; {
		i, width, err := tb.scanner.lineEnd()
		if err != nil || i < 0 {
			return err
		}
		t.at = i + width
		t.number++
	}
	return nil
}

func (tb *table) next(row *Row) (bool, error) {
	for !tb.done {
		ok, err := tb.scanner.next()
		if err != nil {
			return false, err
		}
		if !ok {
			tb.done = true
			return false, tb.format.layout.end()
		}
		if empty(tb.scanner.fields) || tb.scanner.fields[0] == tb.names[0] && slices.Equal(tb.scanner.fields, tb.names) {
			continue // spreadsheets leave empty lines behind, and joined exports their headers
		}
		if err := tb.width(); err != nil {
			return false, err
		}
		tb.tellCut()
		row.Line, tb.rec.line, tb.rec.fields, tb.rec.plain = tb.scanner.line, tb.scanner.line, tb.scanner.fields, tb.scanner.plain
		return true, tb.read(row)
	}
	return false, nil
}

func (tb *table) only(rows Wanted) {
	if rows == nil || !tb.format.layout.alone() {
		return
	}
	tb.scanner.wanted = func(line int) int {
		// Until a number has shown how the file writes numbers, every row is read.
		if n := &tb.format.numbers; !n.declared && !n.minor {
			return line
		}
		return rows(line)
	}
}

func (tb *table) read(row *Row) error {
	err := tb.format.layout.read(&tb.rec, row)
	if err == nil {
		return nil
	}
	var no refusal
	if errors.As(err, &no) {
		row.refuse(err)
		return nil
	}
	var f *Fault
	if errors.As(err, &f) && f.Line == 0 {
		f.Line = row.Line
	}
	return err
}

// width holds a record against the header: one with other columns was cut, or has a
// separator in a field that should have been quoted.
func (tb *table) width() error {
	n, line := len(tb.scanner.fields), tb.scanner.line
	for n > tb.header.width && tb.scanner.fields[n-1] == "" {
		n-- // a separator at the end of every line
	}
	switch {
	case n == tb.header.width:
		return nil
	case tb.scanner.cut && n < tb.header.width:
		return faultf(line, "the file ends inside it; copy the file again")
	case n < tb.header.width:
		return faultf(line, "it has %d columns and the header has %d; the line was broken or cut", n, tb.header.width)
	}
	return faultf(line, "it has %d columns and the header has %d; a field that holds the separator must be quoted", n, tb.header.width)
}

// tellCut tells of a last line without an end. Most such files are whole, so it is read; of one
// that was cut inside its last cell nobody could see it.
func (tb *table) tellCut() {
	last := tb.header.width - 1
	if tb.scanner.cut && len(tb.scanner.fields) == last+1 && slices.Contains(tb.header.at, last) {
		tb.note(tb.scanner.line, "it is the last line and has no end: if the file was cut off, %s may be cut too", quoted(tb.names[last:]))
	}
}

func empty(fields []string) bool {
	for _, f := range fields {
		if strings.TrimSpace(f) != "" {
			return false
		}
	}
	return true
}
