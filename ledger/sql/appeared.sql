-- Operations that were opened or finished lately and that an effect without owner names,
-- and those whose sender ended them otherwise than an effect says that was seen before.
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
WHERE EXISTS (SELECT FROM reconciler.effects e
        WHERE e.tenant = $1 AND e.reference = o.operation_id AND e.owner IS NULL)
    OR EXISTS (SELECT FROM reconciler.effects e
        WHERE e.tenant = $1 AND e.reference = o."group" AND e.owner IS NULL)
    OR EXISTS (SELECT FROM reconciler.effects e
        WHERE e.tenant = $1 AND e.key = o.key AND e.owner IS NULL)
    OR EXISTS (SELECT FROM reconciler.effects e
        WHERE e.tenant = $1 AND e.id = o.effect_id AND e.owner IS NULL)
    OR o.state IN ('succeeded', 'failed') AND EXISTS (SELECT FROM reconciler.effects e
        WHERE e.tenant = $1 AND e.owner = o.operation_id AND CASE o.state
            WHEN 'failed' THEN e.status IN ('in_flight', 'completed')
            ELSE e.status <> 'completed' OR e.amount <> o.amount OR e.currency <> o.currency
                OR o.parent <> ALL (e.other_parents || e.parent) END)
ORDER BY m.at, o.operation_id
LIMIT $3
