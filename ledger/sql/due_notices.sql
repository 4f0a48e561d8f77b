-- Notices to deliver now. A change needs the message that it changes. What calls people
-- goes first; of one subject it goes in its order, so that a step never runs ahead of
-- the message in whose thread it belongs.
-- $1 tenant  $2 now  $3 the act that changes a message  $4 limit
SELECT n.notice_id, n.finding_id, n.incident_id, n.subject, n.opening, n.act, n.step, n.destination, n.refused, n.mention,
    n.reason, n.due_at, n.edition, n.attempts, n.outcome_unknown, n.first_try_at, root.channel, root.ts
FROM reconciler.notices n
LEFT JOIN LATERAL (
    SELECT x.channel, x.ts
    FROM reconciler.notices x
    WHERE x.tenant = $1 AND x.subject = n.subject AND x.opening = n.opening AND x.destination = n.destination
        AND x.root AND x.ts IS NOT NULL
    -- The newest: an earlier one was deleted.
    ORDER BY x.delivered_at DESC, x.notice_id DESC
    LIMIT 1
) root ON true
WHERE n.tenant = $1 AND n.state <> 'delivered' AND n.due_at <= $2
    AND (n.claimed_until IS NULL OR n.claimed_until <= $2)
    AND (n.act <> $3 OR root.ts IS NOT NULL)
    AND (n.act = $3 OR NOT EXISTS (
        SELECT FROM reconciler.notices e
        WHERE e.tenant = $1 AND e.subject = n.subject AND e.opening = n.opening AND e.destination = n.destination
            AND e.act <> $3 AND e.state <> 'delivered' AND (e.planned_at, e.notice_id) < (n.planned_at, n.notice_id)))
ORDER BY n.act = $3, n.due_at, n.notice_id
LIMIT $4
