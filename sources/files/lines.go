package files

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// lines reads JSON Lines: one effect a line, as strict as [recon.ParseEffectIn].
type lines struct {
	in     *text
	format *Format
	wanted Wanted // nil: every row is
}

func (l *lines) only(rows Wanted) { l.wanted = rows }

func (l *lines) next(row *Row) (bool, error) {
	for {
		line, number, whole, err := l.in.line()
		if err != nil || line == nil {
			return false, err
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 || l.wanted != nil && l.wanted(number) != number {
			continue
		}
		if !whole && !json.Valid(line) {
			return false, faultf(number, "the file ends inside it; copy the file again")
		}
		row.Line = number
		l.read(row, line)
		return true, nil
	}
}

func (l *lines) read(row *Row, line []byte) {
	e, err := recon.ParseEffectIn(line, func(recon.SourceName) recon.Account { return l.format.only() })
	if err != nil {
		row.refuse(err)
		return
	}
	row.Effect = e
	switch {
	case l.format.Source == "": // every source of the file is meant
		return
	case e.Source != l.format.Source && !slices.Contains(l.format.Siblings, e.Source):
		row.setAside("it is of source %s", e.Source)
		return
	case e.Account == "":
		row.refuse(refuse("field account: it is missing, and %s has several; write which", l.format.Source))
		return
	}
	row.Effect.Source, row.Effect.System = l.format.Source, l.format.System
}
