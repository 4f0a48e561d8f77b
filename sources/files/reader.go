package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Outcome is what became of one row.
type Outcome uint8

const (
	Read     Outcome = iota // it tells of an effect
	Refused                 // it cannot be read for sure
	SetAside                // it can be read and is not ours
)

// Row is one data row of a file.
type Row struct {
	Line    int // physical line on which the row begins
	Outcome Outcome
	Effect  recon.Effect // of a row that was read
	Reason  string       // why it was refused or set aside
}

// Note is something that a person should know of a file that was read all the same.
type Note struct {
	Line int    `json:"line"` // 0: the file as a whole
	Text string `json:"text"`
}

// maxNotes bounds what is told of one file.
const maxNotes = 20

// Reader reads the rows of one file, once, in their order. It holds one row at a time.
type Reader struct {
	name   string
	format Format
	in     *text
	rows   rows
	err    error
	notes  []Note
}

// rows is how one way of writing gives its rows.
type rows interface {
	// next fills the row, or reports that there is none left. An error is a *Fault, or
	// the reader's.
	next(*Row) (bool, error)
	only(Wanted)
}

// Open reads a file that is written as the format says; name is for messages. What is
// wrong with it is told by [Reader.Err] once [Reader.Next] has ended.
func Open(f Format, r io.Reader, name string) *Reader {
	rd := &Reader{name: name, format: f}
	switch objects := rd.open(r); {
	case rd.err != nil:
	case objects || len(f.newLayouts) == 0:
		rd.rows = &lines{in: rd.in, format: &rd.format}
	default:
		rd.rows, rd.err = newTable(rd.in, &rd.format, rd.note)
	}
	return rd
}

// open finds out how the text is encoded, and whether it holds JSON objects.
func (r *Reader) open(from io.Reader) (objects bool) {
	if r.in, r.err = newText(from, &r.format); r.err != nil {
		return false
	}
	r.in.note = r.note
	var head []byte
	head, r.err = r.in.head()
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{"))
}

// Wanted gives the first line from one on, on which a row begins that is wanted; past the
// last one, any line that the file does not have. It is asked for lines in their order.
type Wanted func(line int) int

// Only passes over rows that are not wanted, where that is cheap; what is passed over is not
// checked either. Some are given all the same, and all where rows are read in the light of
// others.
func (r *Reader) Only(rows Wanted) {
	if r.err == nil && r.rows != nil {
		r.rows.only(rows)
	}
}

// Next reads the next row. It is false at the end and at a fault.
func (r *Reader) Next(row *Row) bool {
	if r.err != nil || r.rows == nil {
		return false
	}
	*row = Row{}
	more, err := r.rows.next(row)
	if err != nil {
		r.err = err
		return false
	}
	if more && row.Outcome == Read {
		r.format.own(row)
	}
	return more
}

// Err tells why the reading ended early: a *[Fault] of the file, or the error of what it
// was read from. It is nil when the file was read to its end.
func (r *Reader) Err() error {
	var f *Fault
	if errors.As(r.err, &f) {
		f.File = r.name
		return f
	}
	if r.err != nil {
		return fmt.Errorf("%s: %w", r.name, r.err)
	}
	return nil
}

// Encoding names how the text is encoded: chosen, marked or proven.
func (r *Reader) Encoding() string {
	if r.in == nil {
		return ""
	}
	return r.in.encoding
}

// Notes are what a person should know, once the reading has ended.
func (r *Reader) Notes() []Note { return r.notes }

func (r *Reader) note(line int, format string, args ...any) {
	if len(r.notes) < maxNotes {
		r.notes = append(r.notes, Note{Line: line, Text: fmt.Sprintf(format, args...)})
	}
}

func (row *Row) refuse(err error) {
	row.Outcome, row.Reason, row.Effect = Refused, err.Error(), recon.Effect{}
}

func (row *Row) setAside(format string, args ...any) {
	row.Outcome, row.Reason = SetAside, fmt.Sprintf(format, args...)
}
