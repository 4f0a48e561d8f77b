package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// Feed is how far one list of events of a provider was read.
type Feed struct {
	Source  recon.SourceName
	Account recon.Account
	ReadTo  time.Time // everything created before was read, or cannot be read any more
	// To and Cursor are those of a window that is being read: [ReadTo, To), newest first.
	// Zero and empty: none is.
	To     time.Time
	Cursor string
}

const feedSQL = `
SELECT f.read_to, f.window_to, coalesce(f.cursor, '') FROM reconciler.feeds f
WHERE f.tenant = $1 AND f.source = $2 AND f.account = $3 AND f.mode = $4`

// Feed says how far a feed was read; false: never.
func (s *Store) Feed(ctx context.Context, source recon.SourceName, a recon.Account) (Feed, bool, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	f := Feed{Source: source, Account: a}
	var to *time.Time
	err := s.pool.QueryRow(ctx, feedSQL, s.tenant, string(source), a.Account, a.Mode).Scan(&f.ReadTo, &to, &f.Cursor)
	if errors.Is(err, pgx.ErrNoRows) {
		return f, false, nil
	}
	f.ReadTo = f.ReadTo.UTC()
	if to != nil {
		f.To = to.UTC()
	}
	return f, err == nil, s.fault("read how far the events of "+string(source)+" were read", err)
}

const saveFeedSQL = `
INSERT INTO reconciler.feeds (tenant, source, account, mode, read_to, window_to, cursor)
VALUES ($1, $2, $3, $4, $5, $6, nullif($7, ''))
ON CONFLICT (tenant, source, account, mode) DO UPDATE
	SET read_to = excluded.read_to, window_to = excluded.window_to, cursor = excluded.cursor`

// SaveFeed remembers how far a feed was read.
func (s *Store) SaveFeed(ctx context.Context, f Feed) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	_, err := s.pool.Exec(ctx, saveFeedSQL, s.tenant, string(f.Source), f.Account.Account, f.Account.Mode, stored(f.ReadTo), orNull(f.To), f.Cursor)
	return s.fault("remember how far the events of "+string(f.Source)+" were read", err)
}
