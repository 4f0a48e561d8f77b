package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// maxTTL bounds holds and run leases: a dead holder keeps others waiting that long.
const maxTTL = time.Hour

// holdSQL takes the source if nobody holds it. The row decides between two that ask
// at the same moment.
const holdSQL = `
INSERT INTO reconciler.source_state AS s (tenant, source, holder, token, held_since, lease_until)
VALUES ($1, $2, $3, 1, $4, $5)
ON CONFLICT (tenant, source) DO UPDATE
	SET holder = excluded.holder, token = s.token + 1, held_since = excluded.held_since, lease_until = excluded.lease_until
	WHERE s.holder IS NULL OR s.lease_until IS NULL OR s.lease_until <= excluded.held_since
RETURNING token`

const holderSQL = `
SELECT s.holder, s.held_since, s.lease_until FROM reconciler.source_state s WHERE s.tenant = $1 AND s.source = $2`

// HoldSource takes the source for ttl, or says who has it (*HeldError). Only one
// holder at a time may write what was seen there. The database's clock judges when a
// hold is over, so that a process with a wrong clock takes nothing away.
func (l *Ledger) HoldSource(ctx context.Context, source recon.SourceName, holder string, ttl time.Duration) (Hold, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	op := "hold source " + string(source)
	if err := checkTTL(ttl); err != nil || holder == "" {
		return Hold{}, &UsageError{op + ": a holder needs a name and a span of at most " + maxTTL.String()}
	}
	now, err := clock(ctx, l.pool)
	if err != nil {
		return Hold{}, l.fault(op, err)
	}
	h := Hold{Source: source, Holder: holder, Until: now.Add(ttl)}
	err = l.pool.QueryRow(ctx, holdSQL, l.tenant, string(source), holder, now, h.Until).Scan(&h.Token)
	if !errors.Is(err, pgx.ErrNoRows) {
		return h, l.fault(op, err)
	}
	held := &HeldError{Source: source}
	err = l.pool.QueryRow(ctx, holderSQL, l.tenant, string(source)).Scan(text(&held.By), instant(&held.Since), instant(&held.Until))
	if err != nil {
		return Hold{}, l.fault(op, err)
	}
	return Hold{}, held
}

const renewSQL = `
UPDATE reconciler.source_state s SET lease_until = $5
WHERE s.tenant = $1 AND s.source = $2 AND s.token = $3 AND s.holder = $4`

// RenewSource prolongs a hold to ttl from now, or says that it was lost
// (*StaleHoldError). A hold that is over and that nobody took is still ours.
func (l *Ledger) RenewSource(ctx context.Context, h Hold, ttl time.Duration) (Hold, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	op := "renew the hold of source " + string(h.Source)
	if err := checkTTL(ttl); err != nil {
		return h, &UsageError{op + ": " + err.Error()}
	}
	now, err := clock(ctx, l.pool)
	if err != nil {
		return h, l.fault(op, err)
	}
	tag, err := l.pool.Exec(ctx, renewSQL, l.tenant, string(h.Source), h.Token, h.Holder, now.Add(ttl))
	if err != nil {
		return h, l.fault(op, err)
	}
	if tag.RowsAffected() == 0 {
		return h, &StaleHoldError{Source: h.Source, Holder: h.Holder}
	}
	h.Until = now.Add(ttl)
	return h, nil
}

const releaseSQL = `
UPDATE reconciler.source_state s SET holder = NULL, held_since = NULL, lease_until = NULL
WHERE s.tenant = $1 AND s.source = $2 AND s.token = $3 AND s.holder = $4`

// ReleaseSource gives the source back. A hold that was lost meanwhile is no error:
// there is nothing to give back.
func (l *Ledger) ReleaseSource(ctx context.Context, h Hold) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := l.pool.Exec(ctx, releaseSQL, l.tenant, string(h.Source), h.Token, h.Holder)
	return l.fault("release source "+string(h.Source), err)
}

const sourceStateSQL = `
SELECT s.blind_since, s.blinds, s.probe_at FROM reconciler.source_state s WHERE s.tenant = $1 AND s.source = $2`

// SourceState reads what is remembered of a source; zero for one never swept.
func (l *Ledger) SourceState(ctx context.Context, source recon.SourceName) (SourceState, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var s SourceState
	err := l.pool.QueryRow(ctx, sourceStateSQL, l.tenant, string(source)).Scan(instant(&s.BlindSince), number(&s.Blinds), instant(&s.ProbeAt))
	if errors.Is(err, pgx.ErrNoRows) {
		return s, nil
	}
	return s, l.fault("read the state of source "+string(source), err)
}

// The share lock keeps the source from being taken until the batch is committed: the
// next holder begins after our last word, never in the middle of it.
const checkHoldSQL = `
SELECT s.token FROM reconciler.source_state s
WHERE s.tenant = $1 AND s.source = $2 AND s.token = $3 AND s.holder = $4
FOR SHARE`

const writeStateSQL = `
UPDATE reconciler.source_state s SET blind_since = $5, blinds = $6, probe_at = $7
WHERE s.tenant = $1 AND s.source = $2 AND s.token = $3 AND s.holder = $4
RETURNING s.token`

// checkHold makes sure, inside the batch's transaction, that the source is still
// ours, and writes its state if there is a new one.
func (l *Ledger) checkHold(with *pgx.Batch, h Hold, s *SourceState) {
	if h.Source == "" {
		return
	}
	sql, args := checkHoldSQL, []any{l.tenant, string(h.Source), h.Token, h.Holder}
	if s != nil {
		sql, args = writeStateSQL, append(args, orNull(s.BlindSince), s.Blinds, orNull(s.ProbeAt))
	}
	with.Queue(sql, args...).QueryRow(func(row pgx.Row) error {
		err := row.Scan(new(int64))
		if errors.Is(err, pgx.ErrNoRows) {
			return &StaleHoldError{Source: h.Source, Holder: h.Holder}
		}
		return err
	})
}

func checkTTL(ttl time.Duration) error {
	if ttl <= 0 || ttl > maxTTL {
		return fmt.Errorf("the span must be above 0 and at most %s", maxTTL)
	}
	return nil
}
