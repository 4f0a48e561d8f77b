package inbox

import (
	"context"
	"time"
)

// dropSQL keeps what is still to be taken in. What was given up is shown to people as long
// after that: its next_try is when the last try ended.
const dropSQL = `
WITH old AS (
	SELECT e.system, e.account, e.mode, e.id, e.blob_id
	FROM reconciler.events e
	WHERE e.tenant = $1 AND e.blob_id IS NOT NULL AND e.received_at < $2
		AND (e.state IN ('done', 'ignored') OR e.state = 'failed' AND e.next_try < $2)
	ORDER BY e.received_at
	LIMIT $4
),
dropped AS (
	UPDATE reconciler.blobs b SET bytes = NULL, salt = NULL, erased_at = $3
	FROM old o WHERE b.tenant = $1 AND b.id = o.blob_id
),
told AS (
	UPDATE reconciler.events e SET blob_id = NULL
	FROM old o
	WHERE e.tenant = $1 AND e.system = o.system AND e.account = o.account AND e.mode = o.mode AND e.id = o.id
	RETURNING e.id
)
SELECT count(*) FROM told`

const dropBatch = 1000

// DropBytes drops the bytes of events that arrived before an instant and were taken in, or
// given up before it. The events stay, with the hash of what they said. It returns how many were dropped.
func (s *Store) DropBytes(ctx context.Context, before, now time.Time) (int, error) {
	total := 0
	for {
		n, err := s.dropSome(ctx, before, now)
		total += n
		if err != nil || n < dropBatch {
			return total, err
		}
	}
}

func (s *Store) dropSome(ctx context.Context, before, now time.Time) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var n int
	err := s.pool.QueryRow(ctx, dropSQL, s.tenant, stored(before), stored(now), dropBatch).Scan(&n)
	return n, s.fault("drop the bytes of old events", err)
}

// The bytes go, and so does what people would find them by.
const eraseSQL = `
WITH chosen AS (
	SELECT e.system, e.account, e.mode, e.id, e.blob_id
	FROM reconciler.events e
	WHERE e.tenant = $1 AND e.about && $2::text[] AND e.blob_id IS NOT NULL
	ORDER BY e.system, e.account, e.mode, e.id
	FOR UPDATE
),
erased AS (
	UPDATE reconciler.blobs b SET bytes = NULL, salt = NULL, erased_at = $3
	FROM chosen c WHERE b.tenant = $1 AND b.id = c.blob_id
),
told AS (
	UPDATE reconciler.events e SET blob_id = NULL
	FROM chosen c
	WHERE e.tenant = $1 AND e.system = c.system AND e.account = c.account AND e.mode = c.mode AND e.id = c.id
	RETURNING e.id
)
SELECT count(*) FROM told`

// EraseBytes erases the bytes of all events that told of an object or a reference, and
// says of how many. The events stay, with the hash of what they said. Bytes of events
// that were not taken in yet are not found; [Store.DropBytes] drops them in their time.
func (s *Store) EraseBytes(ctx context.Context, about []string, now time.Time) (int, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	var n int
	err := s.pool.QueryRow(ctx, eraseSQL, s.tenant, append([]string{}, about...), stored(now)).Scan(&n)
	return n, s.fault("erase the bytes of events", err)
}
