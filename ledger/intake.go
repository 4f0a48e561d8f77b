package ledger

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const appearedSQL = `SELECT reconciler.appeared($1, $2, $3)`

// Appeared gives the operations that were opened or whose attempt was finished at or
// after since and that an effect without owner names: it came before them. Those whose
// sender ended them otherwise than an effect of theirs says are among them. Some may have
// been given before. At most limit of them, the oldest first.
func (l *Ledger) Appeared(ctx context.Context, since time.Time, limit int) ([]recon.OperationID, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	ids, err := collect(ctx, l.pool, pgx.RowTo[string], appearedSQL, l.tenant, stored(since), limit)
	return typed[recon.OperationID](ids), l.fault("find operations whose effects came before them", err)
}

// The operations' rows are locked, as by every writer of their plans.
const checkNowSQL = `
WITH locked AS (
	SELECT o.operation_id FROM reconciler.operations o
	WHERE o.tenant = $1 AND o.operation_id = ANY ($2::text[])
	ORDER BY o.operation_id
	FOR NO KEY UPDATE
)
UPDATE reconciler.checks c SET next_check = $3
FROM locked k
WHERE c.tenant = $1 AND c.operation_id = k.operation_id AND NOT c.closed AND c.next_check > $3`

// CheckNow makes open operations due now, so that the next sweep of their source asks
// for them. Closed ones and those that are due already are left alone.
func (l *Ledger) CheckNow(ctx context.Context, ids []recon.OperationID, now time.Time) error {
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := l.pool.Exec(ctx, checkNowSQL, l.tenant, texts(ids), stored(now))
	return l.fault("make operations due", err)
}

// Wake makes operations due now, closed ones too, which the next re-verification of their source
// then asks for.
func (l *Ledger) Wake(ctx context.Context, ids []recon.OperationID, now time.Time) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	return l.fault("make operations due", l.wake(ctx, texts(ids), stored(now)))
}

// Reading is an object that a sweep reads for its own sake: an event told of it without
// showing it whole, or two tellings of it disagree. EffectID is set where the object is
// known, else Parent says under what it hangs.
type Reading struct {
	Source   recon.SourceName
	Kind     string
	Account  string
	Mode     string
	EffectID string
	Parent   string
	// From is the earliest time at which the object can have been made.
	From time.Time
	// Since is when the reading was last asked for; one that is asked for again while it
	// is read is read again. Zero: it is an effect whose tellings disagree.
	Since    time.Time
	Attempts int // readings so far that brought no answer
}

// readingRow is a row of wanted as it is written.
type readingRow struct {
	Source   string    `json:"source"`
	Kind     string    `json:"kind"`
	Account  string    `json:"account"`
	Mode     string    `json:"mode"`
	EffectID string    `json:"effect_id"`
	Parent   string    `json:"parent"`
	From     time.Time `json:"made_from"`
	Since    time.Time `json:"since"`
	Attempts int       `json:"attempts"`
	NextTry  time.Time `json:"next_try"`
}

// readingRows gives rows as JSON. A reading that nobody asked for begins now.
func readingRows(list []Reading, now time.Time) ([]byte, error) {
	rows := make([]readingRow, 0, len(list))
	for _, r := range list {
		if r.Since.IsZero() {
			r.Since = now
		}
		wait := firstReadingWait
		for range r.Attempts {
			wait = min(2*wait, longestReadingWait)
		}
		rows = append(rows, readingRow{
			string(r.Source), r.Kind, r.Account, r.Mode, r.EffectID, r.Parent, stored(r.From), stored(r.Since), r.Attempts, stored(now.Add(wait)),
		})
	}
	return encode(rows)
}

const wantSQL = `
INSERT INTO reconciler.wanted (tenant, source, kind, account, mode, effect_id, parent, made_from, since, next_try)
SELECT DISTINCT ON (r.source, r.kind, r.account, r.mode, r.effect_id, r.parent)
	$1, r.source, r.kind, r.account, r.mode, r.effect_id, r.parent, r.made_from, $2::timestamptz, $2::timestamptz
FROM json_to_recordset($3::json) AS r (source text, kind text, account text, mode text, effect_id text, parent text,
	made_from timestamptz)
ORDER BY r.source, r.kind, r.account, r.mode, r.effect_id, r.parent, r.made_from
ON CONFLICT (tenant, source, kind, account, mode, effect_id, parent) DO UPDATE
	SET since = excluded.since, next_try = excluded.next_try, attempts = 0`

// WantReadings asks for objects to be read by the next sweep of their source.
func (l *Ledger) WantReadings(ctx context.Context, list []Reading, now time.Time) error {
	if len(list) == 0 {
		return nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := readingRows(list, now)
	if err == nil {
		_, err = l.pool.Exec(ctx, wantSQL, l.tenant, stored(now), rows)
	}
	return l.fault("ask for objects to be read", err)
}

//go:embed sql/readings.sql
var readingsSQL string

// Readings gives the objects of a source that are to be read now, at most limit.
func (l *Ledger) Readings(ctx context.Context, source recon.SourceName, now time.Time, limit int) ([]Reading, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	list, err := collect(ctx, l.pool, func(row pgx.CollectableRow) (Reading, error) {
		r := Reading{Source: source}
		err := row.Scan(&r.Kind, &r.Account, &r.Mode, &r.EffectID, &r.Parent, instant(&r.From), instant(&r.Since), &r.Attempts)
		return r, err
	}, readingsSQL, l.tenant, string(source), stored(now), limit)
	return list, l.fault("read what is to be read at "+string(source), err)
}

//go:embed sql/finish_readings.sql
var finishReadingsSQL string

const (
	// A reading that brought no answer is tried again after firstReadingWait, then after
	// twice as long each time, at most longestReadingWait.
	firstReadingWait   = time.Minute
	longestReadingWait = time.Hour
)

// Read is how readings went.
type Read struct {
	Answered []Reading
	// Gone are those of the answered whose object the provider does not have. Asking again
	// would bring nothing else, so a doubt about them ends.
	Gone       []Reading
	Unanswered []Reading // to be tried again later
}

// FinishReadings ends readings that were answered and plans the others for later. What
// was asked for again meanwhile stays.
func (l *Ledger) FinishReadings(ctx context.Context, r Read, now time.Time) error {
	if len(r.Answered)+len(r.Unanswered) == 0 {
		return nil
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	args := []any{l.tenant}
	for _, list := range [][]Reading{r.Answered, r.Gone, r.Unanswered} {
		rows, err := readingRows(list, now)
		if err != nil {
			return err
		}
		args = append(args, rows)
	}
	_, err := l.pool.Exec(ctx, finishReadingsSQL, args...)
	return l.fault("end readings", err)
}
