package ledger

import (
	"context"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// stageSQL makes the place where the rows of one file wait. again tells rows of an effect
// that the file or the ledger knew before, repeated those that say nothing new.
const stageSQL = `
CREATE TEMPORARY TABLE effect_rows (n bigint, line integer, again boolean, account text, mode text, id text, kind text,
	status text, amount bigint, currency text, parent text, other_parents text[], target text, reference text,
	natural_reference text, key text, created_at timestamptz, updated_at timestamptz, fee bigint, net bigint,
	settlement_amount bigint, settlement_currency text, created_by text, failure_reason text, caused_by text,
	parent_total bigint, metadata text, repeated boolean) ON COMMIT DROP`

// A million rows are sorted and joined; in the default of 4 MB that goes to disk.
const roomSQL = `SET LOCAL work_mem = '64MB'`

const copySQL = `COPY pg_temp.effect_rows FROM STDIN`

// copyIn sends the rows of a file to where they wait, in PostgreSQL's own text form,
// while they are read.
func copyIn(ctx context.Context, tx pgx.Tx, rows io.Reader) error {
	if _, err := tx.Exec(ctx, stageSQL); err != nil {
		if isKind(faultAt("", "", err), FaultPrivilege) {
			return &UsageError{"this database keeps temporary tables from our role, and an import needs one: GRANT TEMPORARY ON DATABASE … TO reconciler_daemon"}
		}
		return err
	}
	if _, err := tx.Exec(ctx, roomSQL); err != nil {
		return err
	}
	g := &guarded{in: rows}
	defer g.end()
	_, err := tx.Conn().PgConn().CopyFrom(ctx, g, copySQL)
	return err
}

// guarded is a reader that is read no more once end was called. The driver reads in a
// goroutine of its own, which it does not wait for when the copy breaks off.
type guarded struct {
	in    io.Reader
	mu    sync.Mutex // held while in is read, and guards ended
	ended bool
}

func (g *guarded) Read(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return 0, io.ErrClosedPipe
	}
	return g.in.Read(p)
}

func (g *guarded) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = true
}

// appendRow writes one row as COPY reads it.
func appendRow(b []byte, n int64, l *EffectLine) []byte {
	e := &l.Effect
	b = strconv.AppendInt(b, n, 10)
	b = append(b, '\t')
	b = strconv.AppendInt(b, int64(l.Line), 10)
	b = append(b, '\t')
	b = append(b, map[bool]byte{true: 't', false: 'f'}[l.Again])
	for _, s := range [...]string{e.Account, e.Mode, e.ID, e.Kind, string(e.Status)} {
		b = appendText(append(b, '\t'), s)
	}
	b = appendMoney(b, e.Money)
	b = appendOptional(b, e.Parent)
	b = appendTexts(append(b, '\t'), e.OtherParents)
	for _, s := range [...]string{e.Target, e.Reference, e.NaturalReference, e.Key} {
		b = appendOptional(b, s)
	}
	b = appendInstant(b, e.CreatedAt)
	b = appendInstant(b, e.UpdatedAt)
	b = appendNumber(b, e.Fee)
	b = appendNumber(b, e.Net)
	b = appendMoney(b, e.Settlement)
	for _, s := range [...]string{e.CreatedBy, e.FailureReason, e.CausedBy} {
		b = appendOptional(b, s)
	}
	b = appendNumber(b, e.ParentTotal)
	b = appendOptional(b, string(e.Metadata))
	return append(b, "\tf\n"...)
}

// appendText escapes what separates columns and rows.
func appendText(b []byte, s string) []byte {
	from := 0
	for i := range len(s) {
		var c byte
		switch s[i] {
		case '\\':
			c = '\\'
		case '\t':
			c = 't'
		case '\n':
			c = 'n'
		case '\r':
			c = 'r'
		default:
			continue
		}
		b = append(append(b, s[from:i]...), '\\', c)
		from = i + 1
	}
	return append(b, s[from:]...)
}

const null = `\N`

func appendOptional(b []byte, s string) []byte {
	b = append(b, '\t')
	if s == "" {
		return append(b, null...)
	}
	return appendText(b, s)
}

// appendTexts writes a list as an array's text, whose own escapes are escaped again.
func appendTexts(b []byte, list []string) []byte {
	if len(list) == 0 {
		return append(b, null...)
	}
	array := []byte{'{'}
	for i, s := range list {
		if i > 0 {
			array = append(array, ',')
		}
		array = append(array, '"')
		for j := range len(s) {
			if s[j] == '"' || s[j] == '\\' {
				array = append(array, '\\')
			}
			array = append(array, s[j])
		}
		array = append(array, '"')
	}
	return appendText(b, string(append(array, '}')))
}

func appendNumber(b []byte, n *int64) []byte {
	b = append(b, '\t')
	if n == nil {
		return append(b, null...)
	}
	return strconv.AppendInt(b, *n, 10)
}

// appendMoney writes an amount and its currency. A currency may be known without one.
func appendMoney(b []byte, m recon.Money) []byte {
	var minor *int64
	if m.Minor != 0 {
		minor = &m.Minor
	}
	return appendOptional(appendNumber(b, minor), m.Currency)
}

func appendInstant(b []byte, t time.Time) []byte {
	b = append(b, '\t')
	if t.IsZero() {
		return append(b, null...)
	}
	return stored(t).AppendFormat(b, "2006-01-02 15:04:05.999999Z07")
}
