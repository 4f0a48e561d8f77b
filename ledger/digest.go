package ledger

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

//go:embed sql/digest.sql
var digestSQL string

// Digest tells how findings stand, and what changed since from.
func (l *Ledger) Digest(ctx context.Context, from, now time.Time) (recon.Digest, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	d := recon.Digest{From: from, At: now}
	op := "read the digest"
	tx, err := l.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return d, l.fault(op, err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // it only read
	scan := func(row pgx.CollectableRow) (k recon.DigestKind, err error) {
		var money []byte
		if err := row.Scan(text(&k.Kind), number(&k.Open), number(&k.Assigned), instant(&k.Oldest), &money, number(&k.Opened), number(&k.Ended)); err != nil {
			return k, err
		}
		if err := json.Unmarshal(money, &k.Money); err != nil {
			return k, fmt.Errorf("money of %s: %w", k.Kind, err)
		}
		return k, nil
	}
	if d.Kinds, err = collect(ctx, tx, scan, digestSQL, l.tenant, stored(from)); err != nil {
		return d, l.fault(op, err)
	}
	for _, k := range d.Kinds {
		d.Opened, d.Ended = d.Opened+k.Opened, d.Ended+k.Ended
	}
	down := map[recon.SourceName]time.Time{}
	if err := fillTimes(ctx, tx, down, blindGaugesSQL, l.tenant); err != nil {
		return d, l.fault(op, err)
	}
	d.Down = slices.Sorted(maps.Keys(down))
	var oldest time.Time
	if err := tx.QueryRow(ctx, noticeGaugesSQL, l.tenant, stored(now)).Scan(instant(&oldest), &d.Undelivered); err != nil {
		return d, l.fault(op, err)
	}
	d.Exponents, err = l.exponents(ctx, "")
	return d, err
}
