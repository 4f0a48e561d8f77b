-- The operations that rows of a file bear on: open ones, succeeded ones whose effect came
-- to nothing, and failed ones that have an effect after all. Rows that say nothing new are
-- among them: an import that broke off may have stored what they say and told nobody.
-- $1 tenant  $2 system  $3 the system's sources
WITH named AS (
    SELECT o.operation_id, o.state, r.status
    FROM pg_temp.effect_rows r
    JOIN reconciler.operations o ON o.tenant = $1 AND o.operation_id = r.reference
    UNION ALL
    SELECT o.operation_id, o.state, r.status
    FROM pg_temp.effect_rows r
    JOIN reconciler.operations o ON o.tenant = $1 AND o."group" = r.reference
    UNION ALL
    SELECT o.operation_id, o.state, r.status
    FROM pg_temp.effect_rows r
    JOIN reconciler.operations o ON o.tenant = $1 AND o.source = ANY ($3::text[]) AND o.key = r.key
    UNION ALL
    SELECT o.operation_id, o.state, r.status
    FROM pg_temp.effect_rows r
    JOIN reconciler.operations o ON o.tenant = $1 AND o.effect_id = r.id AND o.source = ANY ($3::text[])
    UNION ALL
    SELECT o.operation_id, o.state, r.status
    FROM pg_temp.effect_rows r
    JOIN reconciler.effects e ON e.tenant = $1 AND e.system = $2 AND e.account = r.account AND e.mode = r.mode
        AND e.id = r.id
    JOIN reconciler.operations o ON o.tenant = $1 AND o.operation_id = e.owner
    WHERE r.again OR r.repeated
)
SELECT DISTINCT n.operation_id
FROM named n
WHERE n.state NOT IN ('succeeded', 'failed')
    OR n.state = 'succeeded' AND n.status IN ('failed', 'reversed')
    OR n.state = 'failed' AND n.status IN ('in_flight', 'completed')
ORDER BY n.operation_id
