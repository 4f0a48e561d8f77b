package recon

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// OperationFields names the fields of an operation line that a table can have as columns,
// in the order in which [ParseOperationRow] takes their cells, and tells which of them
// every row needs.
func OperationFields() (names []string, required []bool) {
	for _, f := range operationFields {
		if f.cell != nil {
			names, required = append(names, f.name), append(required, f.required)
		}
	}
	return names, required
}

// ParseOperationRow reads one row of a table of operations, as strictly as
// [ParseOperationIn] reads a line: amounts are whole minor units, instants RFC 3339, and
// marks are words with spaces between them. There is one cell for each of
// [OperationFields], without outer white space; an empty one is a field that is left out.
// The operation is given in o, which may be used again for the next row.
func ParseOperationRow(cells []string, only func(SourceName) Account, o *Operation) error {
	*o = Operation{}
	at := 0
	for i := range operationFields {
		f := &operationFields[i]
		if f.cell == nil {
			continue
		}
		cell := cells[at]
		at++
		switch {
		case strings.IndexByte(cell, 0) >= 0:
			return fmt.Errorf("field %s: %w", f.name, errNUL)
		case !utf8.ValidString(cell):
			return fmt.Errorf("field %s: it is not UTF-8; convert the file before reading it", f.name)
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
