package reports

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Operations writes a table of operations, in the order given.
func Operations(w io.Writer, list []recon.Operation, now time.Time, exponents map[string]int) error {
	p := newPage(now, nil)
	if len(list) == 0 {
		p.line("no operations")
		return p.writeTo(w)
	}
	id := len("operation")
	for _, o := range list {
		id = max(id, min(utf8.RuneCountInString(string(o.ID)), 36))
	}
	p.line(fmt.Sprintf("%s  %s  %s  %s  %s", pad("operation", id), pad("state", 13), left("amount", 15), left("age", 11), "for"))
	for _, o := range list {
		amount := ""
		if !o.Money.IsZero() {
			amount = o.Money.Text(exponents)
		}
		p.line(fmt.Sprintf("%s  %s  %s  %s  %s", pad(recon.Printable(string(o.ID)), id), pad(string(o.State), 13),
			left(amount, 15), left(span(now.Sub(o.CreatedAt)), 11), o.Target))
	}
	return p.writeTo(w)
}

// OperationsJSON writes the same as a list of operation lines.
func OperationsJSON(w io.Writer, list []recon.Operation) error {
	lines := make([]json.RawMessage, 0, len(list))
	for _, o := range list {
		line, err := recon.MarshalOperation(o)
		if err != nil {
			return fmt.Errorf("write operation %s: %w", o.ID, err)
		}
		lines = append(lines, line)
	}
	return writeJSON(w, lines)
}
