package recon

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// OperationFields names the fields of an operation line that a table can have as columns,
// in the order in which [ParseOperationRow] takes their cells, and tells which of them
// every row needs.
func OperationFields() (names []string, required []bool) {
	for _, f := range operationCells {
		names, required = append(names, f.name), append(required, f.required)
	}
	return names, required
}

// operationCells are the fields that a cell can hold.
var operationCells = slices.DeleteFunc(slices.Clone(operationFields), func(f lineField[Operation]) bool { return f.cell == nil })

// ParseOperationRow reads one row of a table of operations, as strictly as
// [ParseOperationIn] reads a line: amounts are whole minor units, instants RFC 3339, and
// marks are words with spaces between them. There is one cell for each of
// [OperationFields], without outer white space; an empty one is a field that is left out.
// The operation is given in o, which may be used again for the next row.
func ParseOperationRow(cells []string, only func(SourceName) Account, o *Operation) error {
	for i, cell := range cells {
		if err := checkCell(cell); err != nil {
			return fmt.Errorf("field %s: %w", operationCells[i].name, err)
		}
	}
	return ParseTextRow(cells, only, o)
}

// ParseTextRow is [ParseOperationRow] for cells of which is known that they are UTF-8 without
// U+0000.
func ParseTextRow(cells []string, only func(SourceName) Account, o *Operation) error {
	*o = Operation{}
	for i := range operationCells {
		f, cell := &operationCells[i], cells[i]
		switch {
		case cell != "":
			if err := f.cell(cell, o); err != nil {
				return fmt.Errorf("field %s: %w", f.name, err)
			}
		case f.required:
			return fmt.Errorf("field %s: it is missing; every row needs it", f.name)
		}
	}
	return complete(o, only)
}

// checkCell refuses what is no text that can be kept.
func checkCell(cell string) error {
	switch {
	case PlainASCII(cell):
		return nil
	case strings.IndexByte(cell, 0) >= 0:
		return errNUL
	case !utf8.ValidString(cell):
		return errors.New("it is not UTF-8; convert the file before reading it")
	}
	return nil
}

// PlainASCII reports whether a text has only characters of ASCII, and no U+0000. It looks at
// eight bytes at a time: a byte has its high bit set, or borrows one when 1 is taken from it.
func PlainASCII[T ~string | ~[]byte](s T) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; len(s) >= 8; s = s[8:] {
		v := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		if (v|(v-ones))&highs != 0 {
			return false
		}
	}
	for i := range len(s) {
		if s[i] == 0 || s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// cellInteger reads a whole number, as a line has it: without fraction, exponent or plus.
func cellInteger(cell string) (int64, error) {
	if n := len(cell); n < 19 && cell[0] != '0' && cell[0] != '-' {
		v := int64(0)
		for i := 0; i < n && cell[i] >= '0' && cell[i] <= '9'; i++ {
			if v = v*10 + int64(cell[i]-'0'); i == n-1 {
				return v, nil
			}
		}
	}
	s := lineScanner{in: cell}
	v, err := s.integer()
	if err == nil && s.at != len(cell) {
		return 0, errors.New(strconv.Quote(cut(cell)) + " is not a whole number; give minor units, such as cents, without separators")
	}
	return v, err
}

func cellWords(cell string) ([]string, error) { return strings.Fields(cell), nil }
