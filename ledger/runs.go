package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// takeOvers is how often a tick is done again whose process died with it. A tick that kills
// whoever runs it must not go round for ever.
const takeOvers = 3

// A run whose process died is closed by whoever wants the place next, so that nobody
// has to clean up. What it was doing is safe to do again, so the dead run gives its tick
// back, and keeps its name in a form that no schedule makes.
const abandonSQL = `
UPDATE reconciler.runs r
SET finished_at = $2, outcome = 'abandoned', error = 'no heartbeat: its process ended without a word',
	tick = CASE WHEN (
		SELECT count(*) FROM reconciler.runs d
		WHERE d.tenant = $1 AND d.name = r.name AND d.outcome = 'abandoned' AND starts_with(d.tick, r.tick || ' abandoned ')
	) < $3 THEN r.tick || ' abandoned ' || r.run_id ELSE r.tick END
WHERE r.tenant = $1 AND r.finished_at IS NULL AND r.lease_until <= $2`

// The two unique keys decide between processes that ask at the same moment: one run
// per tick for ever, and one unfinished run per name.
const beginRunSQL = `
INSERT INTO reconciler.runs (tenant, run_id, name, tick, holder, token, lease_until, heartbeat_at, started_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)
ON CONFLICT DO NOTHING
RETURNING run_id`

// Of what stands in the way the running one matters more than the finished tick.
const inTheWaySQL = `
SELECT r.holder, r.started_at, r.finished_at FROM reconciler.runs r
WHERE r.tenant = $1 AND r.name = $2 AND (r.finished_at IS NULL OR r.tick = $3)
ORDER BY r.finished_at DESC NULLS FIRST
LIMIT 1`

// BeginRun takes the place of a run. It fails with *RunningError while another run of
// the name is alive, and with *TickError when the tick was run before. A dead run,
// whose lease is over, is closed as abandoned first, and its tick may be run again, three
// times. The database's clock judges that.
func (l *Ledger) BeginRun(ctx context.Context, s RunStart) (Run, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	op := "begin " + s.Name
	if err := checkTTL(s.TTL); err != nil || s.Name == "" || s.Holder == "" {
		return Run{}, &UsageError{"ledger: a run needs a name, a holder and a span without heartbeat of at most " + maxTTL.String()}
	}
	now, err := clock(ctx, l.pool)
	if err != nil {
		return Run{}, l.fault(op, err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return Run{}, err
	}
	r := Run{ID: id.String(), Name: s.Name, Tick: s.Tick, Holder: s.Holder, StartedAt: now, LeaseUntil: now.Add(s.TTL), token: uuid.NewString()}
	if r.Tick == "" {
		r.Tick = "manual " + r.ID
	}
	// What stood in the way may be finished by the time we ask who it was; then the
	// place is free and we try again.
	for range recordTries {
		var begin pgx.Batch
		begin.Queue(abandonSQL+` AND r.name = $4`, l.tenant, now, takeOvers, r.Name)
		begin.Queue(beginRunSQL, l.tenant, r.ID, r.Name, r.Tick, r.Holder, r.token, r.LeaseUntil, now).QueryRow(func(row pgx.Row) error {
			return row.Scan(new(string))
		})
		err = send(ctx, l.pool, &begin)
		if !errors.Is(err, pgx.ErrNoRows) {
			return r, l.fault(op, err)
		}
		var by string
		var since, finished time.Time
		err = l.pool.QueryRow(ctx, inTheWaySQL, l.tenant, r.Name, r.Tick).Scan(&by, instant(&since), instant(&finished))
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			continue
		case err != nil:
			return Run{}, l.fault(op, err)
		case finished.IsZero():
			return Run{}, &RunningError{Name: r.Name, By: by, Since: since}
		default:
			return Run{}, &TickError{Name: r.Name, Tick: r.Tick, By: by, At: since}
		}
	}
	return Run{}, &Fault{Op: op, Kind: FaultConflict, Place: l.place, err: err}
}

const heartbeatSQL = `
UPDATE reconciler.runs r SET heartbeat_at = $4, lease_until = $5
WHERE r.tenant = $1 AND r.run_id = $2 AND r.token = $3 AND r.finished_at IS NULL`

// HeartbeatRun prolongs a run's lease to ttl from now (*AbandonedError when it was closed).
func (l *Ledger) HeartbeatRun(ctx context.Context, r Run, ttl time.Duration) (Run, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := checkTTL(ttl); err != nil {
		return r, &UsageError{"heartbeat of " + r.Name + ": " + err.Error()}
	}
	now, err := clock(ctx, l.pool)
	if err != nil {
		return r, l.fault("heartbeat of "+r.Name, err)
	}
	tag, err := l.pool.Exec(ctx, heartbeatSQL, l.tenant, r.ID, r.token, now, now.Add(ttl))
	if err != nil {
		return r, l.fault("heartbeat of "+r.Name, err)
	}
	if tag.RowsAffected() == 0 {
		return r, &AbandonedError{Name: r.Name, ID: r.ID}
	}
	r.LeaseUntil = now.Add(ttl)
	return r, nil
}

const finishRunSQL = `
UPDATE reconciler.runs r SET finished_at = $4, outcome = $5, counts = $6, error = nullif($7::text, ''),
	tick = CASE $5 WHEN 'abandoned' THEN r.tick || ' abandoned ' || r.run_id ELSE r.tick END
WHERE r.tenant = $1 AND r.run_id = $2 AND r.token = $3 AND r.finished_at IS NULL`

// FinishRun closes a run (*AbandonedError when another process did so before). One that is
// closed as abandoned, since its process was told to stop, gives its tick back.
func (l *Ledger) FinishRun(ctx context.Context, r Run, e RunEnd) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if e.Outcome != RunDone && e.Outcome != RunFailed && e.Outcome != RunAbandoned {
		return &UsageError{"ledger: a run ends as done, failed or abandoned, not as " + e.Outcome}
	}
	now, err := clock(ctx, l.pool)
	if err != nil {
		return l.fault("finish "+r.Name, err)
	}
	var counts any
	if len(e.Counts) > 0 {
		counts = []byte(e.Counts)
	}
	tag, err := l.pool.Exec(ctx, finishRunSQL, l.tenant, r.ID, r.token, now, e.Outcome, counts, e.Error)
	if err != nil {
		return l.fault("finish "+r.Name, err)
	}
	if tag.RowsAffected() == 0 {
		return &AbandonedError{Name: r.Name, ID: r.ID}
	}
	return nil
}

const lastRunsSQL = `
SELECT r.run_id, r.name, r.tick, r.holder, r.started_at, r.finished_at, r.lease_until, r.outcome, r.counts, r.error
FROM reconciler.runs r
WHERE r.tenant = $1 AND r.name = $2
ORDER BY r.started_at DESC, r.run_id DESC
LIMIT $3`

// LastRuns gives the newest runs of a name, newest first.
func (l *Ledger) LastRuns(ctx context.Context, name string, limit int) ([]Run, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := l.pool.Query(ctx, lastRunsSQL, l.tenant, name, listLimit(limit))
	if err != nil {
		return nil, l.fault("list runs of "+name, err)
	}
	runs, err := pgx.CollectRows(rows, scanRun)
	return runs, l.fault("list runs of "+name, err)
}

func scanRun(row pgx.CollectableRow) (Run, error) {
	var r Run
	return r, row.Scan(&r.ID, &r.Name, &r.Tick, &r.Holder, instant(&r.StartedAt), instant(&r.FinishedAt),
		instant(&r.LeaseUntil), text(&r.Outcome), (*[]byte)(&r.Counts), text(&r.Error))
}
