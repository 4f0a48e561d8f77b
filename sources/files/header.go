package files

import (
	"bytes"
	"errors"
	"slices"
	"strings"
)

// column is one column that a format reads. Names are the ways in which it is headed,
// the best first.
type column struct {
	names    []string
	required bool
}

// layout is how one format reads its rows. Its columns are asked for by their place in
// the list.
type layout interface {
	columns() []column
	// begin is told where the columns stand.
	begin(h header, note noter) error
	// read makes a row of a record. An error is a refusal, of the row alone, or a *Fault.
	read(rec *record, row *Row) error
	// alone reports whether a row can be read without those above it.
	alone() bool
	// end is called when the file is over.
	end() error
}

// noter takes what a person should know of the file.
type noter func(line int, format string, args ...any)

// header is where a file's columns stand.
type header struct {
	line      int // physical line
	separator byte
	at        []int    // of each column of the layout: its place in a record, or -1
	named     []string // the layout's columns that were found, as the file writes them
	names     []string // all columns of the file
	width     int
}

// separators are tried in this order.
var separators = []byte{',', ';', '\t', '|'}

// maxPreamble is how many lines may stand before the header when their number is not
// declared.
const maxPreamble = 50

// findHeader finds the first line that names every required column, under one of the
// separators.
func findHeader(head []byte, f *Format) (header, bool) {
	for i, line := range physicalLines(head) {
		if f.preamble >= 0 && i != f.preamble {
			continue
		}
		var best header
		for _, sep := range f.candidates() {
			h, missing, err := f.headerOf(line, sep)
			if err == nil && len(missing) == 0 && len(h.named) > len(best.named) {
				best = h
			}
		}
		if len(best.named) > 0 {
			best.line = i + 1
			return best, true
		}
	}
	return header{}, false
}

func (f *Format) candidates() []byte {
	if f.separator != 0 {
		return []byte{f.separator}
	}
	return separators
}

// physicalLines cuts the head of a file into lines, whichever ends they have.
func physicalLines(head []byte) [][]byte {
	head = bytes.ReplaceAll(head, []byte("\r\n"), []byte("\n"))
	head = bytes.ReplaceAll(head, []byte("\r"), []byte("\n"))
	lines := bytes.SplitN(head, []byte("\n"), maxPreamble+2)
	return lines[:min(len(lines), maxPreamble+1)]
}

// headerOf reads a line as a header, and gives the required columns that it does not name.
// A blank line names nothing.
func (f *Format) headerOf(line []byte, sep byte) (h header, missing []string, err error) {
	s := newScanner(&text{buf: line, end: len(line), eof: true, number: 1, note: func(int, string, ...any) {}}, sep)
	if _, err := s.next(); err != nil {
		return h, nil, err
	}
	names := slices.Clone(s.fields)
	h.separator, h.width, h.names = sep, len(names), names
	for _, c := range f.layout.columns() {
		at := -1
		for _, name := range c.names {
			at = slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(strings.TrimSpace(n), name) })
			if at >= 0 {
				h.named = append(h.named, name)
				break
			}
		}
		if at < 0 && c.required {
			missing = append(missing, c.names[0])
		}
		h.at = append(h.at, at)
	}
	return h, missing, nil
}

// noHeader tells which columns are missing, of the table and on the line that come
// closest. Where no line can be read as a header, it tells why the likeliest one
// cannot.
func noHeader(head []byte, f *Format) error {
	if len(bytes.TrimSpace(head)) == 0 {
		return faultf(1, "the file is empty; the format %s needs a header", f.Name)
	}
	line, most := 0, -1
	var missing, found []string
	var unread error
	cut := -1 // into how many the separator of unread cuts its line
	for _, open := range f.newLayouts {
		f.layout = open(f)
		for i, l := range physicalLines(head) {
			if f.preamble >= 0 && i != f.preamble {
				continue
			}
			for _, sep := range f.candidates() {
				h, lacks, err := f.headerOf(l, sep)
				var fault *Fault
				if n := bytes.Count(l, []byte{sep}); n > cut && errors.As(err, &fault) {
					fault.Line = i + 1
					cut, unread = n, fault
				}
				if n := len(h.named); err == nil && n > most && len(h.names) > 0 {
					line, most, missing, found = i+1, n, lacks, h.names
				}
			}
		}
	}
	switch {
	case most <= 0 && unread != nil:
		return unread
	case line == 0:
		return faultf(f.preamble+1, "it has no header there, where the settings say that it is (`preamble`)")
	}
	return faultf(line, "the header does not name %s, which the format %s needs; it names %s",
		quoted(missing), f.Name, quoted(found[:min(len(found), 20)]))
}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = `"` + shown(strings.TrimSpace(n)) + `"`
	}
	return strings.Join(out, ", ")
}

// twice tells a column that is named twice: nobody knows which is meant.
func twice(h header, names []string) error {
	for _, at := range h.at {
		if at < 0 {
			continue
		}
		name := strings.TrimSpace(names[at])
		for i, n := range names {
			if i != at && strings.EqualFold(strings.TrimSpace(n), name) {
				return faultf(h.line, "the header names %q twice; nobody knows which is meant", shown(name))
			}
		}
	}
	return nil
}
