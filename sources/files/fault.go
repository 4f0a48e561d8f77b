package files

import (
	"errors"
	"fmt"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Fault is what is wrong with a whole file. Nothing of the file counts then, because
// what was read before the fault may have been misread in the same way.
type Fault struct {
	File    string // its name, for people
	Line    int    // physical line; 0: the file as a whole
	Problem string // what is wrong and what to do
}

func (f *Fault) Error() string {
	if f.Line == 0 {
		return f.File + ": " + f.Problem
	}
	return fmt.Sprintf("%s line %d: %s", f.File, f.Line, f.Problem)
}

// isFault reports whether an error is of the whole file.
func isFault(err error) bool {
	var f *Fault
	return errors.As(err, &f)
}

// faultf is a fault at a line; the reader adds the file.
func faultf(line int, format string, args ...any) *Fault {
	return &Fault{Line: line, Problem: fmt.Sprintf(format, args...)}
}

// refusal says why one row cannot be read. It is an error of that row alone.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// shown cuts a value of a file for a message, so that a wrong column does not spill its
// content into logs.
func shown(s string) string {
	const most = 40
	s = recon.Discreet(s)
	n := 0
	for i := range s {
		if n == most {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
