-- Operations that may be one intent done twice: same action, target, amount, currency and
-- mode, and close in time, of one tool call, or of one natural reference. Rules say which
-- are suspected. Those of one intent stand together, in the order of their creation.
-- $1 tenant  $2 source  $3 from  $4 to  $5 how close
WITH base AS MATERIALIZED (
    SELECT o.operation_id, o.created_at, o.run, o.tool_call, o.reference, hashtextextended(
        concat_ws(E'\x1f', o.action, o.target, o.mode, coalesce(o.amount, 0), CASE WHEN o.amount IS NOT NULL THEN o.currency END), 0) AS intent
    FROM reconciler.operations o
    WHERE o.tenant = $1 AND o.source = $2 AND o.created_at >= $3::timestamptz - $5::interval AND o.created_at < $4::timestamptz + $5::interval
),
near AS (
    SELECT b.intent, b.created_at, b.operation_id, b.created_at - lag(b.created_at) OVER w <= $5::interval
        OR lead(b.created_at) OVER w - b.created_at <= $5::interval AS close
    FROM base b
    WINDOW w AS (PARTITION BY b.intent ORDER BY b.created_at, b.operation_id)
),
calls AS (
    SELECT b.intent, b.run, b.tool_call FROM base b
    WHERE b.run IS NOT NULL AND b.tool_call IS NOT NULL
    GROUP BY b.intent, b.run, b.tool_call
    HAVING count(*) > 1
),
named AS (
    SELECT b.intent, b.created_at, b.operation_id, x.operation_id AS other, x.created_at AS other_at
    FROM base b
    JOIN reconciler.operations o ON o.tenant = $1 AND o.operation_id = b.operation_id
    JOIN reconciler.operations x ON x.tenant = $1 AND x.reference = b.reference AND x.operation_id <> b.operation_id
        AND x.action = o.action AND x.target = o.target AND x.mode = o.mode
        AND x.amount IS NOT DISTINCT FROM o.amount AND x.currency IS NOT DISTINCT FROM o.currency
    WHERE b.reference IS NOT NULL
)
SELECT n.intent, n.created_at, n.operation_id FROM near n WHERE n.close
UNION
SELECT b.intent, b.created_at, b.operation_id
FROM base b JOIN calls c ON c.intent = b.intent AND c.run = b.run AND c.tool_call = b.tool_call
UNION
SELECT n.intent, n.created_at, n.operation_id FROM named n
UNION
SELECT n.intent, n.other_at, n.other FROM named n
ORDER BY 1, 2, 3
