package files

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// text1 checks a text of one field as every entrance does: not too long, without U+0000.
func text1(name, s string) (string, error) {
	if len(s) > recon.MaxText && utf8.RuneCountInString(s) > recon.MaxText {
		return "", refuse("%s has over %d characters", name, recon.MaxText)
	}
	if strings.IndexByte(s, 0) >= 0 {
		return "", refuse("%s holds U+0000", name)
	}
	return s, nil
}

// named says of which column an error is.
func named(column string, err error) error {
	if err == nil {
		return nil
	}
	var f *Fault
	if errors.As(err, &f) {
		f.Problem = column + ": " + f.Problem
		return f
	}
	return fmt.Errorf("%s: %w", column, err)
}
