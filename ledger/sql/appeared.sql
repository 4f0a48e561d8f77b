-- Operations that were opened or finished lately and that an effect without owner names,
-- and those whose sender ended them otherwise than an effect says that was seen before.
-- OFFSET 0 has each question answered by what names the effect: without statistics the
-- planner would read all that have no owner instead.
-- $1 tenant  $2 since  $3 at most
WITH moved AS MATERIALIZED (
    SELECT j.operation_id, min(j.at) AS at
    FROM reconciler.journal j
    WHERE j.tenant = $1 AND j.at >= $2 AND j.kind IN ('opened', 'attempt_finished')
    GROUP BY j.operation_id
)
SELECT o.operation_id
FROM moved m
JOIN reconciler.operations o ON o.tenant = $1 AND o.operation_id = m.operation_id
WHERE EXISTS (SELECT FROM (
            SELECT e.owner FROM reconciler.effects e WHERE e.tenant = $1 AND e.reference IN (o.operation_id, o."group")
            UNION ALL
            SELECT e.owner FROM reconciler.effects e WHERE e.tenant = $1 AND e.key = o.key
            UNION ALL
            SELECT e.owner FROM reconciler.effects e WHERE e.tenant = $1 AND e.id = o.effect_id
            OFFSET 0) named
        WHERE named.owner IS NULL)
    OR o.state IN ('succeeded', 'failed') AND EXISTS (SELECT FROM reconciler.effects e
        WHERE e.tenant = $1 AND e.owner = o.operation_id AND CASE o.state
            WHEN 'failed' THEN e.status IN ('in_flight', 'completed')
            ELSE e.status <> 'completed' OR e.amount <> o.amount OR e.currency <> o.currency
                OR o.parent <> ALL (e.other_parents || e.parent) END)
ORDER BY m.at, o.operation_id
LIMIT $3
