package files

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// blockSize is how much of a file is looked at together. Texts of a block share its memory,
// so that whoever keeps one text keeps the block.
const blockSize = 16 << 10

// block is a run of lines in which nothing needs care: whole lines of valid text, without
// quotes, that end with LF or CRLF. Most files are nothing else, and are read in this way at
// a fraction of what looking at each line for each of its troubles costs.
type block struct {
	start, end int      // in the buffer; what is before its place was read
	text       string   // all of it
	cuts       []uint16 // where separators and line ends stand in the text, of what was not read
	rough      int      // what stands before this place in the buffer needs care
}

// nextPlain reads the next record if it stands in a plain block.
func (s *scanner) nextPlain() bool {
	t := s.text
	for t.at < s.block.end || s.begin() {
		s.line, s.cut = t.number, false
		line := s.cutLine()
		switch {
		case line == "": // a blank line is no row
		case s.wanted == nil:
			return true
		case s.wanted(s.line) == s.line:
			s.split(strings.Clone(line)) // it is kept, and its block is not
			return true
		}
	}
	return false
}

// cutLine gives the next line of the block, and cuts it into fields.
func (s *scanner) cutLine() string {
	t, b := s.text, &s.block
	first := t.at - b.start
	from := first
	s.fields = s.fields[:0]
	for i, cut := range b.cuts {
		to := int(cut)
		if b.text[to] == s.separator {
			s.fields = append(s.fields, b.text[from:to])
			from = to + 1
			continue
		}
		t.at = b.start + to + 1
		t.number++
		b.cuts = b.cuts[i+1:]
		if to > from && b.text[to-1] == '\r' {
			to--
		}
		s.fields = append(s.fields, b.text[from:to])
		return b.text[first:to]
	}
	panic("files: a block ends inside a line")
}

// begin looks whether a plain block begins where the buffer is read. Blocks in which no row
// is wanted are passed over.
func (s *scanner) begin() bool {
	t := s.text
	for t.at >= s.block.rough {
		end := min(t.end, t.at+blockSize)
		lines := t.buf[t.at : t.at+bytes.LastIndexByte(t.buf[t.at:end], '\n')+1]
		if len(lines) > 0 && s.pass(lines) {
			continue
		}
		if len(lines) == 0 || !isPlain(lines) {
			s.block = block{rough: end}
			return false
		}
		s.cuts = cutUp(lines, s.separator, s.cuts[:0])
		s.block = block{start: t.at, end: t.at + len(lines), text: string(lines), cuts: s.cuts}
		return true
	}
	return false
}

// pass steps over lines if none of them is wanted and each is a row of its own.
func (s *scanner) pass(lines []byte) bool {
	if s.wanted == nil || bytes.IndexByte(lines, '"') >= 0 || bytes.IndexByte(lines, '\r') >= 0 {
		return false
	}
	t, n := s.text, bytes.Count(lines, []byte("\n"))
	if s.wanted(t.number) < t.number+n {
		return false
	}
	t.at += len(lines)
	t.number += n
	return true
}

// isPlain reports whether lines hold no quote, no NUL and no CR but before LF, and are valid
// text of which no character was lost.
func isPlain(lines []byte) bool {
	return bytes.IndexByte(lines, '"') < 0 &&
		(bytes.IndexByte(lines, '\r') < 0 || bytes.Count(lines, []byte("\r")) == bytes.Count(lines, []byte("\r\n"))) &&
		(recon.PlainASCII(lines) || bytes.IndexByte(lines, 0) < 0 && utf8.Valid(lines) && !bytes.Contains(lines, replacement))
}

// cutUp appends where separators and LFs stand in lines. It looks at eight bytes at a time,
// because most bytes are neither.
func cutUp(lines []byte, separator byte, cuts []uint16) []uint16 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	at := 0
	for ; at+8 <= len(lines); at += 8 {
		v := binary.LittleEndian.Uint64(lines[at:])
		// Without its high bit a byte has it again when 0x7F is added to it, unless it is 0.
		none := (v^uint64(separator)*ones)&^highs + 0x7f*ones
		none &= (v^'\n'*ones)&^highs + 0x7f*ones
		for marks := ^(none | v) & highs; marks != 0; marks &= marks - 1 {
			cuts = append(cuts, uint16(at+bits.TrailingZeros64(marks)/8))
		}
	}
	for ; at < len(lines); at++ {
		if lines[at] == separator || lines[at] == '\n' {
			cuts = append(cuts, uint16(at))
		}
	}
	return cuts
}
