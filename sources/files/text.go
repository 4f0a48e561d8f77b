package files

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// The encodings that are read. UTF-8 with and without byte order mark is one.
const (
	utf8Name    = "utf-8"
	utf16LE     = "utf-16le"
	utf16BE     = "utf-16be"
	windows1252 = "windows-1252"
)

var encodings = []string{utf8Name, utf16LE, utf16BE, windows1252}

const (
	// headSize is how much of a file is looked at before it is read: a byte order mark,
	// a preamble and the header fit into it.
	headSize = 64 << 10
	// maxRow bounds one row: JSON metadata of 64 KiB with every character escaped, and room.
	maxRow = 1 << 20
)

var (
	markUTF8    = []byte("\xef\xbb\xbf")
	markUTF16LE = []byte("\xff\xfe")
	markUTF16BE = []byte("\xfe\xff")
	replacement = []byte("\uFFFD")
)

// text is a file as UTF-8, in a buffer that holds at least the row that is being read.
type text struct {
	in       io.Reader
	buf      []byte
	at, end  int // what was read and not used yet
	eof      bool
	number   int // physical line of buf[at]
	encoding string
	note     noter
	told     bool // that a replacement character was met
}

// newText finds out how the file is encoded. Without a mark and without a choice it is
// UTF-8, unless its header proves Windows-1252.
func newText(r io.Reader, f *Format) (*text, error) {
	in := bufio.NewReaderSize(r, headSize)
	head, err := in.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	t := &text{in: in, number: 1, encoding: f.encoding, buf: make([]byte, 256<<10)}
	marked := ""
	for name, mark := range map[string][]byte{utf8Name: markUTF8, utf16LE: markUTF16LE, utf16BE: markUTF16BE} {
		if bytes.HasPrefix(head, mark) {
			marked = name
			if _, err := in.Discard(len(mark)); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return nil, faultf(1, "it is packed, or a spreadsheet's own file; unpack it, or save it as CSV")
	case marked != "" && f.encoding != "" && marked != f.encoding:
		return nil, faultf(1, "it begins with the mark of %s, and the source's settings say %s; correct `encoding`", marked, f.encoding)
	case marked != "":
		t.encoding = marked
	case f.encoding != "":
	case bytes.IndexByte(head, 0) >= 0:
		return nil, faultf(1+bytes.Count(head[:bytes.IndexByte(head, 0)], []byte("\n")),
			"it holds NUL bytes, as UTF-16 without a byte order mark does; write `encoding: utf-16le` or utf-16be")
	case provenWindows1252(head, f):
		t.encoding = windows1252
	default:
		t.encoding = utf8Name
	}
	switch t.encoding {
	case utf16LE, utf16BE:
		t.in = &decoder{in: in, decode: (&utf16Decoder{little: t.encoding == utf16LE}).decode}
	case windows1252:
		t.in = &decoder{in: in, decode: decodeWindows1252}
	}
	return t, nil
}

// provenWindows1252 reports whether the header can only be Windows-1252: it is not
// UTF-8, and read as Windows-1252 it bears the name of a column that holds more than
// ASCII. Bytes below the header prove nothing: other encodings have letters there too.
func provenWindows1252(head []byte, f *Format) bool {
	if validStart(head) {
		return false
	}
	var out []byte
	for _, b := range head {
		out = appendWindows1252(out, b)
	}
	h, found := f.recognise(out)
	if !found {
		return false
	}
	if utf8.Valid(physicalLines(head)[h.line-1]) {
		return false
	}
	for _, name := range h.named {
		if len(name) != len([]rune(name)) {
			return true
		}
	}
	return false
}

// validStart reports whether b is UTF-8, as far as it goes: its last character may be cut.
func validStart(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			return !utf8.FullRune(b)
		}
		b = b[n:]
	}
	return true
}

// head gives the beginning of a text of which nothing was used yet.
func (t *text) head() ([]byte, error) {
	for t.end-t.at < headSize && !t.eof {
		if _, err := t.fill(); err != nil {
			return nil, err
		}
	}
	return t.buf[t.at:t.end], nil
}

// fill reads more, moving what is not used to the buffer's start. It is false where
// there is no more.
func (t *text) fill() (bool, error) {
	if t.eof {
		return false, nil
	}
	if t.at > 0 {
		t.end = copy(t.buf, t.buf[t.at:t.end])
		t.at = 0
	}
	if t.end == len(t.buf) {
		if len(t.buf) >= maxRow {
			return false, faultf(t.number, "a row is longer than 1 MiB; is a quote never closed, or is this another kind of file?")
		}
		t.buf = append(t.buf, make([]byte, len(t.buf))...)
	}
	n, err := t.in.Read(t.buf[t.end:])
	t.end += n
	switch {
	case errors.Is(err, io.EOF):
		t.eof = true
	case err != nil:
		return false, err
	}
	return n > 0 || !t.eof, nil
}

// line gives the next line without its end, its number, and whether it has an end. It
// is nil when the file is over.
func (t *text) line() (line []byte, number int, whole bool, err error) {
	from := 0
	for {
		if i := bytes.IndexByte(t.buf[t.at+from:t.end], '\n'); i >= 0 {
			line, whole = t.buf[t.at:t.at+from+i], true
			t.at += from + i + 1
			break
		}
		from = t.end - t.at
		more, err := t.fill()
		if err != nil {
			return nil, 0, false, err
		}
		if !more {
			if t.at == t.end {
				return nil, 0, false, nil
			}
			line = t.buf[t.at:t.end]
			t.at = t.end
			break
		}
	}
	number = t.number
	t.number++
	return line, number, whole, t.check(line, number)
}

// check refuses bytes that are not the text that they are said to be.
func (t *text) check(b []byte, line int) error {
	if recon.PlainASCII(b) {
		return nil
	}
	if !utf8.Valid(b) {
		return faultf(line, "it is not UTF-8; if the file is Windows-1252, as spreadsheets write it, say so with `encoding: windows-1252`, else convert it")
	}
	if !t.told && bytes.Contains(b, replacement) {
		t.told = true
		t.note(line, "it holds U+FFFD: whoever wrote the file had lost characters already; get another export if names or references matter")
	}
	return nil
}
