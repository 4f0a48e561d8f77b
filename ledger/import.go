package ledger

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	importChunk = 1000 // lines a statement
	// maxLine leaves room for metadata of 64 KiB and texts at their limits, all escaped.
	maxLine = 1 << 20
	// maxFaults bounds what a bad file makes us keep; the count goes on.
	maxFaults = 1000
)

// ImportResult counts the lines of a file: Rows is the sum of the four after it.
type ImportResult struct {
	Rows     int           `json:"rows"`
	Imported int           `json:"imported"`
	Repeated int           `json:"repeated"`  // same id and same content as an import before
	SetAside int           `json:"set_aside"` // always 0 for operations: each line is ours or refused
	Refused  int           `json:"refused"`
	Encoding string        `json:"encoding"`
	Faults   []ImportFault `json:"faults"` // of the refused ones, the first thousand
}

// ImportFault is one line that was refused, and why.
type ImportFault struct {
	File   string `json:"file,omitempty"` // where several were imported
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// Import records operations of another ledger, one JSON line each, in any state, in one
// transaction. A line that cannot be taken for sure is refused alone, with its reason; a
// fault of the file (it ends inside a line, a line beyond 1 MiB) is a *UsageError and
// stores nothing. Open operations are due at once; closed ones join the ladder of
// re-verification where it stands by now.
func (l *Ledger) Import(ctx context.Context, r io.Reader, now time.Time) (ImportResult, error) {
	return l.importFrom(ctx, now, func(i *importer) error { return i.read(ctx, r) })
}

// OperationRows are operations of another ledger one by one, as a table holds them.
type OperationRows interface {
	// Row reads the next one. refused says why it cannot be read for sure; more is false at
	// the end and at a fault of the file.
	Row(*recon.Operation) (more bool, refused string)
	Line() int // of the last one
	Err() error
	Encoding() string
}

// ImportTable is Import for a table. Open begins it; only gives the account and mode of a
// source that has just one.
func (l *Ledger) ImportTable(ctx context.Context, open func(only func(recon.SourceName) recon.Account) OperationRows, now time.Time) (ImportResult, error) {
	return l.importFrom(ctx, now, func(i *importer) error { return i.table(ctx, open(i.only)) })
}

func (l *Ledger) importFrom(ctx context.Context, now time.Time, read func(*importer) error) (ImportResult, error) {
	var result ImportResult
	err := l.inTx(ctx, func(tx pgx.Tx) error {
		policies, err := l.activePolicies(ctx, tx)
		if err != nil {
			return err
		}
		i := newImporter(l, tx, policies, now)
		if err := read(i); err != nil {
			return err
		}
		result = i.result
		return nil
	})
	return result, l.fault("import operations", err)
}

// importer is one import under way.
type importer struct {
	ledger   *Ledger
	tx       pgx.Tx
	policies map[string]recon.Policy // by action
	only     func(recon.SourceName) recon.Account
	now      time.Time
	result   ImportResult
	chunk    []importRow
	ids      map[recon.OperationID]bool // of the chunk
	groups   OneCurrency
}

func newImporter(l *Ledger, tx pgx.Tx, policies []recon.Policy, now time.Time) *importer {
	i := &importer{
		ledger: l, tx: tx, policies: map[string]recon.Policy{}, now: stored(now),
		result: ImportResult{Encoding: "utf-8", Faults: []ImportFault{}}, ids: map[recon.OperationID]bool{},
	}
	only := map[recon.SourceName]recon.Account{}
	for _, p := range policies {
		i.policies[p.Action] = p
		only[p.Source] = theOnly(p.Accounts)
	}
	i.only = func(s recon.SourceName) recon.Account { return only[s] }
	return i
}

// theOnly gives the account and the mode of a source that has just one of each, and
// nothing for what it has several of. A source without accounts has "default".
func theOnly(accounts []recon.Account) recon.Account {
	if len(accounts) == 0 {
		return recon.Account{Account: "default", Mode: "live"}
	}
	is := accounts[0]
	for _, a := range accounts[1:] {
		if a.Account != is.Account {
			is.Account = ""
		}
		if a.Mode != is.Mode {
			is.Mode = ""
		}
	}
	return is
}

// read takes the lines one by one. Blank lines are no rows.
func (i *importer) read(ctx context.Context, r io.Reader) error {
	in := bufio.NewReaderSize(r, maxLine)
	for number := 1; ; number++ {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return &UsageError{fmt.Sprintf("line %d is longer than 1 MiB; nothing was imported. Is it one JSON object a line?", number)}
		case err != nil && !errors.Is(err, io.EOF):
			return &UsageError{fmt.Sprintf("line %d cannot be read: %v; nothing was imported", number, err)}
		}
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		text := bytes.TrimSpace(line)
		if err != nil && len(text) > 0 && !json.Valid(text) {
			return &UsageError{fmt.Sprintf("line %d: the file ends inside it; nothing was imported. Copy the file again", number)}
		}
		if len(text) > 0 {
			if err := i.line(ctx, number, text); err != nil {
				return err
			}
		}
		if err != nil {
			return i.flush(ctx)
		}
	}
}

// table takes the rows of a table one by one.
func (i *importer) table(ctx context.Context, rows OperationRows) error {
	var o recon.Operation
	for {
		more, refused := rows.Row(&o)
		switch {
		case rows.Err() != nil:
			return &UsageError{rows.Err().Error() + "; nothing was imported"}
		case !more:
			i.result.Encoding = rows.Encoding()
			return i.flush(ctx)
		}
		i.result.Rows++
		if refused != "" {
			i.refuse(rows.Line(), refused)
		} else if err := i.take(ctx, rows.Line(), o); err != nil {
			return err
		}
	}
}

// line takes one line of JSON.
func (i *importer) line(ctx context.Context, number int, text []byte) error {
	i.result.Rows++
	o, err := recon.ParseOperationIn(text, i.only)
	if err != nil {
		i.refuse(number, err.Error())
		return nil
	}
	return i.take(ctx, number, o)
}

// take puts one operation into the chunk. A repeated id waits for the next chunk, where it
// meets the first one's row.
func (i *importer) take(ctx context.Context, number int, o recon.Operation) error {
	p, ok := i.policies[o.Action]
	if !ok {
		i.refuse(number, fmt.Sprintf("action %q has no policy; add it to the configuration and run `reconciler policy apply`", o.Action))
		return nil
	}
	if p.Source != o.Source {
		i.refuse(number, fmt.Sprintf("action %q belongs to source %q, not %q", o.Action, p.Source, o.Source))
		return nil
	}
	row, err := importRowOf(o, p, i.now)
	if err != nil {
		i.refuse(number, err.Error())
		return nil
	}
	if err := i.groups.Check(&o, number); err != nil {
		i.refuse(number, err.Error())
		return nil
	}
	row.line = number
	if i.ids[o.ID] || len(i.chunk) == importChunk {
		if err := i.flush(ctx); err != nil {
			return err
		}
	}
	i.chunk, i.ids[o.ID] = append(i.chunk, row), true
	return nil
}

func (i *importer) refuse(line int, reason string) {
	i.result.Refused++
	if len(i.result.Faults) < maxFaults {
		i.result.Faults = append(i.result.Faults, ImportFault{Line: line, Reason: reason})
	}
}

// flush writes the chunk as one statement. Where the database refuses what a line holds
// (a number in metadata beyond its range), the lines are written one by one, so that one
// of them never stops the others.
func (i *importer) flush(ctx context.Context) error {
	chunk := i.chunk
	i.chunk, i.ids = nil, map[recon.OperationID]bool{}
	if len(chunk) == 0 {
		return nil
	}
	err := i.write(ctx, chunk)
	if len(chunk) == 1 && isKind(faultAt("", "", err), FaultData) {
		i.refuse(chunk[0].line, faultAt("", "store the line", err).Error())
		return nil
	}
	if !isKind(faultAt("", "", err), FaultData) {
		return err
	}
	for n := range chunk {
		i.chunk = chunk[n : n+1]
		if err := i.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

//go:embed sql/import.sql
var importSQL string

// presentSQL tells what stands in the way of lines that were not inserted: the id with
// the content it was imported with, or the key.
const presentSQL = `
SELECT r.n, same.operation_id IS NOT NULL, j.body::jsonb ->> 'content_hash', other.operation_id
FROM unnest($2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS r (operation_id, source, key, n)
LEFT JOIN reconciler.operations same ON same.tenant = $1 AND same.operation_id = r.operation_id
LEFT JOIN reconciler.journal j ON j.tenant = $1 AND j.operation_id = r.operation_id AND j.seq = 1
LEFT JOIN reconciler.operations other ON other.tenant = $1 AND other.source = r.source AND other.key = r.key
ORDER BY r.n`

// write inserts rows in a savepoint and sorts out those that were there already.
func (i *importer) write(ctx context.Context, rows []importRow) (err error) {
	before := i.result
	defer func() {
		if err != nil {
			i.result = before // what was counted was rolled back
		}
	}()
	return pgx.BeginFunc(ctx, i.tx, func(tx pgx.Tx) error {
		in, err := encode(rows)
		if err != nil {
			return err
		}
		inserted, err := insertedIDs(tx.Query(ctx, importSQL, i.ledger.tenant, i.now, string(in)))
		if err != nil {
			return err
		}
		var rest []importRow
		for _, r := range rows {
			if !inserted[r.ID] {
				rest = append(rest, r)
			}
		}
		if err := i.sortOut(ctx, tx, rest); err != nil {
			return err
		}
		i.result.Imported += len(inserted)
		return nil
	})
}

func insertedIDs(rows pgx.Rows, err error) (map[string]bool, error) {
	if err != nil {
		return nil, err
	}
	ids := map[string]bool{}
	var id string
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		ids[id] = true
		return nil
	})
	return ids, err
}

// sortOut says of each row that was not inserted why: repeated, or refused.
func (i *importer) sortOut(ctx context.Context, tx pgx.Tx, rest []importRow) error {
	if len(rest) == 0 {
		return nil
	}
	ids, sources, keys := make([]string, len(rest)), make([]string, len(rest)), make([]*string, len(rest))
	for n, r := range rest {
		ids[n], sources[n], keys[n] = r.ID, r.Source, r.Key
	}
	rows, err := tx.Query(ctx, presentSQL, i.ledger.tenant, ids, sources, keys)
	if err != nil {
		return err
	}
	var n int
	var known bool
	var content, other *string
	_, err = pgx.ForEachRow(rows, []any{&n, &known, &content, &other}, func() error {
		r := rest[n-1]
		switch {
		case known && content != nil && *content == r.ContentHash:
			i.result.Repeated++
		case known:
			i.refuse(r.line, fmt.Sprintf("operation %q is in the ledger with other content", r.ID))
		case other != nil:
			i.refuse(r.line, fmt.Sprintf("its key belongs to operation %q", *other))
		default:
			return errRaced // it was there and is gone: operations are never deleted
		}
		return nil
	})
	return err
}

// contentHash is over the line as we understood it, however it was written.
func contentHash(o recon.Operation) (string, error) {
	line, err := recon.MarshalOperation(o)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:]), nil
}
