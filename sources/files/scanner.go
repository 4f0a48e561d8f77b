package files

import (
	"bytes"
	"strings"
)

// scanner cuts a text into the records of a CSV file, as RFC 4180 writes them, with any
// of the three line ends, mixed too. It is written by hand because encoding/csv takes a
// bare CR as text, does not say on which physical line a quote was opened that is never
// closed, and copies every field.
type scanner struct {
	text      *text
	separator byte
	fields    []string // of the last record; they share one text
	line      int      // physical line on which it begins
	cut       bool     // it ends with the file, without a line end
	plain     bool     // it stands in a plain block
	feed      int      // place in the buffer of the next LF, as far as known
	scratch   []byte
	bounds    []int
	block     block
	cuts      []uint16 // of the block
	// wanted gives the first line from one on, on which a row that is wanted may begin; nil:
	// all are. Of the others only those are given that cannot be passed over at a glance.
	wanted Wanted
}

func newScanner(t *text, separator byte) *scanner {
	return &scanner{text: t, separator: separator, feed: -1}
}

// next reads a record. It is false at the end of the file.
func (s *scanner) next() (bool, error) {
	t := s.text
	for {
		if s.plain = s.nextPlain(); s.plain {
			return true, nil
		}
		i, width, err := s.lineEnd()
		if err != nil {
			return false, err
		}
		if i < 0 {
			return false, nil
		}
		line := t.buf[t.at:i]
		if bytes.IndexByte(line, '"') >= 0 {
			return s.quoted()
		}
		s.line, s.cut = t.number, width == 0
		t.at = i + width
		t.number++
		if len(line) == 0 {
			continue // a blank line is no row
		}
		if err := t.check(line, s.line); err != nil {
			return false, err
		}
		s.split(string(line))
		return true, nil
	}
}

// lineEnd finds the end of the line at the buffer's start, and how many bytes it has;
// -1 where there is no line.
func (s *scanner) lineEnd() (at, width int, err error) {
	t := s.text
	for {
		window := t.buf[t.at:t.end]
		if s.feed < t.at || s.feed > t.end {
			s.feed = t.end
			if i := bytes.IndexByte(window, '\n'); i >= 0 {
				s.feed = t.at + i
			}
		}
		if i := bytes.IndexByte(t.buf[t.at:s.feed], '\r'); i >= 0 && (t.at+i+1 < t.end || t.eof) {
			if t.at+i+1 < t.end && t.buf[t.at+i+1] == '\n' {
				return t.at + i, 2, nil
			}
			return t.at + i, 1, nil
		}
		if s.feed < t.end {
			return s.feed, 1, nil
		}
		more, err := t.fill()
		if err != nil {
			return 0, 0, err
		}
		s.feed, s.block = -1, block{}
		if !more {
			if t.at == t.end {
				return -1, 0, nil
			}
			if i := bytes.IndexByte(t.buf[t.at:t.end], '\r'); i >= 0 {
				continue
			}
			return t.end, 0, nil
		}
	}
}

// split cuts a line without quotes.
func (s *scanner) split(line string) {
	s.fields = s.fields[:0]
	for {
		i := strings.IndexByte(line, s.separator)
		if i < 0 {
			s.fields = append(s.fields, line)
			return
		}
		s.fields = append(s.fields, line[:i])
		line = line[i+1:]
	}
}

// quoted reads a record with quotes in it, which may hold line ends.
func (s *scanner) quoted() (bool, error) {
	t := s.text
	for {
		used, lines, whole, err := s.record(t.buf[t.at:t.end], t.eof)
		if err != nil {
			return false, err
		}
		if whole {
			s.line = t.number
			if err := t.check(t.buf[t.at:t.at+used], s.line); err != nil {
				return false, err
			}
			t.at += used
			t.number += lines
			s.feed = -1
			return true, nil
		}
		s.block = block{}
		if _, err := t.fill(); err != nil {
			return false, err
		}
	}
}

// record reads one record from the start of in. It is not whole where it reaches the
// end of in and there may be more.
func (s *scanner) record(in []byte, last bool) (used, lines int, whole bool, err error) {
	s.scratch, s.bounds = s.scratch[:0], s.bounds[:0]
	i := 0
	for {
		quote := i < len(in) && in[i] == '"'
		if quote {
			opened := lines
			if i, lines, whole = s.inQuotes(in, i+1, lines); !whole {
				if last {
					return 0, 0, false, faultf(s.text.number+opened, "a quote is opened and never closed; copy the file again, or mend the line")
				}
				return 0, 0, false, nil
			}
		}
		for i < len(in) && in[i] != s.separator && in[i] != '\n' && in[i] != '\r' {
			switch {
			case quote && in[i] != ' ':
				return 0, 0, false, faultf(s.text.number+lines, "text goes on after a closing quote; a quote inside a quoted field is written twice")
			case in[i] == '"' && len(bytes.TrimSpace(s.scratch[s.start():])) > 0:
				return 0, 0, false, faultf(s.text.number+lines, "a quote stands inside a field that is not quoted; quote the field and write the quote twice")
			case in[i] == '"':
				return 0, 0, false, faultf(s.text.number+lines, "a quote follows a space; write it right after the separator")
			case !quote:
				s.scratch = append(s.scratch, in[i])
			}
			i++
		}
		s.bounds = append(s.bounds, len(s.scratch))
		switch {
		case i == len(in) && !last, i+1 == len(in) && in[i] == '\r' && !last:
			return 0, 0, false, nil
		case i == len(in):
			s.cut = true
		case in[i] == s.separator:
			i++
			continue
		case in[i] == '\r' && i+1 < len(in) && in[i+1] == '\n':
			i, s.cut = i+2, false
		default:
			i, s.cut = i+1, false
		}
		s.collect()
		return i, lines + 1, true, nil
	}
}

func (s *scanner) start() int {
	if len(s.bounds) == 0 {
		return 0
	}
	return s.bounds[len(s.bounds)-1]
}

// inQuotes reads to behind the closing quote.
func (s *scanner) inQuotes(in []byte, i, lines int) (at, seen int, closed bool) {
	for i < len(in) {
		n := bytes.IndexAny(in[i:], "\"\r\n")
		if n < 0 {
			break
		}
		s.scratch = append(s.scratch, in[i:i+n]...)
		i += n
		switch {
		case in[i] == '"' && i+1 < len(in) && in[i+1] == '"':
			s.scratch = append(s.scratch, '"')
			i += 2
			continue
		case in[i] == '"':
			// At the end of what is read it may be the first of two; the caller then
			// reads on and begins anew.
			return i + 1, lines, i+1 < len(in) || s.text.eof
		case in[i] == '\n' || i+1 >= len(in) || in[i+1] != '\n':
			lines++
		}
		s.scratch = append(s.scratch, in[i])
		i++
	}
	return i, lines, false
}

// collect makes the fields of what was gathered.
func (s *scanner) collect() {
	all := string(s.scratch)
	s.fields = s.fields[:0]
	from := 0
	for _, to := range s.bounds {
		s.fields = append(s.fields, all[from:to])
		from = to
	}
}
