package files

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"
)

// blockSize is how much of a file is looked at together. Texts of a block share its memory,
// so that whoever keeps one text keeps the block.
const blockSize = 16 << 10

// block is a run of lines in which nothing needs care: whole lines of valid text that end
// with LF, without quotes. Most files are nothing else, and are read in this way at a
// fraction of what looking at each line for each of its troubles costs.
type block struct {
	start, end int    // in the buffer; what is before its place was read
	text       string // all of it; empty where few lines are wanted
	rough      int    // what stands before this place in the buffer needs care
}

// nextPlain reads the next record if it stands in a plain block.
func (s *scanner) nextPlain() bool {
	t := s.text
	for t.at < s.block.end || s.begin() {
		from := t.at
		to := from + bytes.IndexByte(t.buf[from:s.block.end], '\n')
		s.line, s.cut = t.number, false
		t.at = to + 1
		t.number++
		switch {
		case from == to: // a blank line is no row
		case s.want == nil:
			s.split(s.block.text[from-s.block.start : to-s.block.start])
			return true
		case s.want(s.line):
			s.split(string(t.buf[from:to]))
			return true
		}
	}
	return false
}

// begin looks whether a plain block begins where the buffer is read.
func (s *scanner) begin() bool {
	t := s.text
	if t.at < s.block.rough {
		return false
	}
	end := min(t.end, t.at+blockSize)
	lines := t.buf[t.at : t.at+bytes.LastIndexByte(t.buf[t.at:end], '\n')+1]
	if len(lines) == 0 || !isPlain(lines) {
		s.block = block{rough: end}
		return false
	}
	s.block = block{start: t.at, end: t.at + len(lines)}
	if s.want == nil {
		s.block.text = string(lines)
	}
	return true
}

// isPlain reports whether lines hold no quote, no CR and no NUL, and are valid text of which
// no character was lost.
func isPlain(lines []byte) bool {
	return bytes.IndexByte(lines, '"') < 0 && bytes.IndexByte(lines, '\r') < 0 &&
		(ascii(lines) || bytes.IndexByte(lines, 0) < 0 && utf8.Valid(lines) && !bytes.Contains(lines, replacement))
}

// ascii reports whether there is no byte above 0x7F, and none that is NUL. It looks at eight
// bytes at a time: a byte has its high bit set, or borrows one when 1 is taken from it.
func ascii(b []byte) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; len(b) >= 8; b = b[8:] {
		if v := binary.LittleEndian.Uint64(b); (v|(v-ones))&highs != 0 {
			return false
		}
	}
	for _, c := range b {
		if c >= utf8.RuneSelf || c == 0 {
			return false
		}
	}
	return true
}
