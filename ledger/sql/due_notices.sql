-- Notices to deliver now. One that edits a message needs that message: the first
-- notice of its own finding, else the newest first one on its operation.
-- $1 tenant  $2 now  $3 the first step  $4 limit
SELECT n.notice_id, f.fingerprint, n.operation_id, n.step, n.destination, n.reason, n.due_at, n.attempts,
    n.outcome_unknown, n.first_try_at, root.fingerprint, root.channel, root.ts
FROM reconciler.notices n
JOIN reconciler.findings f ON f.tenant = $1 AND f.finding_id = n.finding_id
LEFT JOIN LATERAL (
    SELECT x.state, x.channel, x.ts, r.fingerprint
    FROM reconciler.notices x
    JOIN reconciler.findings r ON r.tenant = $1 AND r.finding_id = x.finding_id
    WHERE x.tenant = $1 AND n.step <> $3 AND x.step = $3 AND x.destination = n.destination
        AND (x.finding_id = n.finding_id OR x.operation_id = n.operation_id)
    ORDER BY x.finding_id = n.finding_id AND x.opening = n.opening DESC, x.planned_at DESC, x.notice_id DESC
    LIMIT 1
) root ON true
WHERE n.tenant = $1 AND n.state <> 'delivered' AND n.due_at <= $2
    AND (n.claimed_until IS NULL OR n.claimed_until <= $2)
    AND (n.step = $3 OR root.state = 'delivered')
ORDER BY n.step <> $3, n.due_at, n.notice_id
LIMIT $4
