-- Takes due events of one source, oldest first, and keeps them from others for a while.
-- Those that were taken before and never came to an end may have killed whoever worked on
-- them: they are given up when that happened too often.
-- $1 tenant  $2 source  $3 now  $4 until when they are kept  $5 at most  $6 $7 attempts so far, from and below
-- $8 most attempts  $9 why they are given up
WITH due AS (
    SELECT e.system, e.account, e.mode, e.id
    FROM reconciler.events e
    WHERE e.tenant = $1 AND e.source = $2 AND e.state IN ('new', 'waiting') AND e.next_try <= $3
        AND e.attempts >= $6 AND e.attempts < $7
    ORDER BY e.next_try
    LIMIT $5
    FOR UPDATE SKIP LOCKED
),
taken AS (
    UPDATE reconciler.events e
    SET attempts = e.attempts + 1, next_try = $4,
        state = CASE WHEN e.attempts >= $8 THEN 'failed' ELSE e.state END,
        last_error = CASE WHEN e.attempts >= $8 THEN $9 ELSE e.last_error END
    FROM due d
    WHERE e.tenant = $1 AND e.system = d.system AND e.account = d.account AND e.mode = d.mode AND e.id = d.id
    RETURNING e.system, e.account, e.mode, e.id, e.type, e.signed, e.created_at, e.received_at, e.attempts, e.blob_id
)
SELECT t.system, t.account, t.mode, t.id, t.type, t.signed, t.created_at, t.received_at, t.attempts, b.bytes
FROM taken t
LEFT JOIN reconciler.blobs b ON b.tenant = $1 AND b.id = t.blob_id
ORDER BY t.created_at, t.id
