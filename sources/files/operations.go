package files

import (
	"io"
	"slices"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Operations reads a table of operations: any CSV whose header names the fields of an
// operation line (contracts: JSON), in any order and case. What the cells hold is read as
// strictly as such a line. Other columns are not read, and are named in the notes.
//
// Where effects are held against them, a row that cannot be read for sure makes the file
// doubtful (Next): an operation that is left out would make orphans of its effects. A ledger
// that keeps them refuses it alone (Row).
type Operations struct {
	reader *Reader
	rows   *operationRows
	row    Row // the last one
}

// OpenOperations begins a table of operations; name is for messages. Only gives the account
// and mode of a source that has just one, as in [recon.ParseOperationIn].
func OpenOperations(r io.Reader, name string, only func(recon.SourceName) recon.Account) *Operations {
	rows := &operationRows{only: only}
	rows.names, rows.required = recon.OperationFields()
	rows.cells = make([]string, len(rows.names))
	f := Format{Name: "of operations", preamble: -1, numbers: numbers{minor: true}, newLayouts: []func(*Format) layout{func(*Format) layout { return rows }}}
	o := &Operations{rows: rows, reader: &Reader{name: name, format: f}}
	switch objects := o.reader.open(r); {
	case o.reader.err != nil:
	case objects:
		o.reader.err = faultf(1, "it is JSON Lines, not a table; say so, or leave out how it is written")
	default:
		o.reader.rows, o.reader.err = newTable(o.reader.in, &o.reader.format, o.reader.note)
	}
	return o
}

// Only is as [Reader.Only].
func (o *Operations) Only(rows Wanted) { o.reader.Only(rows) }

// Next reads the next operation. It is false at the end and at a fault, a row that cannot be
// read for sure among them.
func (o *Operations) Next(op *recon.Operation) bool {
	more, refused := o.Row(op)
	if refused != "" {
		o.reader.err = faultf(o.row.Line, "%s", refused)
		return false
	}
	return more
}

// Row is Next for a reader that can do without a row: one that cannot be read for sure is
// refused alone, with the reason, and op says nothing then.
func (o *Operations) Row(op *recon.Operation) (more bool, refused string) {
	if o.reader.err != nil || o.reader.rows == nil {
		return false, ""
	}
	o.row.Outcome, o.rows.operation = Read, op
	more, err := o.reader.rows.next(&o.row)
	switch {
	case err != nil:
		o.reader.err = err
		return false, ""
	case more && o.row.Outcome == Refused:
		return true, o.row.Reason
	}
	return more, ""
}

// Line is the physical line on which the last operation begins.
func (o *Operations) Line() int { return o.row.Line }

// Err is as [Reader.Err].
func (o *Operations) Err() error { return o.reader.Err() }

// Notes and Encoding are as those of [Reader].
func (o *Operations) Notes() []Note    { return o.reader.Notes() }
func (o *Operations) Encoding() string { return o.reader.Encoding() }

// operationRows is the layout of a table of operations.
type operationRows struct {
	names     []string
	required  []bool
	only      func(recon.SourceName) recon.Account
	cells     []string
	there     []int            // the fields that are columns of the file
	operation *recon.Operation // which the next row tells of
}

func (t *operationRows) columns() []column {
	list := make([]column, len(t.names))
	for i, name := range t.names {
		list[i] = column{names: []string{name}, required: t.required[i]}
	}
	return list
}

func (t *operationRows) begin(h header, note noter) error {
	for i, at := range h.at {
		if at >= 0 {
			t.there = append(t.there, i)
		}
	}
	var unread []string
	for i, name := range h.names {
		if !slices.Contains(h.at, i) && strings.TrimSpace(name) != "" && !strings.EqualFold(strings.TrimSpace(name), "metadata") {
			unread = append(unread, name)
		}
	}
	if len(unread) > 0 {
		note(h.line, "columns that are no field of an operation are not read: %s", quoted(unread[:min(len(unread), 20)]))
	}
	return nil
}

func (t *operationRows) read(rec *record, _ *Row) error {
	for _, i := range t.there {
		t.cells[i] = rec.get(i)
	}
	parse := recon.ParseOperationRow
	if rec.plain {
		parse = recon.ParseTextRow
	}
	if err := parse(t.cells, t.only, t.operation); err != nil {
		return refusal(err.Error())
	}
	return nil
}

func (t *operationRows) alone() bool { return true }
func (t *operationRows) end() error  { return nil }
