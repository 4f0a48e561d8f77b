package inbox

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	defaultList = 100
	maxList     = 10_000
)

// Filter narrows events. Empty fields do not narrow.
type Filter struct {
	IDs    []string
	Type   string // * stands for anything: refund.*
	Source recon.SourceName
	States []State
	From   time.Time // received at or after
	To     time.Time // received before
	Limit  int       // 0: 100; at most 10,000
}

// Row is one event as it is listed to people, without its bytes.
type Row struct {
	System, Account, Mode, ID string
	Source                    recon.SourceName
	Type                      string
	Signed                    bool
	State                     State
	Deliveries                int // 0: read from the provider's list of events only
	Attempts                  int
	CreatedAt                 time.Time
	ReceivedAt                time.Time
	NextTry                   time.Time // zero unless it is to be taken in
	DoneAt                    time.Time // zero until then
	LastError                 string
	HasBytes                  bool
}

const where = `
WHERE e.tenant = $1
	AND (cardinality($2::text[]) = 0 OR e.id = ANY ($2))
	AND ($3::text = '' OR e.type LIKE $3)
	AND ($4::text = '' OR e.source = $4)
	AND (cardinality($5::text[]) = 0 OR e.state = ANY ($5))
	AND ($6::timestamptz IS NULL OR e.received_at >= $6)
	AND ($7::timestamptz IS NULL OR e.received_at < $7)`

func (f Filter) args(tenant string) []any {
	ids, states := append([]string{}, f.IDs...), []string{}
	for _, s := range f.States {
		states = append(states, string(s))
	}
	return []any{tenant, ids, pattern(f.Type), string(f.Source), states, orNull(f.From), orNull(f.To)}
}

// pattern makes a LIKE pattern of a type in which * stands for anything.
func pattern(t string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`).Replace(t)
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = stored(t)
	return &t
}

const listSQL = `
SELECT e.system, e.account, e.mode, e.id, e.source, e.type, e.signed, e.state, e.deliveries, e.attempts,
	e.created_at, e.received_at, e.next_try, e.done_at, coalesce(e.last_error, ''), e.blob_id IS NOT NULL
FROM reconciler.events e` + where + `
ORDER BY e.received_at DESC, e.id DESC
LIMIT $8`

// List gives events, the newest arrival first.
func (s *Store) List(ctx context.Context, f Filter) ([]Row, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	limit := f.Limit
	if limit <= 0 {
		limit = defaultList
	}
	rows, err := s.pool.Query(ctx, listSQL, append(f.args(s.tenant), min(limit, maxList))...)
	if err != nil {
		return nil, s.fault("list events", err)
	}
	list, err := pgx.CollectRows(rows, scanRow)
	return list, s.fault("list events", err)
}

func scanRow(row pgx.CollectableRow) (Row, error) {
	var r Row
	var next time.Time
	var done *time.Time
	err := row.Scan(&r.System, &r.Account, &r.Mode, &r.ID, &r.Source, &r.Type, &r.Signed, &r.State, &r.Deliveries, &r.Attempts,
		&r.CreatedAt, &r.ReceivedAt, &next, &done, &r.LastError, &r.HasBytes)
	r.CreatedAt, r.ReceivedAt = r.CreatedAt.UTC(), r.ReceivedAt.UTC()
	if r.State == New || r.State == Waiting {
		r.NextTry = next.UTC()
	}
	if done != nil {
		r.DoneAt = done.UTC()
	}
	return r, err
}

// Replayed says what a replay did.
type Replayed struct {
	Replayed int `json:"replayed"` // to be taken in once more
	NoBytes  int `json:"no_bytes"` // chosen, but their bytes were dropped or erased
}

// An UPDATE takes no LIMIT, and a replay means all that it names.
const replaySQL = `
WITH chosen AS (
	SELECT e.system, e.account, e.mode, e.id, e.blob_id FROM reconciler.events e` + where + `
),
again AS (
	UPDATE reconciler.events e
	SET state = 'new', attempts = 0, next_try = $8, last_error = NULL, done_at = NULL
	FROM chosen c
	WHERE e.tenant = $1 AND e.system = c.system AND e.account = c.account AND e.mode = c.mode AND e.id = c.id
		AND c.blob_id IS NOT NULL
	RETURNING e.id
)
SELECT (SELECT count(*) FROM again), (SELECT count(*) FROM chosen c WHERE c.blob_id IS NULL)`

// Replay has all events that the filter chooses taken in once more. Its Limit does not
// count.
func (s *Store) Replay(ctx context.Context, f Filter, now time.Time) (Replayed, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var r Replayed
	err := s.pool.QueryRow(ctx, replaySQL, append(f.args(s.tenant), stored(now))...).Scan(&r.Replayed, &r.NoBytes)
	return r, s.fault("replay events", err)
}
